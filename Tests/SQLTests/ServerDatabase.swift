import Base
import TestSupport

@testable import SQL

extension PostgreSQLDatabase {
    /// Opens the database like a node.
    ///
    /// - Parameters:
    ///   - options: Further parameters of the address, as `?name=value`.
    ///   - proxy: The network to the server; `nil` for a direct connection.
    ///   - limits: By default, the node sends no heartbeats and has unlimited patience.
    func open(
        node: String = "test", options: String = "", through proxy: CuttingProxy? = nil, keepsStatements: Bool = true,
        limits: PostgreSQLWriter.Limits = .init(heartbeat: 3_600_000, patience: 60_000), readers: Int = 2,
        longestRead: Duration = .seconds(60), migrations: [Migration] = Migration.things,
        onCommit: @escaping @Sendable (Commit) -> Void = { _ in },
        onFatalError: @escaping @Sendable (SQLError) -> Never = { preconditionFailure("\($0)") }
    ) throws -> Database {
        try Database.open(
            place(options: options, through: proxy, keepsStatements: keepsStatements),
            fence: .test(node), limits: limits, readers: readers, longestRead: longestRead, migrations: migrations,
            log: .none,
            // The database and the network exist as long as the handle is open.
            onCommit: { commit in withExtendedLifetime((self, proxy)) { onCommit(commit) } },
            onFatalError: onFatalError)
    }

    func place(
        options: String = "", through proxy: CuttingProxy? = nil, keepsStatements: Bool = true
    ) -> PostgreSQLServer {
        let port = proxy?.port ?? server.port
        return PostgreSQLServer(
            connection.replacing(":\(server.port)/", with: ":\(port)/") + options, keepsStatements: keepsStatements)
    }

    /// Ends all other sessions of the database, like an administrator or a server that shuts down.
    func endSessions() async throws {
        try await query(
            """
            SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()
            """)
    }
}

extension Fence {
    /// A fence as the store has one, with a table of its own.
    static func test(_ name: String) -> Fence {
        Fence(
            heartbeat: .seconds(3600),
            enter: { db, token throws(SQLError) in
                try db.execute(
                    """
                    CREATE TABLE IF NOT EXISTS holder (name TEXT PRIMARY KEY, token BIGINT NOT NULL, \
                    number BIGINT NOT NULL, signed_at TIMESTAMPTZ NOT NULL)
                    """)
                try db.execute(
                    """
                    INSERT INTO holder (name, token, number, signed_at) VALUES (?1, ?2, 0, now()) \
                    ON CONFLICT (name) DO UPDATE SET token = excluded.token, number = 0, signed_at = now()
                    """, name, token)
            },
            sign: { db, token, number throws(SQLError) in
                try db.execute(
                    """
                    WITH signed AS (UPDATE holder SET number = ?3, signed_at = now() WHERE name = ?1 AND token = ?2 \
                    RETURNING 1) SELECT 1 / (SELECT count(*) FROM signed)
                    """, name, token, number)
            },
            settle: { db, token, next throws(SQLError) in
                var found: Int64?
                try db.forEach(
                    "UPDATE holder SET token = ?3 WHERE name = ?1 AND (token = ?2 OR token = ?3) RETURNING number",
                    name, token, next
                ) { row throws(SQLError) in
                    found = row.integer("number")
                    return true
                }
                return found
            },
            leave: { db, token throws(SQLError) in
                try db.execute("DELETE FROM holder WHERE name = ?1 AND token = ?2", name, token)
            })
    }
}
