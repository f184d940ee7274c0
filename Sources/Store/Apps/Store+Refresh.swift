import Base
package import Core
import SQL

extension Store {
    /// Sets how often an app wants to fetch.
    ///
    /// - Parameter seen: The interval that must be set now, nil for any.
    /// - Throws: ``DomainError/revisionMismatch`` when it is another one.
    package func setRefreshInterval(
        _ interval: BackgroundRefresh.Interval, replacing seen: BackgroundRefresh.Interval? = nil, of app: AppID,
        at now: Timestamp
    ) async throws -> RefreshOverview {
        _ = try await transact(at: now) { transaction in
            guard let app = try self.readApp(app, transaction.db) else { throw DomainError.notFound }
            var refresh = try self.readRefresh(of: app.id, transaction.db)
            if let seen, seen != refresh.interval { throw DomainError.revisionMismatch }
            try refresh.handle(.setInterval(interval), identifier: app.identifier, at: now)
            try self.save(refresh, of: app, transaction)
        }
        return try await refresh(of: app)
    }

    package func refresh(of id: AppID) async throws -> RefreshOverview {
        try await database.read { db in
            guard let app = try self.readApp(id, db) else { throw DomainError.notFound }
            let refresh = try self.readRefresh(of: id, db)
            let status = app.backgroundRefreshStatus.stricter(try self.readConditions(db).refreshStatus)
            let obstacle = Self.obstacle(app, status)
            let next = obstacle == nil ? refresh.nextFetchAt(identifier: app.identifier) : nil
            let why = obstacle ?? refresh.reason
            return RefreshOverview(
                interval: refresh.interval, status: status, nextFetchAt: next, why: why,
                history: try self.pastFetches(of: id, db))
        }
    }

    /// The last fetches that were sent, the latest first.
    private func pastFetches(of app: AppID, _ db: Connection) throws -> [PastFetch] {
        try db.all(
            """
            SELECT l.public_id, coalesce(a.started_at, l.created_at) AS at, l.ended_at, l.result FROM launch l \
            LEFT JOIN launch_attempt a ON a.launch = l.id AND a.number = 1 \
            WHERE l.app = ?1 AND l.kind = 'app.performFetch' AND l.state <> 'superseded' \
            ORDER BY l.id DESC LIMIT 50
            """, app.rawValue
        ) { row in
            let at = row.time("at")
            return PastFetch(
                launchId: row.text("public_id"), at: at,
                duration: row.timeOrNil("ended_at").map { max(.zero, $0 - at) },
                result: try row.valueOrNil("result"))
        }
    }

    /// When the next fetch of any app is due.
    package func nextFetchTime() async throws -> Timestamp? {
        try await database.read { db in
            try db.first("SELECT min(next_at) FROM refresh WHERE next_at IS NOT NULL") { $0.timeOrNil(0) } ?? nil
        }
    }

    /// Leaves out the fetches that fell due while the service was down, and gives up those that were never sent.
    ///
    /// - Parameters:
    ///   - start: When the service started: what began later is of this run.
    ///   - limit: Apps looked at in one commit.
    package func recoverRefresh(
        startedAt start: Timestamp, limit: Int = 100, at now: Timestamp
    ) async throws -> Aftermath {
        var all = Aftermath()
        while true {
            let (hasMore, aftermath) = try await transact(at: now) { transaction in
                let unsent = try self.giveUpUnsentFetches(before: start, limit, transaction)
                return unsent == limit ? true : try self.skipMissedFetches(limit, transaction) == limit
            }
            all.merge(aftermath)
            if !hasMore { return all }
        }
    }

    /// - Returns: How many were looked at. They are pending no more.
    private func giveUpUnsentFetches(before start: Timestamp, _ limit: Int, _ transaction: Transaction) throws -> Int {
        let unsent = try transaction.db.all(
            """
            SELECT id, app FROM launch WHERE kind = 'app.performFetch' AND state = 'pending' AND attempts = 0 \
            AND created_at < ?1 ORDER BY created_at LIMIT ?2
            """, start.milliseconds, limit
        ) { ($0.integer("id"), AppID($0.integer("app"))) }
        for (id, owner) in unsent {
            guard let app = try readApp(owner, transaction.db) else {
                try remove(launch: id, transaction.db)
                continue
            }
            try abandonFetch(id: id, app, transaction)
        }
        return unsent.count
    }

    /// - Returns: How many were looked at. The next fetch of none of them is overdue any more.
    private func skipMissedFetches(_ limit: Int, _ transaction: Transaction) throws -> Int {
        let overdue = try transaction.db.all(
            "SELECT app FROM refresh WHERE next_at < ?1 ORDER BY next_at LIMIT ?2", transaction.now.milliseconds, limit
        ) { AppID($0.integer(0)) }
        for id in overdue {
            guard let app = try readApp(id, transaction.db) else {
                try transaction.db.execute("DELETE FROM refresh WHERE app = ?1", id.rawValue)
                continue
            }
            var refresh = try readRefresh(of: id, transaction.db)
            try refresh.handle(.becameAvailable, identifier: app.identifier, at: transaction.now)
            try save(refresh, of: app, transaction)
        }
        return overdue.count
    }

