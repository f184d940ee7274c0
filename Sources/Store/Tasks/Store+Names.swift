package import Core
import SQL

/// The public names of rows, for the log.
extension Store {
    /// The identifiers of a session's app and of the session itself.
    ///
    /// - Throws: ``DomainError/notFound``.
    package func names(of session: SessionID) async throws -> (app: String, session: String) {
        try await database.read { db in
            try db.first(
                """
                SELECT a.identifier AS app, s.identifier AS session FROM session s JOIN app a ON a.id = s.app \
                WHERE s.id = ?1
                """, session.rawValue
            ) { ($0.text("app"), $0.text("session")) }
        }.orNotFound()
    }

    /// - Throws: ``DomainError/notFound``.
    package func name(of task: TaskID) async throws -> TaskName {
        try await database.read { db in
            try db.first(
                """
                SELECT a.identifier AS app, s.identifier AS session, t.number, t.client_task_id FROM task t \
                JOIN session s ON s.id = t.session JOIN app a ON a.id = s.app WHERE t.id = ?1
                """, task.rawValue
            ) { row in
                TaskName(
                    app: row.text("app"), session: row.text("session"), number: row.integer("number"),
                    clientTaskId: row.textOrNil("client_task_id"))
            }
        }.orNotFound()
    }
}
