import Base
import Core
import Glibc
import SQL
package import Store

/// The place of the tests' stores: files, or a server if `TEST_STORE` is `postgresql`.
package enum TestStore {
    package static let isOnServer = getenv("TEST_STORE").map { String(cString: $0) } == "postgresql"

    /// The number of a service's nodes, if its tests run on many (`TEST_NODES`): they share a server.
    package static let nodes = isOnServer ? getenv("TEST_NODES").flatMap { Int(String(cString: $0)) } ?? 1 : 1

    /// The location of a folder's store; the same one for each store that is opened there.
    package static func location(in folder: TemporaryFolder) async throws -> Store.Location {
        guard isOnServer else {
            let path = folder.file("test.db")
            if fileLength(path) == nil { folder.write(try emptyFile.get(), to: "test.db") }
            return .file(path)
        }
        return .server(PostgreSQLServer(try await connection(for: folder)), node: "test")
    }

    /// The connection string of a folder's database.
    package static func connection(for folder: TemporaryFolder) async throws -> String {
        try await databases.database(for: folder.path).connection
    }

    /// A copy of a folder's store, even while it is in use. The copy exists as long as the returned value.
    package static func copy(of folder: TemporaryFolder) async throws -> (Store.Location, PostgreSQLDatabase) {
        let copy = try await databases.database(for: folder.path).copy()
        try await copy.query("DELETE FROM node")
        return (.server(PostgreSQLServer(copy.connection), node: "copy"), copy)
    }

    /// The variables that name a data folder's store to a process, if a server has it.
    static func environment(_ arguments: [String]) async throws -> [String: String] {
        guard let flag = arguments.firstIndex(of: "--data-dir"), flag + 1 < arguments.count else { return [:] }
        let folder = arguments[flag + 1].split(separator: "/").dropLast().joined(separator: "/")
        return await databases.known("/" + folder).map { ["URLSESSIOND_STORE": $0.connection] } ?? [:]
    }

    // MARK: Empty stores, of which new ones are copies: on a server a copy costs a fifth of the migrations

    private static let emptyFile = Result {
        let folder = TemporaryFolder()
        try migrate(.file(folder.file("empty.db")))
        return readFile(folder.file("empty.db")) ?? []
    }

    private static func migrate(_ location: Store.Location) throws {
        let store = try Store(
            location, sealer: Sealer(masterKey: [UInt8](repeating: 0, count: 32)),
            policies: Store.Policies(contentRetention: .zero, unacknowledgedRetention: .zero) { _ in
                Presence(isAttached: false, lastDetachedAt: Timestamp(milliseconds: 0))
            }, log: .none, onFatalError: { preconditionFailure("\($0)") })
        store.close()
    }

    private static let databases = Databases()

    private actor Databases {
        private var known: [String: PostgreSQLDatabase] = [:]
        private var template: Task<PostgreSQLDatabase, any Error>?

        func known(_ folder: String) -> PostgreSQLDatabase? { known[folder] }

        func database(for folder: String) async throws -> PostgreSQLDatabase {
            if let database = known[folder] { return database }
            let template = self.template ?? Task { try await Self.empty() }
            self.template = template
            let source = try await template.value
            let database = try await source.server.database(template: source.name)
            known[folder] = database
            return database
        }

        private static func empty() async throws -> PostgreSQLDatabase {
            let database = try await SharedPostgreSQL.database()
            try TestStore.migrate(.server(PostgreSQLServer(database.connection), node: "template"))
            try await database.query("DELETE FROM node")
            return database
        }
    }
}
