package import Core
import SQL

extension Store {
    /// Notes where the content of a task is about to be moved.
    ///
    /// - Returns: False where the task is over, was deleted, or is another node's, so that nothing is to be moved.
    package func plan(_ move: PlannedMove, of task: TaskID) async throws -> Bool {
        try await database.write { [documents, node] db in
            try db.change(
                """
                UPDATE live SET move_document = ?2 WHERE task = ?1 AND (node IS NULL OR node = ?3) \
                AND EXISTS (SELECT 1 FROM session s JOIN app a ON a.id = s.app \
                WHERE s.id = live.session AND s.forgotten = 0)
                """, task.rawValue, documents.encode(move), node) > 0
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
