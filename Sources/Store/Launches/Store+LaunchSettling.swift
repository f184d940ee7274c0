package import Core
import SQL

/// Bringing an app's open launches in line with its webhook: parked when it cannot be sent to, released one after the
/// other when it can again, and so what a long stop has left overdue.
///
/// A piece at a time, in the order of their creation. `settled_launch` is the last that was looked at, `next_release_at`
/// when the next may go; until the last piece nothing of the app is sent.
extension Store {
    /// Launches in one piece.
    static let settledAtOnce = 200
    /// Released launches follow each other at this distance.
    static let releaseInterval = Duration.milliseconds(200)

    /// Does a piece for an app that waits for one.
    ///
    /// - Returns: Whether there may be more to do.
    package func settleLaunches(at now: Timestamp) async throws -> (hasMore: Bool, aftermath: Aftermath) {
        try await transact(at: now) { transaction in
            let id = try transaction.db.first(
                "SELECT id FROM app WHERE settled_launch IS NOT NULL ORDER BY settled_launch LIMIT 1"
            ) { AppID($0.integer(0)) }
            guard let id, let app = try self.readApp(id, transaction.db) else { return false }
            try self.settleLaunches(of: app, transaction)
            return true
        }
    }

    /// Does the first piece, after an app's webhook has changed.
    func beginSettlingLaunches(of app: AppRecord, _ transaction: Transaction) throws {
        try transaction.db.execute(
            "UPDATE app SET settled_launch = 0, next_release_at = ?2, next_launch_at = NULL WHERE id = ?1",
            app.id.rawValue, transaction.now.milliseconds)
        try settleLaunches(of: app, transaction)
    }

    private func settleLaunches(of app: AppRecord, _ transaction: Transaction) throws {
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

    /// An unsent fetch is given up instead: it is not made up for later.
    private func park(
        _ id: Int64, _ kind: LaunchKind, isPending: Bool, _ app: AppRecord, _ reason: LaunchState.ParkReason,
        _ transaction: Transaction
    ) throws {
        if kind != .performFetch { return _ = try transaction.move(launch: id, .park(reason)) }
        if isPending { try abandonFetch(id: id, app, transaction) }
    }

    private func release(_ id: Int64, at moment: Timestamp, _ transaction: Transaction) throws {
        let now = transaction.now
        try transaction.move(launch: id, .enabled(nextAttemptAt: moment))
        // The time spent parked is not taken from the attempts.
        try transaction.db.execute(
            """
            UPDATE launch SET expires_at = CASE WHEN body IS NULL THEN ?2 \
            WHEN expires_at < ?3 THEN ?3 ELSE expires_at END WHERE id = ?1
            """, id, (now + LaunchSchedule.lifetime).milliseconds, (now + .seconds(86_400)).milliseconds)
    }
}
