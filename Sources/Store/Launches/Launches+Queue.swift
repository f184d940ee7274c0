package import Core
import SQL

/// The queue of launches: the row of each app has the time of its next launch, so that no query reads all due launches
/// to find the next app.
///
/// `next_launch_at` is never too late. A launch that becomes due moves it forward, and a visit of an app that finds it
/// too early corrects it. Apps that are due at the same time are ordered by `launch_turn`.
extension Transaction {
    /// Records that a launch of the app is due from `moment`.
    func launchBecomesDue(of app: AppID, at moment: Timestamp) throws {
        aftermath.hasDueLaunches = true
        try db.execute(
            """
            UPDATE app SET next_launch_at = ?2 WHERE id = ?1 AND settled_launch IS NULL \
            AND (next_launch_at IS NULL OR next_launch_at > ?2)
            """, app.rawValue, moment.milliseconds)
    }

    /// Makes launches that wait for the circuit breaker due now.
    func hastenLaunches(of app: AppID) throws {
        let hastened = try db.change(
            "UPDATE app SET next_launch_at = ?2 WHERE id = ?1 AND next_launch_at > ?2", app.rawValue, now.milliseconds)
        if hastened > 0 { aftermath.hasDueLaunches = true }
    }

    /// Updates an app's position in the queue from its pending launches.
    ///
    /// - Parameters:
    ///   - moment: The earliest time of the app's next launch.
    ///   - turn: The app's turn, if it was served now.
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

/// The order among an app's launches.
enum LaunchUrgency: String, CaseIterable {
    /// The operator or the app requested it.
    case redelivered
    case firstAttempt
    case retry

    /// `nil` if the urgency does not change.
    init?(of state: LaunchState, after event: LaunchState.Event) {
        switch event {
        case .putOff: return nil
        case .redeliver: self = .redelivered
        default: self = state.attempts == 0 ? .firstAttempt : .retry
        }
    }
}

// MARK: - Claiming

extension Store.Launches {
    /// Claims due launches in rounds of one launch per app, with first attempts before retries.
    ///
    /// Visits at most as many apps as launches may be claimed and are in flight, and reads only the launches that it
    /// claims. Apps whose circuit breakers are open are postponed.
    ///
    /// - Parameter limit: The maximum number of launches: one call is one short transaction.
    /// - Returns: The claimed launches in the order of their turns, and whether more may be claimed at once.
    package func claimDue(
        _ slots: LaunchSlots, limit: Int, leaseUntil: Timestamp, at now: Timestamp
    ) async throws -> (claimed: [ClaimedLaunch], hasMore: Bool, aftermath: Aftermath) {
        let (result, aftermath) = try await transact(at: now) { transaction -> ([ClaimedLaunch], Bool) in
            // Apps without a free slot may precede apps that have one.
            let window = limit + slots.busyApps
            let due = try transaction.db.all(
                "SELECT id FROM app WHERE next_launch_at <= ?1 ORDER BY next_launch_at, launch_turn, id LIMIT ?2",
                now.milliseconds, window
            ) { AppID($0.integer(0)) }
            var claim = LaunchClaim(
                store: store, transaction: transaction, leaseUntil: leaseUntil,
                status: try store.apps.readConditions(transaction.db).refreshStatus, slots: slots, left: limit)
            let looked = try claim.serve(due)
            return (claim.taken, claim.left == 0 || due.count == window && looked > 0)
        }
        return (result.0, result.1, aftermath)
    }
}

/// A claim in progress.
private struct LaunchClaim {
    let store: Store
    let transaction: Transaction
    let leaseUntil: Timestamp
    let status: BackgroundRefreshStatus
    var slots: LaunchSlots
    /// The number of launches that may still be claimed.
    var left: Int
    var taken: [ClaimedLaunch] = []

    private struct Visit {
        let app: AppRecord
        let health: WebhookHealth
        /// The turn of the last claimed launch.
        var turn: Int64?
    }

    /// Claims launches in rounds of one launch per app, while slots are free.
    ///
    /// - Returns: The number of apps visited. Each of them has a new position in the queue.
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

    /// Reads an app. Postpones the app if none of its launches may be sent.
    private func look(at id: AppID) throws -> Visit? {
        guard let app = try store.apps.read(id, transaction.db) else { return nil }
        if app.parkReason != nil {
            try store.launches.beginSettling(of: app, transaction)
            return nil
        }
        let health = try store.apps.health(of: id, transaction.db)
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
            guard
                let launch = try store.launches.claim(id, of: app, status: status, leaseUntil: leaseUntil, transaction)
            else {
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
            let id =
                if urgency == .redelivered {
                    // Of the launches that one call redelivers, the newest is sent first.
                    try db.first(
                        """
                        SELECT id FROM launch WHERE state = 'pending' AND app = ?1 AND urgency = ?2 AND due_at <= ?3 \
                        ORDER BY due_at DESC, id DESC LIMIT 1
                        """, app.rawValue, urgency.rawValue, now.milliseconds
                    ) { $0.integer(0) }
                } else {
                    try db.first(
                        """
                        SELECT id FROM launch WHERE state = 'pending' AND app = ?1 AND urgency = ?2 AND due_at <= ?3 \
                        ORDER BY due_at, id LIMIT 1
                        """, app.rawValue, urgency.rawValue, now.milliseconds
                    ) { $0.integer(0) }
                }
            if let id { return id }
        }
        return nil
    }
}
