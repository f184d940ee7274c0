import Base
import TestSupport
import Testing

@testable import SQL

@Suite(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
struct `Reads on a server` {
    private let home: PostgreSQLDatabase

    init() async throws { home = try await SharedPostgreSQL.database() }

    @Test func `A closure that reads sees one snapshot`() async throws {
        try await EitherEngine.expectOneMoment(home.open())
    }

    @Test func `A closure that reads cannot write, and gets an error`() async throws {
        let database = try home.open(readers: 1)
        await #expect(throws: SQLError.self) {
            try await database.read { try $0.execute("INSERT INTO thing (name) VALUES ('a')") }
        }
        await #expect(throws: SQLError.self) {
            try await database.read { try $0.change("INSERT INTO thing (name) VALUES ('a')") }
        }
        #expect(try await database.names() == [])
    }

    @Test func `An error of one read does not affect the next one`() async throws {
        let database = try home.open(readers: 1)
        for _ in 0..<3 {
            await #expect(throws: SQLError.self) { try await database.read { try $0.exists("SELECT 1 / 0") } }
            await #expect(throws: SQLError.self) {
                // The error is caught, but the rest of the read is useless.
                try await database.read { _ = try? $0.exists("SELECT 1 / 0") }
            }
            #expect(try await database.names() == [])
        }
    }

    @Test func `A read that takes too long is interrupted, here and on the server`() async throws {
        let database = try home.open(readers: 1, longestRead: .milliseconds(200))
        let start = ContinuousClock.now
        let error = await #expect(throws: SQLError.self) {
            try await database.read { try $0.exists("SELECT pg_sleep(60)") }
        }
        #expect(error?.isInterrupted == true)
        #expect(ContinuousClock.now - start < .seconds(30))
        // On a busy machine a read may exceed its limit.
        try await eventually("the next read is answered") { (try? await database.names()) == [] }
        try await eventually("the server gives up", within: .seconds(30)) {
            try await home.query(
                "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"
            ).isEmpty
        }
    }

    @Test func `A read is interrupted even if the network is down`() async throws {
        let proxy = try CuttingProxy(to: home.server.port)
        let database = try home.open(through: proxy, readers: 1, longestRead: .milliseconds(500))
        // On a busy machine a read may exceed its limit.
        try await eventually("a read is answered") { (try? await database.names()) == [] }
        proxy.hold(true)
        // Prevents an endless wait.
        let release = Task {
            try await Task.sleep(for: .seconds(30))
            proxy.hold(false)
        }
        let start = ContinuousClock.now
        let error = await #expect(throws: SQLError.self) { try await database.names() }
        #expect(error?.isInterrupted == true)
        #expect(ContinuousClock.now - start < .seconds(20))
        release.cancel()
        proxy.hold(false)
        try await eventually("the next read is answered") { (try? await database.names()) == [] }
    }
}