    /// Makes the launches of fetches that are due, up to `limit`. The caller asks for good conditions first.
    package func beginDueFetches(at now: Timestamp, limit: Int) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let due = try transaction.db.all(
                "SELECT app FROM refresh WHERE next_at <= ?1 ORDER BY next_at, app LIMIT ?2", now.milliseconds, limit
            ) { AppID($0.integer(0)) }
            for id in due {
                guard let app = try self.readApp(id, transaction.db) else { continue }
                let refresh = try self.readRefresh(of: id, transaction.db)
                let isDue = refresh.nextFetchAt(identifier: app.identifier).map { $0 <= now } ?? false
                if isDue, try self.obstacle(app, transaction) == nil {
                    try self.beginFetch(of: app, refresh, transaction)
                } else {
                    try self.save(refresh, of: app, transaction)
                }
            }
        }.1
    }

    /// Fetches now, whatever the interval and the conditions.
    ///
    /// - Throws: ``DomainError/refreshUnavailable(why:)`` while it is not allowed, cannot be sent, or a fetch is open.
    package func simulateFetch(of app: AppID, at now: Timestamp) async throws -> (LaunchRecord, Aftermath) {
        let (launchId, aftermath) = try await transact(at: now) { transaction -> String in
            guard let app = try self.readApp(app, transaction.db) else { throw DomainError.notFound }
            let refresh = try self.readRefresh(of: app.id, transaction.db)
            if let obstacle = try self.obstacle(app, transaction) {
                throw DomainError.refreshUnavailable(why: obstacle)
            }
            guard refresh.open == nil else { throw DomainError.refreshUnavailable(why: "A fetch is open already.") }
            return try self.beginFetch(of: app, refresh, transaction)
        }
        return (try await launch(launchId, app: app), aftermath)
    }
}

// MARK: - Inside transactions

extension Store {
    func readRefresh(of app: AppID, _ db: Connection) throws -> BackgroundRefresh {
        try db.first("SELECT document FROM refresh WHERE app = ?1", app.rawValue) {
            try documents.decode(BackgroundRefresh.self, $0.blob(0))
        } ?? BackgroundRefresh()
    }

    func save(_ refresh: BackgroundRefresh, of app: AppRecord, _ transaction: Transaction) throws {
        let next =
            try obstacle(app, transaction) == nil ? refresh.nextFetchAt(identifier: app.identifier) : nil
        try transaction.db.execute(
            """
            INSERT INTO refresh (app, document, next_at) VALUES (?1, ?2, ?3) \
            ON CONFLICT (app) DO UPDATE SET document = ?2, next_at = ?3
            """, app.id.rawValue, documents.encode(refresh), next?.milliseconds)
        if next != nil { transaction.aftermath.hasDueLaunches = true }
    }

    /// Notes that a client attached to a session of the app: the next fetch waits for an interval from now.
    ///
    /// Writes nothing for an app that never fetches.
    func noteActivity(_ id: AppID, _ transaction: Transaction) throws {
        var refresh = try readRefresh(of: id, transaction.db)
        guard refresh.interval != .never, let app = try readApp(id, transaction.db) else { return }
        try refresh.handle(.attached, identifier: app.identifier, at: transaction.now)
        try save(refresh, of: app, transaction)
    }

    /// Writes anew when the app fetches next, after its webhook changed.
    func scheduleRefresh(of app: AppRecord, _ transaction: Transaction) throws {
        let exists = try transaction.db.exists("SELECT 1 FROM refresh WHERE app = ?1", app.id.rawValue)
        if exists { try save(readRefresh(of: app.id, transaction.db), of: app, transaction) }
    }

    private func obstacle(_ app: AppRecord, _ transaction: Transaction) throws -> String? {
        let common = try readConditions(transaction.db).refreshStatus
        return Self.obstacle(app, app.backgroundRefreshStatus.stricter(common))
    }

    /// Why an app is not fetched at all, or nil.
    private static func obstacle(_ app: AppRecord, _ status: BackgroundRefreshStatus) -> String? {
        if app.isForceQuit { return "The app was force-quit and has not been activated." }
        switch status {
        case .available: break
        case .denied: return "Background refresh is denied."
        case .restricted: return "Background refresh is restricted."
        }
        switch app.webhook.parkReason {
        case nil, .forceQuit: return nil
        case .noURL: return "The app has no webhook."
        case .paused: return "The webhook is paused."
        case .disabled: return "The webhook is disabled."
        }
    }

    @discardableResult
    private func beginFetch(
        of app: AppRecord, _ refresh: BackgroundRefresh, _ transaction: Transaction
    ) throws -> String {
        var refresh = refresh
        let launchId = Identifier.make(prefix: "lnch_")
        try refresh.handle(.begin(launchId: launchId), identifier: app.identifier, at: transaction.now)
        try transaction.insertLaunch(launchId, .performFetch, of: app.id, app.parkReason)
        try save(refresh, of: app, transaction)
        return launchId
    }

