package import Core
import SQL

extension Store.Tasks {
    /// Up to `limit` tasks of a session after a number.
    package func list<Known>(
        in session: SessionID, _ filter: TaskFilter, _ span: ListSpan = ListSpan(), after number: Int64, limit: Int,
        known: @escaping @Sendable (TaskStamp) -> Known?
    ) async throws -> [FoundTask<Known>] {
        try await database.read { db in
            try Self.listedTaskIDs(in: session, filter, span, after: number, limit: limit, db).compactMap {
                try self.find($0.0, db, known: known)
            }
        }
    }

    /// Identifiers and numbers of up to `limit` matching tasks of a session after a number, in the order of the span.
    static func listedTaskIDs(
        in session: SessionID, _ filter: TaskFilter, _ span: ListSpan, after number: Int64, limit: Int, _ db: Connection
    ) throws -> [(TaskID, Int64)] {
        let stretch = try span.stretch(after: number) { place in
            try db.first(
                "SELECT number, created_at FROM task WHERE session = ?1 AND number >= ?2 ORDER BY number LIMIT 1",
                session.rawValue, place
            ) { ($0.integer(0), $0.time("created_at")) }
        }
        let list = span.order == .ascending ? taskIDs : newestTaskIDs
        return try list(session, filter, stretch.low, stretch.high, limit, db)
    }

    package func list(
        in session: SessionID, _ filter: TaskFilter, _ span: ListSpan = ListSpan(), after number: Int64, limit: Int
    ) async throws -> [TaskRecord] {
        try await list(in: session, filter, span, after: number, limit: limit, known: { _ in Never?.none }).map(
            \.record)
    }

    /// Identifiers and numbers of up to `limit` matching tasks, the newest first.
    private static func newestTaskIDs(
        _ session: SessionID, _ filter: TaskFilter, after number: Int64, below end: Int64, limit: Int,
        _ db: Connection
    ) throws -> [(TaskID, Int64)] {
        // At most one task has a given name.
        if filter.clientTaskId != nil {
            return try taskIDs(session, filter, after: number, below: end, limit: limit, db)
        }
        return try merged(filter, by: \.1, inOrder: >, limit: limit) {
            try newestTaskIDs(session, $0, after: number, below: end, limit: limit, db)
        }
    }

    /// The newest matching tasks of one alternative, by the same indexes as in ascending order.
    private static func newestTaskIDs(
        _ session: SessionID, _ filter: TaskFilter.Alternative, after number: Int64, below end: Int64, limit: Int,
        _ db: Connection
    ) throws -> [(TaskID, Int64)] {
        let state = filter.state?.rawValue
        let outcome = filter.outcome?.rawValue
        if let group = filter.group {
            return try db.all(
                """
                SELECT id, number FROM task WHERE session = ?1 AND group_name = ?2 AND number > ?3 \
                AND (state = ?4 OR ?4 IS NULL) AND (outcome = ?5 OR ?5 IS NULL) AND number < ?7 \
                ORDER BY number DESC LIMIT ?6
                """, session.rawValue, group, number, state, outcome, limit, end, read: readID)
        }
        if let outcome, outcome != Outcome.succeeded.rawValue {
            return try db.all(
                """
                SELECT id, number FROM task WHERE session = ?1 AND outcome = ?2 AND outcome <> 'succeeded' AND number > ?3 \
                AND number < ?6 AND (state = ?4 OR ?4 IS NULL) ORDER BY number DESC LIMIT ?5
                """, session.rawValue, outcome, number, state, limit, end, read: readID)
        }
        if let state, state != TaskState.completed.rawValue {
            return try db.all(
                """
                SELECT t.id, t.number FROM live l JOIN task t ON t.id = l.task \
                WHERE l.session = ?1 AND l.number > ?2 AND l.number < ?6 AND t.state = ?3 AND (t.outcome = ?4 OR ?4 IS NULL) \
                ORDER BY l.number DESC LIMIT ?5
                """, session.rawValue, number, state, outcome, limit, end, read: readID)
        }
        return try db.all(
            """
            SELECT id, number FROM task WHERE session = ?1 AND number > ?2 AND number < ?6 AND (state = ?3 OR ?3 IS NULL) \
            AND (outcome = ?4 OR ?4 IS NULL) ORDER BY number DESC LIMIT ?5
            """, session.rawValue, number, state, outcome, limit, end, read: readID)
    }
}
