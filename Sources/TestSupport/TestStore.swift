import Base
import Glibc
import SQL
package import Store

/// Where the stores of the tests are: in files, or on a server where `TEST_STORE` is `postgresql`.
package enum TestStore {
    package static let isOnServer = getenv("TEST_STORE").map { String(cString: $0) } == "postgresql"

    /// The place that belongs to a folder; the same one for each store that is opened there.
    package static func place(in folder: TemporaryFolder) async throws -> Store.Place {
        guard isOnServer else { return .file(folder.file("test.db")) }
        return .server(PostgreSQLServer(try await connection(for: folder)), node: "test")
    }

    /// The connection string of the database that belongs to a folder.
    package static func connection(for folder: TemporaryFolder) async throws -> String {
        try await databases.database(for: folder.path).connection
    }

    private static let databases = Databases()

    private actor Databases {
        private var known: [String: PostgreSQLDatabase] = [:]

        func database(for folder: String) async throws -> PostgreSQLDatabase {
            if let database = known[folder] { return database }
            let database = try await SharedPostgreSQL.database()
            known[folder] = database
            return database
        }
    }
}
