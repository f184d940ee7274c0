import Base
import TestSupport

@testable import SQL

extension PostgreSQLDatabase {
    /// Opens it as a node does.
    ///
    /// - Parameters:
    ///   - options: What else the address says, as `?name=value`.
    ///   - proxy: The network that leads to the server; nil for one that never fails.
    ///   - limits: By default, the node never speaks unasked, and no server is away for too long.
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
            // It is there for as long as somebody has it open, and so is the network.
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

    /// Ends all sessions in the database but that which asks, as an administrator or a server that shuts down does.
    func endSessions() async throws {
        try await query(
            """
            SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()
            """)
    }
}
