import Base
import TestSupport
import Testing

@testable import SQL

@Suite(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
struct `Locks of others on a server` {
    private let home: PostgreSQLDatabase
    private let database: Database
    /// How many times the closure ran.
    private let runs = Locked(0)

    init() async throws {
        home = try await SharedPostgreSQL.database()
        database = try home.open()
        for name in ["a", "b"] { try await database.add(name) }
    }

    private func count() -> Int {
        runs.withLock { runs in
            runs += 1
            return runs
        }
    }

    private func waits(for event: String) async throws -> Bool {
        try await home.query(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND \(event)"
        ).count == 1
    }

    @Test func `A write that another session's lock is in the way of is done once that is gone`() async throws {
        let holder = Task { [home] in
            _ = try? await home.query("UPDATE thing SET size = 1 WHERE name = 'a'; SELECT pg_sleep(600)")
        }
        try await eventually("it is held") { try await waits(for: "wait_event = 'PgSleep'") }
        async let write: Void = database.write { [self] db in
            if count() == 1 { try db.execute("SET LOCAL lock_timeout = '50ms'") }
            try db.execute("UPDATE thing SET size = size + 2 WHERE name = 'a'")
        }
        try await eventually("it is tried again") { runs.withLock { $0 } == 2 }
        try await home.query(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event = 'PgSleep'
            """)
        try await write
        await holder.value
        #expect(try await home.query("SELECT size FROM thing ORDER BY id") == [["2"], ["0"]])
    }

    @Test func `A write that a deadlock undid is done again`() async throws {
        let gate = Gate()
        async let write: Void = database.write { [self] db in
            let isFirst = count() == 1
            _ = try db.change("UPDATE thing SET size = size + 1 WHERE name = 'a'")
            if isFirst { gate.pass() }
            try db.execute("SET LOCAL deadlock_timeout = '10ms'")
            try db.execute("UPDATE thing SET size = size + 1 WHERE name = 'b'")
        }
        try await eventually { gate.waiting == 1 }
        async let other = home.query(
            """
            SET deadlock_timeout = '1h';
            UPDATE thing SET size = size + 10 WHERE name = 'b';
            UPDATE thing SET size = size + 10 WHERE name = 'a'
            """)
        try await eventually("it waits") { try await waits(for: "wait_event_type = 'Lock'") }
        gate.open()
        try await write
        _ = try await other
        #expect(runs.withLock { $0 } == 2)
        #expect(try await home.query("SELECT size FROM thing") == [["11"], ["11"]])
    }

    @Test func `A transaction that cannot be put in a row with others is done again`() async throws {
        try await database.write { [self] db in
            guard count() == 1 else { return try db.execute("UPDATE thing SET size = 5") }
            _ = try db.change("DO $$ BEGIN RAISE EXCEPTION 'others' USING ERRCODE = '40001'; END $$")
        }
        #expect(runs.withLock { $0 } == 2)
        #expect(try await home.query("SELECT size FROM thing") == [["5"], ["5"]])
    }

    @Test func `A transaction of a node that has vanished lets go of its rows`() async throws {
        let limit = try await database.write { db in
            try db.first("SELECT current_setting('idle_in_transaction_session_timeout')") { $0.text(0) }
        }
        #expect(limit == "5s")
    }

    @Test func `A division by zero is the closure's own, and not taken for a place that was lost`() async throws {
        await #expect(throws: SQLError(.postgresql("22012"), "division by zero")) {
            try await database.write { db in try db.execute("UPDATE thing SET size = size / 0 WHERE name = 'a'") }
        }
        try await database.add("c")
        #expect(try await database.names() == ["a", "b", "c"])
    }
}
