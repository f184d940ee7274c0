package import Core
import SQL

/// The content of a task is being moved to its destination, which lasts for a rename and a commit. The caller repeats
/// the command afterwards.
package struct MoveUnderWay: Error, Hashable {
    package init() {}
}

extension Store.Files {
    /// Records a planned move of a task's content. From then on the task ends with the outcome of the move.
    ///
    /// - Parameter request: The transferred request; `nil` for any.
    /// - Returns: False if the task is completed, deleted, claimed by another node, or has another request, so that nothing
    ///   may be moved.
    package func plan(_ move: PlannedMove, of task: TaskID, for request: TransferRequest? = nil) async throws -> Bool {
        try await database.write { [documents, node] db in
            if let request, try store.tasks.read(task, db)?.specification.request != request { return false }
            return try db.change(
                """
                UPDATE live SET move_document = ?2 WHERE task = ?1 AND (node IS NULL OR node = ?3) \
                AND EXISTS (SELECT 1 FROM session s JOIN app a ON a.id = s.app \
                WHERE s.id = live.session AND s.forgotten = 0)
                """, task.rawValue, documents.encode(move), node) > 0
        }
    }

    /// Moves that this node has planned and whose outcome no commit has recorded.
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

    /// Deletes the moves that this node had planned when it ended, after their inspection.
    package func forgetPlannedMoves() async throws {
        try await database.write { [node] db in
            try db.execute(
                """
                UPDATE live SET move_document = NULL WHERE move_document IS NOT NULL AND (node IS NULL OR node = ?1)
                """, node)
        }
    }

    /// Records that the task's request changed while its content is being moved.
    func outdateMove(of live: LiveTask, _ db: Connection) throws {
        guard let document = live.plannedMove else { return }
        var move = try documents.decode(PlannedMove.self, document)
        move.isOutdated = true
        try db.execute(
            "UPDATE live SET move_document = ?2 WHERE task = ?1", live.id.rawValue, documents.encode(move))
    }

    /// Checks that no content of a session's tasks is being moved to its destination.
    ///
    /// - Throws: ``MoveUnderWay``.
    func checkMoves(in session: SessionID, _ db: Connection) throws {
        let moves = try db.all(
            "SELECT move_document FROM live WHERE move_document IS NOT NULL AND +session = ?1", session.rawValue
        ) { $0.blob(0) }
        for move in moves { try checkMove(move) }
    }

    /// Checks that the content of a task is not being moved to its destination.
    ///
    /// - Throws: ``MoveUnderWay``.
    func checkMove(_ document: [UInt8]?) throws {
        guard let document else { return }
        if try !documents.decode(PlannedMove.self, document).isCopying { throw MoveUnderWay() }
    }
}
