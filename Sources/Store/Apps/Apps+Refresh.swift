import Base
package import Core
import SQL

extension Store.Apps {
    /// Sets an app's interval between fetches.
    ///
    /// - Parameter seen: The interval that must be current, `nil` for any.
    /// - Throws: ``DomainError/revisionMismatch`` if another interval is current.
    package func setRefreshInterval(
        _ interval: BackgroundRefresh.Interval, replacing seen: BackgroundRefresh.Interval? = nil, of app: AppID,
        at now: Timestamp
    ) async throws -> RefreshOverview {
        _ = try await transact(at: now) { transaction in
            guard let app = try self.read(app, transaction.db) else { throw DomainError.notFound }
            var refresh = try self.readRefresh(of: app.id, transaction.db)
            if let seen, seen != refresh.interval { throw DomainError.revisionMismatch }
            try refresh.handle(.setInterval(interval), identifier: app.identifier, at: now)
            try self.save(refresh, of: app, transaction)
        }
        return try await refresh(of: app)
    }

    package func refresh(of id: AppID) async throws -> RefreshOverview {
        try await database.read { db in
            guard let app = try self.read(id, db) else { throw DomainError.notFound }
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

    /// The last fetches that were sent, the latest first, at most 50.
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

    /// The time of the next due fetch of any app.
    package func nextFetchTime() async throws -> Timestamp? {
        try await database.read { db in
            try db.first("SELECT min(next_at) FROM refresh WHERE next_at IS NOT NULL") { $0.timeOrNil(0) } ?? nil
        }
    }

    /// Apps whose refresh is recovered in one commit.
    private static let recoveredAtOnce = 100

    /// Skips the fetches that fell due while the service was down, and abandons the fetches that were never sent.
    ///
    /// - Parameter start: When the service started. Fetches that are created or fall due later belong to this run.
    package func recoverRefresh(startedAt start: Timestamp, at now: Timestamp) async throws -> Aftermath {
        var all = Aftermath()
        while true {
            let (hasMore, aftermath) = try await transact(at: now) { transaction in
                let unsent = try self.giveUpUnsentFetches(before: start, transaction)
                return try unsent == Self.recoveredAtOnce
                    || self.skipMissedFetches(before: min(start, now), transaction) == Self.recoveredAtOnce
            }
            all.merge(aftermath)
            if !hasMore { return all }
        }
    }

    /// - Returns: The number of fetches handled. None of them is pending any more.
    private func giveUpUnsentFetches(before start: Timestamp, _ transaction: Transaction) throws -> Int {
        let unsent = try transaction.db.all(
            """
            SELECT id, app FROM launch WHERE kind = 'app.performFetch' AND state = 'pending' AND attempts = 0 \
            AND created_at < ?1 ORDER BY created_at LIMIT ?2
            """, start.milliseconds, Self.recoveredAtOnce
        ) { ($0.integer("id"), AppID($0.integer("app"))) }
        for (id, owner) in unsent {
            guard let app = try read(owner, transaction.db) else {
                try store.upkeep.remove(launch: id, transaction.db)
                continue
            }
            try abandonFetch(id: id, app, transaction)
        }
        return unsent.count
    }

    /// - Returns: The number of apps handled. No next fetch of these apps is overdue any more.
    private func skipMissedFetches(before start: Timestamp, _ transaction: Transaction) throws -> Int {
        let overdue = try transaction.db.all(
            "SELECT app FROM refresh WHERE next_at < ?1 ORDER BY next_at LIMIT ?2", start.milliseconds,
            Self.recoveredAtOnce
        ) { AppID($0.integer(0)) }
        for id in overdue {
            guard let app = try read(id, transaction.db) else {
                try transaction.db.execute("DELETE FROM refresh WHERE app = ?1", id.rawValue)
                continue
            }
            var refresh = try readRefresh(of: id, transaction.db)
            try refresh.handle(.becameAvailable, identifier: app.identifier, at: transaction.now)
            try save(refresh, of: app, transaction)
        }
        return overdue.count
    }

    /// Creates the launches of due fetches, up to `limit`. The caller checks the conditions first.
    package func beginDueFetches(at now: Timestamp, limit: Int) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let due = try transaction.db.all(
                "SELECT app FROM refresh WHERE next_at <= ?1 ORDER BY next_at, app LIMIT ?2", now.milliseconds, limit
            ) { AppID($0.integer(0)) }
            for id in due {
                guard let app = try self.read(id, transaction.db) else { continue }
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

    /// Starts a fetch now, whatever the interval and the conditions.
    ///
    /// - Throws: ``DomainError/refreshUnavailable(why:)`` if it is not allowed or possible, or a fetch is open.
    package func simulateFetch(of app: AppID, at now: Timestamp) async throws -> (LaunchRecord, Aftermath) {
        let (launchId, aftermath) = try await transact(at: now) { transaction -> String in
            guard let app = try self.read(app, transaction.db) else { throw DomainError.notFound }
            let refresh = try self.readRefresh(of: app.id, transaction.db)
            if let obstacle = try self.obstacle(app, transaction) {
                throw DomainError.refreshUnavailable(why: obstacle)
            }
            guard refresh.open == nil else { throw DomainError.refreshUnavailable(why: "A fetch is open already.") }
            return try self.beginFetch(of: app, refresh, transaction)
        }
        return (try await store.launches.read(launchId, app: app), aftermath)
    }
}

// MARK: - Inside transactions

extension Store.Apps {
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

    /// Records an attachment to a session of the app, which delays the next fetch by an interval from now.
    ///
    /// Writes nothing for an app that never fetches.
    func noteActivity(_ id: AppID, _ transaction: Transaction) throws {
        var refresh = try readRefresh(of: id, transaction.db)
        guard refresh.interval != .never, let app = try read(id, transaction.db) else { return }
        try refresh.handle(.attached, identifier: app.identifier, at: transaction.now)
        try save(refresh, of: app, transaction)
    }

    /// Recomputes the time of an app's next fetch after its webhook changed.
    func scheduleRefresh(of app: AppRecord, _ transaction: Transaction) throws {
        let exists = try transaction.db.exists("SELECT 1 FROM refresh WHERE app = ?1", app.id.rawValue)
        if exists { try save(readRefresh(of: app.id, transaction.db), of: app, transaction) }
    }

    private func obstacle(_ app: AppRecord, _ transaction: Transaction) throws -> String? {
        let common = try readConditions(transaction.db).refreshStatus
        return Self.obstacle(app, app.backgroundRefreshStatus.stricter(common))
    }

    /// The reason for which an app is not fetched at all, or `nil`.
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

    /// Records the first attempt of a fetch, which starts the fetch's deadline.
    ///
    /// - Returns: Whether the fetch may still be sent. A fetch beyond its deadline ends here.
    func noteFetchSent(
        _ launch: inout ClaimedLaunch, _ app: AppRecord, _ transaction: Transaction
    ) throws -> Bool {
        let now = transaction.now
        var refresh = try readRefresh(of: app.id, transaction.db)
        let isOpen = (try? refresh.handle(.sent(launchId: launch.launchId), identifier: app.identifier, at: now)) != nil
        guard isOpen, let deadline = refresh.open?.deadline, deadline > now else {
            try store.launches.fail(launch, app, retryAfter: nil, wasAnswered: true, jitter: 0, transaction)
            return false
        }
        launch.expiresAt = deadline
        launch.previousResult = refresh.previousResult
        try transaction.db.execute(
            "UPDATE launch SET expires_at = ?2 WHERE id = ?1", launch.id, deadline.milliseconds)
        try save(refresh, of: app, transaction)
        return true
    }

    /// Ends a fetch without a result, which counts as `failed`.
    func expireFetch(_ launchId: String, id: Int64, _ app: AppRecord, _ transaction: Transaction) throws {
        var refresh = try readRefresh(of: app.id, transaction.db)
        guard let open = refresh.open, open.launchId.utf8.elementsEqual(launchId.utf8) else { return }
        try refresh.handle(.expired(launchId: launchId), identifier: app.identifier, at: transaction.now)
        try save(refresh, of: app, transaction)
        try transaction.db.execute(
            "UPDATE launch SET result = ?2 WHERE id = ?1", id, BackgroundRefresh.Result.failed.rawValue)
    }

    /// Abandons a fetch that was never sent.
    func abandonFetch(id: Int64, _ app: AppRecord, _ transaction: Transaction) throws {
        var refresh = try readRefresh(of: app.id, transaction.db)
        if let open = refresh.open {
            try refresh.handle(.abandoned(launchId: open.launchId), identifier: app.identifier, at: transaction.now)
            try save(refresh, of: app, transaction)
        }
        try transaction.move(launch: id, .clientAttached)
    }

    /// Applies the consequences of a changed refresh status or webhook of an app, apart from the cancellation of its
    /// discretionary tasks.
    func refreshMayHaveChanged(
        from old: AppRecord, to new: AppRecord, oldCommon: BackgroundRefreshStatus,
        newCommon: BackgroundRefreshStatus, _ transaction: Transaction
    ) throws {
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
    }

    /// Creates the launch that reports the changed refresh status. An older unsent launch of this kind is superseded.
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
    /// The reason for the time of the next fetch, as far as it depends on the app's own history.
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
