import Base
import TestSupport
import Testing

@testable import SQL

@Suite(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
struct `Migrations on a server` {
    private let home: PostgreSQLDatabase

    init() async throws { home = try await SharedPostgreSQL.database() }

    private func open(_ migrations: [Migration]) throws -> Database { try home.open(migrations: migrations) }

    @Test func `Migrations run forward and keep the rows`() async throws { try await EitherEngine.expectForward(open) }

    @Test(arguments: ["read committed", "serializable"])
    func `Concurrent nodes run each migration once`(_ isolation: String) async throws {
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

    @Test func `A newer schema is refused and left unchanged`() throws {
        try EitherEngine.expectNewerRefused(open)
    }

    @Test func `A schema older than the first step is refused and left unchanged`() throws {
        try EitherEngine.expectOlderRefused(open)
    }

    @Test func `A failed migration is rolled back and named`() async throws {
        try await EitherEngine.expectUndoneWhole(#"relation "nowhere" does not exist"#, open)
        #expect(try await home.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'").isEmpty)
        #expect(try await home.open().names() == [])
    }
}
