package import Core
import SQL

/// A cancellation of all tasks of a session or an app, which takes several commits.
///
/// It is stored before its first task is cancelled, and until its last one is: a crash leaves it to the next start.
package struct Cancellation: Sendable {
    package let app: AppID
    /// `nil` for all sessions of the app.
    package let session: SessionID?
    package let reason: Int?
    /// The newest task concerned.
    package let newest: TaskID
}

extension Store.Tasks {
    /// Stores a cancellation of all tasks created so far. It replaces an unfinished one of the same session or app.
    func beginCancellation(of app: AppID, _ session: SessionID? = nil, reason: Int?, _ db: Connection) throws {
        try db.execute(
            """
            INSERT INTO cancellation (app, session, reason, newest) \
            VALUES (?1, ?2, ?3, (SELECT coalesce(max(id), 0) FROM task)) \
            ON CONFLICT (app, session) DO UPDATE SET newest = excluded.newest
            """, app.rawValue, session?.rawValue ?? 0, reason)
    }

    /// The unfinished cancellations of an app, or of all apps.
    package func cancellations(of app: AppID? = nil) async throws -> [Cancellation] {
        try await database.read { db in
            try db.all(
                """
                SELECT app, session, reason, newest FROM cancellation WHERE app >= ?1 AND app <= ?2 \
                ORDER BY app, session
                """, app?.rawValue ?? 0, app?.rawValue ?? .max
            ) { row in
                Cancellation(
                    app: AppID(row.integer("app")),
                    session: row.integer("session") == 0 ? nil : SessionID(row.integer("session")),
                    reason: row.intOrNil("reason"), newest: TaskID(row.integer("newest")))
            }
        }
    }

    /// Removes a cancellation whose tasks are cancelled, unless a newer one has replaced it.
    package func finish(_ cancellation: Cancellation) async throws {
        try await database.write { db in
            try db.execute(
                "DELETE FROM cancellation WHERE app = ?1 AND session = ?2 AND newest = ?3", cancellation.app.rawValue,
                cancellation.session?.rawValue ?? 0, cancellation.newest.rawValue)
        }
    }
}
