package import Core
import SQLite

extension Store {
    /// Ends what took too long: `launched` beyond its deadline is a failed attempt, a lease that ended is given back.
    ///
    /// - Parameter jitter: Numbers in `0..<1`, one for each launch.
    package func expireLaunches(
        at now: Timestamp, limit: Int, jitter: @escaping @Sendable () -> Double
    ) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let due = try transaction.db.all(
                """
                SELECT id, app, state, kind, expires_at FROM launch WHERE state IN (1, 2) AND due_at <= ?1 \
                ORDER BY due_at LIMIT ?2
                """, now.milliseconds, limit
            ) {
                (
                    id: $0.integer(0), app: AppID($0.integer(1)), state: $0.int(2),
                    kind: LaunchKind(rawValue: $0.int(3)),
                    expiresAt: $0.integerOrNil(4).map(Timestamp.init(milliseconds:))
                )
            }
            for launch in due {
                guard let app = try self.readApp(launch.app, transaction.db) else { continue }
                if launch.state == 1 {
                    try transaction.move(launch: launch.id, .leaseExpired)
                    continue
                }
                let failure = LaunchState.Failure(
                    schedule: launch.kind == .performFetch ? .once : .standard, jitter: jitter(),
                    expiresAt: launch.expiresAt)
                try transaction.db.execute(
                    """
                    UPDATE launch_attempt SET error = 'The launch was not completed in time.' WHERE launch = ?1 \
                    AND number = (SELECT attempts FROM launch WHERE id = ?1)
                    """, launch.id)
                if try transaction.move(launch: launch.id, .deadlinePassed(failure)).contains(.giveUp) {
                    try self.giveUp(launch.id, app, transaction)
                }
            }
        }.1
    }

    /// Puts launches in order after a start: what was under way goes out again with the same id, and nobody is charged.
    ///
    /// What has been overdue for a while is spread. A fetch that was sent runs into its deadline. Parked launches whose webhook works are released.
    package func recoverLaunches(at now: Timestamp) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let db = transaction.db
            let interrupted = try db.all(
                "SELECT id, kind, expires_at FROM launch WHERE state = 1 AND due_at IS NOT NULL"
            ) {
                ($0.integer(0), $0.int(1), Timestamp(milliseconds: $0.integer(2)))
            }
            for (id, kind, expiresAt) in interrupted {
                if kind == LaunchKind.performFetch.rawValue {
                    try transaction.move(launch: id, .succeeded(completedInline: false, deadline: expiresAt))
                } else {
                    try transaction.move(launch: id, .interrupted)
                }
            }
            try self.spreadOverdueLaunches(transaction)
            let parked = try db.all("SELECT DISTINCT app FROM launch WHERE state = 3") { AppID($0.integer(0)) }
            for id in parked {
                guard let app = try self.readApp(id, db), app.parkReason == nil else { continue }
                try self.releaseLaunches(of: app, transaction)
            }
        }.1
    }

    /// A stop longer than this is felt by receivers: what fell due meanwhile comes gently.
    static let longStop = Duration.seconds(60)

    /// Puts what a long stop has left overdue one after the other, for each webhook, first attempts before retries.
    private func spreadOverdueLaunches(_ transaction: Transaction) throws {
        let overdue = try transaction.db.all(
            """
            SELECT id, app FROM launch WHERE state = 0 AND due_at <= ?1 AND kind = ?2 ORDER BY attempts > 0, due_at, id
            """, (transaction.now - Self.longStop).milliseconds, LaunchKind.handleEvents.rawValue
        ) { (id: $0.integer(0), app: $0.integer(1)) }
        var places: [Int64: Int] = [:]
        for launch in overdue {
            let place = places[launch.app, default: 0]
            places[launch.app] = place + 1
            try transaction.db.execute(
                "UPDATE launch SET due_at = ?2 WHERE id = ?1", launch.id,
                (transaction.now + Self.releaseInterval * place).milliseconds)
        }
        if !overdue.isEmpty { transaction.aftermath.hasDueLaunches = true }
    }

    /// Finished launches are kept for this long.
    package static let launchRetention = Duration.seconds(30 * 86_400)

    /// Drops finished launches with their attempts, up to `limit`.
    ///
    /// - Returns: Whether there may be more.
    package func sweepLaunches(at now: Timestamp, limit: Int) async throws -> Bool {
        try await database.write { db in
            let old = try db.all(
                """
                SELECT id FROM launch WHERE completed_at IS NOT NULL AND completed_at <= ?1 AND state >= 4 \
                ORDER BY completed_at LIMIT ?2
                """, (now - Self.launchRetention).milliseconds, limit
            ) { $0.integer(0) }
            for id in old {
                try db.execute("DELETE FROM launch_attempt WHERE launch = ?1", id)
                try db.execute("DELETE FROM launch WHERE id = ?1", id)
            }
            return old.count == limit
        }
    }
}
