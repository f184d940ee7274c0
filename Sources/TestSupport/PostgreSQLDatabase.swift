/// A database of a test; dropped with the last reference, even while sessions are open.
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
            // A server that is gone has taken it along, and one that is down keeps it.
            try? await server?.drop(name)
        }
    }

    /// How libpq and `psql` get there.
    package var connection: String { server.connection(name) }

    /// How they get there by other ports of 127.0.0.1, of which the first that takes writes is the one.
    package func connection(_ ports: UInt16...) -> String {
        "postgresql://test@\(ports.map { "127.0.0.1:\($0)" }.joined(separator: ","))/\(name)"
    }

    /// A copy of one moment, even while the database is in use.
    package func copy() async throws -> PostgreSQLDatabase { try await server.copy(of: name) }

    /// Sends SQL in one transaction and returns the rows of its answers, NULL as an empty field. Throws
    /// `ChildProcess.Failed` with the server's words where it refuses.
    ///
    /// - Parameter port: That of a proxy which leads to the server; nil for the server's own.
    @discardableResult
    package func query(_ sql: String, port: UInt16? = nil) async throws -> [[String]] {
        try await server.query(sql, in: name, port: port)
    }
}

/// A server that all tests share, from the first who needs it to the end of the process.
package actor SharedPostgreSQL {
    private static let one = SharedPostgreSQL()

    private var server: Task<PostgreSQL, any Error>?

    /// A database of its own.
    package static func database() async throws -> PostgreSQLDatabase { try await one.get().database() }

    private func get() async throws -> PostgreSQL {
        let task = server ?? Task { try await PostgreSQL() }
        server = task
        return try await task.value
    }
}
