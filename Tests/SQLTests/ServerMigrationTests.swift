import Base
import TestSupport
import Testing

@testable import SQL

@Suite(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
struct `Migrations on a server` {
    private static let second = Migration(
        version: 2, sql: "ALTER TABLE thing ADD COLUMN colour TEXT; UPDATE thing SET colour = 'red';")

    private let home: PostgreSQLDatabase

    init() async throws { home = try await SharedPostgreSQL.database() }

    @Test func `Go forward and keep what is there`() async throws {
        let old = try home.open()
        try await old.add("a")
        old.close()
        for _ in 0..<2 {
            let new = try home.open(migrations: Migration.things + [Self.second])
            #expect(try await new.read { try $0.first("SELECT colour FROM thing") { $0.text(0) } } == "red")
            new.close()
        }
    }

    @Test(arguments: ["read committed", "serializable"])
    func `Many at once do each of them once`(_ isolation: String) async throws {
        try await home.query("ALTER DATABASE \(home.name) SET default_transaction_isolation = '\(isolation)'")
        let first = Migration(version: 3, sql: "CREATE TABLE entry (number INTEGER); INSERT INTO entry VALUES (1);")
        let last = Migration(version: 4, sql: "INSERT INTO entry VALUES (2); SELECT pg_sleep(0.1);")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<6 {
                group.addTask { [home] in
                    try await onThread { try PostgreSQLScript(home.place()).migrate([first, last]) }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await home.query("SELECT number FROM entry ORDER BY 1") == [["1"], ["2"]])
        #expect(try await home.query("SELECT version FROM schema_version") == [["4"]])
    }

    @Test func `A schema of a newer program is refused and left alone`() async throws {
        try home.open(migrations: Migration.things + [Self.second]).close()
        let error = #expect(throws: SQLError.self) { try home.open() }
        #expect(error?.code == .unknownSchema)
        #expect(error?.message.contains("schema version 2, this program knows versions up to 1") == true)
        try home.open(migrations: Migration.things + [Self.second]).close()
    }

    @Test func `A schema older than the first step is refused and left alone`() async throws {
        try home.open().close()
        let error = #expect(throws: SQLError.self) { try home.open(migrations: [Self.second]) }
        #expect(error?.code == .unknownSchema)
        #expect(error?.message.contains("schema version 1, this program knows versions from 2 on") == true)
        try home.open().close()
    }

    @Test func `One that fails is undone whole and says which it was`() async throws {
        let broken = Migration(
            version: 2, sql: "CREATE TABLE other (id INTEGER) STRICT; INSERT INTO nowhere VALUES (1)")
        let error = #expect(throws: SQLError.self) { try home.open(migrations: Migration.things + [broken]) }
        #expect(error?.message == #"migration to version 2: relation "nowhere" does not exist"#)
        #expect(try await home.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'").isEmpty)
        #expect(try await home.open().names() == [])
    }
}
