package import Core
import SQL

// The documents may be sealed, so a search decodes the values that it compares: one row for each listed task, and
// another for each match.
extension Store.Tasks {
    /// Up to `limit` tasks of a session after a number, each with the result of the search.
    package func search<Known>(
        for search: TaskSearch, in session: SessionID, _ filter: TaskFilter, _ span: ListSpan, after number: Int64,
        limit: Int, known: @escaping @Sendable (TaskStamp) -> Known?
    ) async throws -> [SearchedTask<Known>] {
        try await database.read { db in
            try Self.listedTaskIDs(in: session, filter, span, after: number, limit: limit, db).map { id, number in
                SearchedTask(position: number, task: try self.find(id, matching: search, db, known: known))
            }
        }
    }

    /// Up to `limit` tasks of an app after one of them, each with the result of the search.
    package func search<Known>(
        for search: TaskSearch, of app: AppID, _ filter: TaskFilter, _ span: ListSpan, after id: Int64, limit: Int,
        known: @escaping @Sendable (TaskStamp) -> Known?
    ) async throws -> [SearchedTask<Known>] {
        try await database.read { db in
            try Self.listedTaskIDs(of: app, filter, span, after: id, limit: limit, db).map { id in
                SearchedTask(position: id.rawValue, task: try self.find(id, matching: search, db, known: known))
            }
        }
    }

    private func find<Known>(
        _ id: TaskID, matching search: TaskSearch, _ db: Connection, known: (TaskStamp) -> Known?
    ) throws -> FoundTask<Known>? {
        let isMatch = try db.first(
            "SELECT session, number, specification_document, result_document FROM task WHERE id = ?1", id.rawValue
        ) { row in
            let session = SessionID(row.integer("session"))
            let specification = try documents.decode(
                TaskSpecification.self, row.blob("specification_document"),
                sealedAs: Self.context(session, row.integer("number")))
            return try search.matches(specification) {
                try row.blobOrNil("result_document")
                    .flatMap { try documents.decode(TaskResult.self, $0).response?.suggestedFilename }
            }
        }
        return isMatch == true ? try find(id, db, known: known) : nil
    }
}