    /// A fetch is about to be sent: its deadline begins with the first attempt.
    ///
    /// - Returns: Whether it may still be sent. What is beyond its deadline ends here.
    func noteFetchSent(
        _ launch: inout ClaimedLaunch, _ app: AppRecord, _ transaction: Transaction
    ) throws -> Bool {
        let now = transaction.now
        var refresh = try readRefresh(of: app.id, transaction.db)
        let isOpen = (try? refresh.handle(.sent(launchId: launch.launchId), identifier: app.identifier, at: now)) != nil
        guard isOpen, let deadline = refresh.open?.deadline, deadline > now else {
            try fail(launch, app, retryAfter: nil, wasAnswered: true, jitter: 0, transaction)
            return false
        }
        launch.expiresAt = deadline
        launch.previousResult = refresh.previousResult
        try transaction.db.execute(
            "UPDATE launch SET expires_at = ?2 WHERE id = ?1", launch.id, deadline.milliseconds)
        try save(refresh, of: app, transaction)
        return true
    }

    /// A fetch ends without a result, which counts as `failed`.
    func expireFetch(_ launchId: String, id: Int64, _ app: AppRecord, _ transaction: Transaction) throws {
        var refresh = try readRefresh(of: app.id, transaction.db)
        guard let open = refresh.open, open.launchId.utf8.elementsEqual(launchId.utf8) else { return }
        try refresh.handle(.expired(launchId: launchId), identifier: app.identifier, at: transaction.now)
        try save(refresh, of: app, transaction)
        try transaction.db.execute(
            "UPDATE launch SET result = ?2 WHERE id = ?1", id, BackgroundRefresh.Result.failed.rawValue)
    }

    /// A fetch that was not sent, and will not be.
    func abandonFetch(id: Int64, _ app: AppRecord, _ transaction: Transaction) throws {
        var refresh = try readRefresh(of: app.id, transaction.db)
        if let open = refresh.open {
            try refresh.handle(.abandoned(launchId: open.launchId), identifier: app.identifier, at: transaction.now)
            try save(refresh, of: app, transaction)
        }
        try transaction.move(launch: id, .clientAttached)
    }

    /// Does what follows when an app's refresh status or webhook changed.
    ///
    /// - Returns: Whether refresh was available and is not any more.
    func refreshMayHaveChanged(
        from old: AppRecord, to new: AppRecord, oldCommon: BackgroundRefreshStatus,
        newCommon: BackgroundRefreshStatus, _ transaction: Transaction
    ) throws -> Bool {
        let oldStatus = old.backgroundRefreshStatus.stricter(oldCommon)
        let newStatus = new.backgroundRefreshStatus.stricter(newCommon)
        let couldFetch = Self.obstacle(old, oldStatus) == nil
        let canFetch = Self.obstacle(new, newStatus) == nil
        if couldFetch != canFetch {
            var refresh = try readRefresh(of: new.id, transaction.db)
            if canFetch {
                try refresh.handle(.becameAvailable, identifier: new.identifier, at: transaction.now)
                if refresh.interval != .never { try save(refresh, of: new, transaction) }
            } else {
                let unsent = try transaction.db.first(
                    """
                    SELECT id FROM launch WHERE app = ?1 AND state = 'pending' AND kind = 'app.performFetch' \
                    AND attempts = 0
                    """, new.id.rawValue
                ) { $0.integer(0) }
                if let unsent { try abandonFetch(id: unsent, new, transaction) }
                try scheduleRefresh(of: new, transaction)
            }
        }
        if oldStatus != newStatus, new.webhook.url != nil { try tellRefreshStatus(of: new, transaction) }
        return oldStatus == .available && newStatus != .available
    }

    /// Tells the app that its refresh status changed; an older notice that has not gone out is not needed any more.
    private func tellRefreshStatus(of app: AppRecord, _ transaction: Transaction) throws {
        let kind = LaunchKind.refreshStatusDidChange
        let older = try transaction.db.all(
            "SELECT id FROM launch WHERE app = ?1 AND kind = ?2 AND state IN ('pending', 'parked')", app.id.rawValue,
            kind.rawValue
        ) { $0.integer(0) }
        for id in older { try transaction.move(launch: id, .clientAttached) }
        try transaction.insertLaunch(Identifier.make(prefix: "lnch_"), kind, of: app.id, app.parkReason)
    }
}

extension BackgroundRefresh {
    /// Why the next fetch is when it is, as far as the app's own history goes.
    fileprivate var reason: String {
        if open != nil { return "A fetch is open." }
        guard let effectiveInterval else { return "The interval is never." }
        let seconds = Int(effectiveInterval)
        let interval =
            stretch > 1
            ? "The interval, longer after the last results, is \(seconds) s" : "The interval is \(seconds) s"
        return interval + " from the last attach or fetch, and the app's own phase."
    }
}
