package import Core
import SQL

/// The queue of launches: each app's row says when it can be served next, so that no query has to read all due launches to find
/// whose turn it is.
///
/// `next_launch_at` is never later than it should be: a launch that becomes due moves it forward, a look at the app
/// that finds it too early puts it right. Apps that are due at one moment follow each other by `launch_turn`.
extension Transaction {
    /// A launch can be sent from a moment on.
    func launchBecomesDue(of app: AppID, at moment: Timestamp) throws {
        aftermath.hasDueLaunches = true
        try db.execute(
            """
            UPDATE app SET next_launch_at = ?2 WHERE id = ?1 AND settled_launch IS NULL \
            AND (next_launch_at IS NULL OR next_launch_at > ?2)
            """, app.rawValue, moment.milliseconds)
    }

    /// What waits for a breaker need not wait any longer.
    func hastenLaunches(of app: AppID) throws {
        let hastened = try db.change(
            "UPDATE app SET next_launch_at = ?2 WHERE id = ?1 AND next_launch_at > ?2", app.rawValue, now.milliseconds)
        if hastened > 0 { aftermath.hasDueLaunches = true }
    }

    /// Puts an app in its place in the queue, by what waits for it.
    ///
    /// - Parameters:
    ///   - moment: Nothing of it is sent before.
    ///   - turn: Where it was served just now.
    func requeue(_ app: AppID, notBefore moment: Timestamp, turn: Int64? = nil) throws {
        var next: Int64?
        for urgency in LaunchUrgency.allCases {
            let due = try db.first(
                """
                SELECT due_at FROM launch WHERE state = 'pending' AND app = ?1 AND urgency = ?2 \
                ORDER BY due_at LIMIT 1
                """, app.rawValue, urgency.rawValue
            ) { $0.integer(0) }
            if let due { next = min(next ?? due, due) }
        }
        try db.execute(
            """
            UPDATE app SET next_launch_at = ?2, launch_turn = coalesce(?3, launch_turn) \
            WHERE id = ?1 AND settled_launch IS NULL
            """, app.rawValue, next.map { max($0, moment.milliseconds) }, turn)
    }
}

/// Which of an app's launches goes first.
enum LaunchUrgency: String, CaseIterable {
    /// A person wants it sent.
    case redelivered
    case firstAttempt
    case retry

    /// Nil where it stays what it was.
    init?(of state: LaunchState, after event: LaunchState.Event) {
        switch event {
        case .putOff: return nil
        case .redeliver: self = .redelivered
        default: self = state.attempts == 0 ? .firstAttempt : .retry
        }
    }
}

// MARK: - Claiming

extension Store {
    /// Takes due launches: one of each app in turn, then another of each; first attempts before retries.
    ///
    /// Looks at no more apps than it may take launches and are under way, and reads of each what it takes. Apps whose
    /// breakers are open are put off on the way.
    ///
    /// - Parameter limit: How many at most: one call is one short transaction.
    /// - Returns: What was taken, in the order of its turns, and whether there may be more to take at once.
    package func claimDueLaunches(
        _ slots: LaunchSlots, limit: Int, leaseUntil: Timestamp, at now: Timestamp
    ) async throws -> (claimed: [ClaimedLaunch], hasMore: Bool, aftermath: Aftermath) {
        let (result, aftermath) = try await transact(at: now) { transaction -> ([ClaimedLaunch], Bool) in
            // Apps that have no place left may stand before those that have one.
            let window = limit + slots.busyApps
            let due = try transaction.db.all(
                "SELECT id FROM app WHERE next_launch_at <= ?1 ORDER BY next_launch_at, launch_turn, id LIMIT ?2",
                now.milliseconds, window
            ) { AppID($0.integer(0)) }
            var claim = LaunchClaim(
                store: self, transaction: transaction, leaseUntil: leaseUntil,
                status: try self.readConditions(transaction.db).refreshStatus, slots: slots, left: limit)
            let looked = try claim.serve(due)
            return (claim.taken, claim.left == 0 || due.count == window && looked > 0)
        }
        return (result.0, result.1, aftermath)
    }
}

/// A claim under way.
private struct LaunchClaim {
    let store: Store
    let transaction: Transaction
    let leaseUntil: Timestamp
    let status: BackgroundRefreshStatus
    var slots: LaunchSlots
    /// How many it may still take.
    var left: Int
    var taken: [ClaimedLaunch] = []

    private struct Visit {
        let app: AppRecord
        let health: WebhookHealth
        /// That of the last launch that was taken.
        var turn: Int64?
    }

    /// Takes one launch of each app, then another of each, while there is room.
    ///
    /// - Returns: How many apps it looked at; each stands in its new place.
    mutating func serve(_ due: [AppID]) throws -> Int {
        var (looked, visits): (Int, [Visit]) = (0, [])
        for id in due where left > 0 && slots.hasRoom(for: id) {
            looked += 1
            guard var visit = try look(at: id) else { continue }
            try takeOne(&visit)
            visits.append(visit)
        }
        var isTaking = !visits.isEmpty
        while isTaking, left > 0 {
            isTaking = false
            for index in visits.indices where visits[index].turn != nil {
                if try takeOne(&visits[index]) { isTaking = true }
            }
        }
        let now = transaction.now
        for visit in visits {
            try transaction.requeue(visit.app.id, notBefore: max(now, visit.health.openUntil ?? now), turn: visit.turn)
        }
        return looked
    }

    /// Reads an app, and puts it off when nothing of it may be sent.
    private func look(at id: AppID) throws -> Visit? {
        guard let app = try store.readApp(id, transaction.db) else { return nil }
        if app.parkReason != nil {
            try store.beginSettlingLaunches(of: app, transaction)
            return nil
        }
        let health = try store.health(of: id, transaction.db)
        if let openUntil = health.openUntil, openUntil > transaction.now {
            try transaction.requeue(id, notBefore: openUntil)
            return nil
        }
        return Visit(app: app, health: health)
    }

    @discardableResult
    private mutating func takeOne(_ visit: inout Visit) throws -> Bool {
        let app = visit.app
        let places = visit.health.places(of: LaunchSlots.perWebhook, at: transaction.now)
        guard left > 0, slots.hasRoom(for: app.id, places: places) else { return false }
        while let id = try transaction.firstDueLaunch(of: app.id) {
            guard let launch = try store.claim(id, of: app, status: status, leaseUntil: leaseUntil, transaction) else {
                continue
            }
            slots.began(id, of: app.id, at: 0)
            visit.turn = slots.turn
            left -= 1
            taken.append(launch)
            return true
        }
        return false
    }
}

extension Transaction {
    fileprivate func firstDueLaunch(of app: AppID) throws -> Int64? {
        for urgency in LaunchUrgency.allCases {
            let id = try db.first(
                """
                SELECT id FROM launch WHERE state = 'pending' AND app = ?1 AND urgency = ?2 AND due_at <= ?3 \
                ORDER BY due_at, id LIMIT 1
                """, app.rawValue, urgency.rawValue, now.milliseconds
            ) { $0.integer(0) }
            if let id { return id }
        }
        return nil
    }
}
