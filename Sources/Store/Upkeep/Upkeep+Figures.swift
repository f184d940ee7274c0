package import Core
import SQL

/// Counts of the store's contents, for metrics.
package struct StoreFigures: Sendable {
    /// Unfinished tasks by phase. At most ``limit`` of each phase are counted.
    package var tasks: [Phase: Int64] = [:]
    /// The creation time of the task that has been queued longest.
    package var oldestQueued: Timestamp?
    /// Open launches, counted in the same way.
    package var launches: [LaunchState.Phase: Int64] = [:]
    /// Bytes of contents and bodies.
    package var storedBytes: Int64 = 0

    /// The maximum number of rows read to count one kind.
    package static let limit: Int64 = 100_000

    package enum Phase: String, CaseIterable, Sendable {
        /// In flight.
        case active
        /// Due and queued.
        case queued
        /// Delayed until its start or its retry.
        case scheduled
        case awaitingAnswer, waitingForDisk, quarantined
        /// Waiting for the transfer of another task.
        case following
        /// The rest: suspended tasks, and tasks of deleted sessions.
        case suspended
    }
}

extension Store.Upkeep {
    /// Reads the counts that are stored as numbers or have an index of their own: a few look-ups, and at most
    /// ``StoreFigures/limit`` rows of each kind.
    package func figures() async throws -> StoreFigures {
        try await database.read { db in
            var figures = StoreFigures()
            let most = StoreFigures.limit
            let count: (Row) -> Int64 = { $0.integer(0) }
            let unfinished = try db.first(
                """
                SELECT coalesce(CAST(sum(unfinished_tasks) AS BIGINT), 0), \
                coalesce(CAST(sum(stored_bytes) AS BIGINT), 0) FROM app
                """
            ) { row in
                figures.storedBytes = row.integer(1)
                return row.integer(0)
            }
            figures.tasks[.queued] = try db.first(
                """
                SELECT coalesce(CAST(sum(queued) AS BIGINT), 0) \
                FROM (SELECT queued FROM lane WHERE queued > 0 LIMIT ?1) AS few
                """, most, read: count)
            figures.tasks[.active] = try db.first(
                "SELECT count(*) FROM (SELECT 1 FROM live WHERE stage = 'active' LIMIT ?1) AS few", most, read: count)
            figures.tasks[.quarantined] = try db.first(
                "SELECT count(*) FROM (SELECT 1 FROM live WHERE stage = 'quarantined' LIMIT ?1) AS few", most,
                read: count)
            figures.tasks[.waitingForDisk] = try db.first(
                "SELECT count(*) FROM (SELECT 1 FROM live WHERE stage = 'waitingForDisk' LIMIT ?1) AS few", most,
                read: count)
            figures.tasks[.scheduled] = try db.first(
                "SELECT count(*) FROM (SELECT 1 FROM live WHERE due_at IS NOT NULL LIMIT ?1) AS few", most, read: count)
            figures.tasks[.awaitingAnswer] = try db.first(
                "SELECT count(*) FROM (SELECT 1 FROM live WHERE question IS NOT NULL LIMIT ?1) AS few", most,
                read: count)
            figures.tasks[.following] = try db.first(
                """
                SELECT count(*) FROM (SELECT 1 FROM live WHERE flight IS NOT NULL AND stage = 'following' LIMIT ?1) AS few
                """, most, read: count)
            figures.tasks[.suspended] = max(0, (unfinished ?? 0) - figures.tasks.values.reduce(0, +))
            figures.oldestQueued =
                try db.first(
                    """
                    SELECT min(t.created_at) FROM (SELECT id FROM lane WHERE queued > 0 LIMIT 512) AS l \
                    JOIN task t ON t.id = (SELECT task FROM live WHERE lane = l.id AND stage = 'queued' \
                    ORDER BY priority DESC, number LIMIT 1)
                    """
                ) { $0.timeOrNil(0) } ?? nil
            for state in [LaunchState.Phase.pending, .delivering, .launched] {
                figures.launches[state] = try db.first(
                    """
                    SELECT count(*) FROM (SELECT 1 FROM launch WHERE state = ?1 AND due_at IS NOT NULL LIMIT ?2) AS few
                    """, state.rawValue, most, read: count)
            }
            let open = try db.first(
                """
                SELECT count(*) FROM (SELECT 1 FROM app a CROSS JOIN launch l \
                WHERE l.app = a.id AND l.ended_at IS NULL LIMIT ?1) AS few
                """, most, read: count)
            figures.launches[.parked] = max(0, (open ?? 0) - figures.launches.values.reduce(0, +))
            return figures
        }
    }
}
