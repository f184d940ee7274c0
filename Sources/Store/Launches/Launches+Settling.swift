package import Core
import SQL

/// Adjusts an app's open launches to its webhook: they are parked while the webhook is unusable, and released one after
/// the other when it is usable again. Launches that a long stop left overdue are released in the same way.
///
/// Batches follow the order of creation. `settled_launch` is the last adjusted launch, `next_release_at` the time of
/// the next release. Until the last batch is done, no launch of the app is sent.
extension Store.Launches {
    /// Launches in one batch.
    static let settledAtOnce = 200
    /// The distance between two released launches.
    static let releaseInterval = Duration.milliseconds(200)

    /// Adjusts one batch of launches of an app that needs it.
    ///
    /// - Returns: Whether more may be left to do.
    package func settle(at now: Timestamp) async throws -> (hasMore: Bool, aftermath: Aftermath) {
        try await transact(at: now) { transaction in
            let id = try transaction.db.first(
                "SELECT id FROM app WHERE settled_launch IS NOT NULL ORDER BY settled_launch LIMIT 1"
            ) { AppID($0.integer(0)) }
            guard let id, let app = try store.apps.read(id, transaction.db) else { return false }
            try self.settle(of: app, transaction)
            return true
        }
    }

    /// Adjusts the first batch, after an app's webhook has changed.
    func beginSettling(of app: AppRecord, _ transaction: Transaction) throws {
        try transaction.db.execute(
            "UPDATE app SET settled_launch = 0, next_release_at = ?2, next_launch_at = NULL WHERE id = ?1",
            app.id.rawValue, transaction.now.milliseconds)
        try settle(of: app, transaction)
    }

    private func settle(of app: AppRecord, _ transaction: Transaction) throws {
        let (db, now) = (transaction.db, transaction.now)
        let place = try db.first("SELECT settled_launch, next_release_at FROM app WHERE id = ?1", app.id.rawValue) {
            ($0.integer("settled_launch"), $0.time("next_release_at"))
        }
        guard let (settled, next) = place else { return }
        let open = try db.all(
            """
            SELECT id, kind, state, due_at FROM launch \
            WHERE app = ?1 AND ended_at IS NULL AND id > ?2 ORDER BY id LIMIT ?3
            """, app.id.rawValue, settled, Self.settledAtOnce
        ) {
            (
                id: $0.integer("id"), kind: try $0.value("kind") as LaunchKind,
                phase: try $0.value("state") as LaunchState.Phase, due: $0.timeOrNil("due_at")
            )
        }
        var release = max(next, now)
        for launch in open {
            if let reason = app.parkReason {
                try park(launch.id, launch.kind, isPending: launch.phase == .pending, app, reason, transaction)
            } else if launch.phase == .parked {
                try self.release(launch.id, at: release, transaction)
                release = release + Self.releaseInterval
            } else if launch.phase == .pending, launch.kind == .handleEvents, let due = launch.due,
                due <= now - Self.longStop
            {
                try transaction.move(launch: launch.id, .putOff(until: release))
                release = release + Self.releaseInterval
            }
        }
        let last = open.count == Self.settledAtOnce ? open.last?.id : nil
        try db.execute(
            "UPDATE app SET settled_launch = ?2, next_release_at = ?3 WHERE id = ?1", app.id.rawValue, last,
            release.milliseconds)
        transaction.aftermath.hasDueLaunches = true
        if last == nil { try transaction.requeue(app.id, notBefore: now) }
    }

    /// Parks a launch. An unsent fetch is abandoned instead, because fetches are not made up for.
    private func park(
        _ id: Int64, _ kind: LaunchKind, isPending: Bool, _ app: AppRecord, _ reason: LaunchState.ParkReason,
        _ transaction: Transaction
    ) throws {
        if kind != .performFetch { return _ = try transaction.move(launch: id, .park(reason)) }
        if isPending { try store.apps.abandonFetch(id: id, app, transaction) }
    }

    private func release(_ id: Int64, at moment: Timestamp, _ transaction: Transaction) throws {
        let now = transaction.now
        try transaction.move(launch: id, .enabled(nextAttemptAt: moment))
        // The time while parked does not shorten the time for attempts.
        try transaction.db.execute(
            """
            UPDATE launch SET expires_at = CASE WHEN body IS NULL THEN ?2 \
            WHEN expires_at < ?3 THEN ?3 ELSE expires_at END WHERE id = ?1
            """, id, (now + LaunchSchedule.lifetime).milliseconds, (now + .seconds(86_400)).milliseconds)
    }
}
