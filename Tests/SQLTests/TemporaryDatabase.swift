import Base
import SQL
import TestSupport

extension TemporaryFolder {
    func open(
        _ name: String = "test.db", readers: Int = 2, migrations: [Migration] = Migration.things, log: Log = .none
    ) throws -> Database {
        try Database.open(
            path: file(name), readers: readers, migrations: migrations, log: log,
            onFatalError: { preconditionFailure("\($0)") })
    }
}

extension Migration {
    /// The schema of most tests.
    static let things = [
        Migration(
            version: 1,
            sql: """
                CREATE TABLE thing (
                    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, size INTEGER NOT NULL DEFAULT 0, body BLOB
                ) STRICT;
                """)
    ]
}

extension Database {
    func names() async throws -> [String] {
        try await read { try $0.all("SELECT name FROM thing ORDER BY id") { $0.text(0) } }
    }

    /// The first damage that SQLite finds in the file, or `ok`.
    func check() async throws -> String? {
        try await read { try $0.first("PRAGMA quick_check(1)") { $0.text(0) } }
    }

    func add(_ name: String) async throws {
        try await write { try $0.execute("INSERT INTO thing (name) VALUES (?1)", name) }
    }
}

extension SQLError {
    /// The primary result code of SQLite: the low eight bits of the extended one.
    var primary: Int32? { if case .sqlite(let code) = code { code & 0xFF } else { nil } }
}
