package import Core
import SQL

extension Store.Tasks {
    /// Up to `limit` tasks of a session after a number, each with the result of a search, if there is one.
    ///
    /// Without a search, tasks of a deleted session are left out.
    package func list<Known>(
        in session: SessionID, _ filter: TaskFilter, _ span: ListSpan = ListSpan(), matching search: TaskSearch? = nil,
        after number: Int64, limit: Int, known: @escaping @Sendable (TaskStamp) -> Known?
    ) async throws -> [SearchedTask<Known>] {
        try await database.read { db in
            try Self.listedTaskIDs(in: session, filter, span, after: number, limit: limit, db).compactMap {
                try self.search($0, at: $1, for: search, db, known: known)
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
        return try taskIDs(
            session, filter, after: stretch.low, below: stretch.high, descending: span.isDescending, limit: limit, db)
    }

    package func list(
        in session: SessionID, _ filter: TaskFilter, _ span: ListSpan = ListSpan(), after number: Int64, limit: Int
    ) async throws -> [TaskRecord] {
        try await list(in: session, filter, span, after: number, limit: limit, known: { _ in Never?.none })
            .compactMap(\.task?.record)
    }
}
