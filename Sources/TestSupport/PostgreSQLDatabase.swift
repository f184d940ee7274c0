/// A database of a test. Releasing the last reference drops it, even with open sessions.
package final class PostgreSQLDatabase: Sendable {
    package let server: PostgreSQL
    package let name: String

    init(_ server: PostgreSQL, _ name: String) {
        self.server = server
        self.name = name
    }

    deinit {
        let (server, name) = (server, name)
        Task { [weak server] in
            // A removed server has no databases, and a stopped one keeps them.
            try? await server?.drop(name)
        }
    }

    /// The connection string for libpq and `psql`.
    package var connection: String { server.connection(name) }

    /// The connection string with other ports of 127.0.0.1, of which the first that accepts writes is used.
    package func connection(_ ports: UInt16...) -> String {
        "postgresql://test@\(ports.map { "127.0.0.1:\($0)" }.joined(separator: ","))/\(name)"
    }

    /// A consistent copy, even while the database is in use.
    package func copy() async throws -> PostgreSQLDatabase { try await server.copy(of: name) }

    /// Runs SQL in one transaction and returns the rows of its results, NULL as an empty field. Throws
    /// `ChildProcess.Failed` with the server's message if it refuses.
    ///
    /// - Parameter port: The port of a proxy for the server; `nil` for the server's own.
    @discardableResult
    package func query(_ sql: String, port: UInt16? = nil) async throws -> [[String]] {
        try await server.query(sql, in: name, port: port)
    }
}

/// A server that all tests share, from the first use to the end of the process.
package actor SharedPostgreSQL {
    private static let one = SharedPostgreSQL()

    private var server: Task<PostgreSQL, any Error>?

    /// Creates a database.
    package static func database() async throws -> PostgreSQLDatabase { try await one.get().database() }

    private func get() async throws -> PostgreSQL {
        let task = server ?? Task { try await PostgreSQL() }
        server = task
        return try await task.value
    }
}
