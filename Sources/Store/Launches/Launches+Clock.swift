package import Core
import SQL

extension Store.Launches {
    /// Ends overdue states: a launch in `launched` beyond its deadline fails its attempt, an expired lease is released.
    ///
    /// - Parameter jitter: Returns numbers in `0..<1`, one for each launch.
    package func expire(
        at now: Timestamp, limit: Int, jitter: @escaping @Sendable () -> Double
    ) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let due = try transaction.db.all(
                """
                SELECT id, app, state, kind, expires_at FROM launch \
                WHERE state IN ('delivering', 'launched') AND due_at <= ?1 ORDER BY due_at, id LIMIT ?2
                """, now.milliseconds, limit
            ) {
                (
                    id: $0.integer("id"), app: AppID($0.integer("app")),
                    phase: try $0.value("state") as LaunchState.Phase, kind: try $0.value("kind") as LaunchKind,
                    expiresAt: $0.timeOrNil("expires_at")
                )
            }
            for launch in due {
                guard let app = try store.apps.read(launch.app, transaction.db) else {
                    try store.upkeep.remove(launch: launch.id, transaction.db)
                    continue
                }
                if launch.phase == .delivering {
                    try transaction.move(launch: launch.id, .leaseExpired)
                    continue
                }
                let failure = LaunchState.Failure(
                    schedule: launch.kind == .performFetch ? .once : .standard, jitter: jitter(),
                    expiresAt: launch.expiresAt)
                try transaction.db.execute(
                    """
                    UPDATE launch_attempt SET error = 'notCompleted' WHERE launch = ?1 \
                    AND number = (SELECT attempts FROM launch WHERE id = ?1)
                    """, launch.id)
                if try transaction.move(launch: launch.id, .deadlinePassed(failure)).contains(.giveUp) {
                    try self.giveUp(launch.id, app, transaction)
                }
            }
        }.1
    }

    /// Recovers launches after a start: launches in flight are sent again with the same id, with no attempt charged.
    ///
    /// Launches that have been overdue for a while are spread. A sent fetch runs into its deadline. Interrupted parking
    /// or releasing of launches continues.
    package func recover(at now: Timestamp) async throws -> Aftermath {
        var aftermath = try await transact(at: now) { transaction in
            let others = try store.nodes.livingOthers(transaction.db)
            let nodes = try transaction.db.all(
                "SELECT DISTINCT node FROM launch WHERE state = 'delivering' AND due_at IS NOT NULL"
            ) { $0.textOrNil(0) }
            for node in nodes where node.map({ !others.contains($0) }) ?? true {
                try self.takeBack(of: node, transaction)
            }
        }.1
        while try await noteLongStop(at: now) {}
        var hasMore = true
        while hasMore {
            let (more, left) = try await settle(at: now)
            hasMore = more
            aftermath.merge(left)
        }
        return aftermath
    }

    /// Requeues the launches that a node was delivering. A sent fetch runs into its deadline.
    func takeBack(of node: String?, _ transaction: Transaction) throws {
        let interrupted = try transaction.db.all(
            """
            SELECT id, kind, expires_at FROM launch WHERE state = 'delivering' AND due_at IS NOT NULL \
            AND coalesce(node, '') = ?1
            """, node ?? ""
        ) { ($0.integer("id"), try $0.value("kind") as LaunchKind, $0.time("expires_at")) }
        for (id, kind, expiresAt) in interrupted {
            if kind == .performFetch {
                try transaction.move(launch: id, .succeeded(deadline: expiresAt))
            } else {
                try transaction.move(launch: id, .interrupted)
            }
        }
    }

    /// The shortest stop that receivers notice: launches that fell due during a longer one are spread.
    static let longStop = Duration.seconds(60)

    /// Schedules the settling of apps whose launches a long stop has left overdue.
    ///
    /// - Returns: Whether there may be more such apps.
    private func noteLongStop(at now: Timestamp) async throws -> Bool {
        try await database.write { db in
            try db.change(
                """
                UPDATE app SET settled_launch = 0, next_release_at = ?2, next_launch_at = NULL WHERE id IN \
                (SELECT id FROM app WHERE next_launch_at <= ?1 LIMIT ?3)
                """, (now - Self.longStop).milliseconds, now.milliseconds, Self.settledAtOnce) == Self.settledAtOnce
        }
    }

    /// The retention of finished launches.
    package static let retention = Duration.seconds(30 * 86_400)
}
