package import Core
import SQL

/// How much there is of what.
package struct StoreFigures: Sendable {
    /// Tasks that are not completed, by what they do or wait for. Of no kind more than ``limit`` are counted.
    package var tasks: [Phase: Int64] = [:]
    /// When the task was created that has waited longest among those that could run.
    package var oldestQueued: Timestamp?
    /// Launches that are not over, counted in the same way.
    package var launches: [LaunchState.Phase: Int64] = [:]
    /// Bytes of contents and bodies.
    package var storedBytes: Int64 = 0

    /// What counting one kind costs at most, in rows.
    package static let limit: Int64 = 100_000

    package enum Phase: String, CaseIterable, Sendable {
        /// Under way.
        case active
        /// Due, behind others.
        case queued
        /// To begin, or to be tried again, at a moment.
        case scheduled
        case awaitingAnswer, waitingForDisk, quarantined
        /// The rest: suspended tasks, and those on their way out.
        case suspended
    }
}

extension Store {
    /// Counts what is kept as a number, or stands in an index of its own: not more than a few look-ups, and
    /// ``StoreFigures/limit`` rows of a kind.
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
