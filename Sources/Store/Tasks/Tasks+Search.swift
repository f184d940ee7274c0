import Core
import SQL

// The documents may be sealed, so a search decodes the values that it compares: one row for each listed task, and
// another for each match.
extension Store.Tasks {
    /// A listed task with the result of a search; without a search, `nil` for a task of a deleted session.
    func search<Known>(
        _ id: TaskID, at position: Int64, for search: TaskSearch?, _ db: Connection, known: (TaskStamp) -> Known?
    ) throws -> SearchedTask<Known>? {
        guard let search else {
            return try find(id, db, known: known).map { SearchedTask(position: position, task: $0) }
        }
        let task = try matches(id, search, db) ? find(id, db, known: known) : nil
        return SearchedTask(position: position, task: task)
    }

    private func matches(_ id: TaskID, _ search: TaskSearch, _ db: Connection) throws -> Bool {
        try db.first(
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
        } ?? false
    }
}
