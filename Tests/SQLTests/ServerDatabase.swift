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
        node: String = "test", contents: String? = nil, options: String = "", through proxy: CuttingProxy? = nil,
        keepsStatements: Bool = true,
        limits: PostgreSQLWriter.Limits = .init(heartbeat: 3_600_000, patience: 60_000), readers: Int = 2,
        longestRead: Duration = .seconds(60), migrations: [Migration] = Migration.things,
        onCommit: @escaping @Sendable (Commit) -> Void = { _ in },
        onFatalError: @escaping @Sendable (SQLError) -> Never = { preconditionFailure("\($0)") }
    ) throws -> Database {
        try Database.open(
            place(options: options, through: proxy, keepsStatements: keepsStatements),
            node: PostgreSQLNode(id: node, contents: contents), limits: limits, readers: readers,
            longestRead: longestRead, migrations: migrations, log: .none,
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
