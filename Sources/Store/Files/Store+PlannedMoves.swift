package import Core
import SQL

extension Store {
    /// Notes where the content of a task is about to be moved.
    ///
    /// - Returns: False where the task is completed already, so that nothing is to be moved.
    package func plan(_ move: PlannedMove, of task: TaskID) async throws -> Bool {
        try await database.write { [documents] db in
            try db.change(
                "UPDATE live SET move_document = ?2 WHERE task = ?1", task.rawValue, documents.encode(move)) > 0
        }
    }

    /// Moves that this node has planned, and of which no commit tells how they went.
    package func plannedMoves() async throws -> [(task: TaskID, move: PlannedMove)] {
        try await database.read { [documents, node] db in
            try db.all(
                """
                SELECT task, move_document FROM live WHERE move_document IS NOT NULL AND (node IS NULL OR node = ?1) \
                ORDER BY task
                """, node
            ) { row in
                (TaskID(row.integer("task")), try documents.decode(PlannedMove.self, row.blob("move_document")))
            }
        }
    }
}
