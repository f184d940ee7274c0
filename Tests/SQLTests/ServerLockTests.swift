import Base
import TestSupport
import Testing

@testable import SQL

@Suite(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
struct `Locks of others on a server` {
    private let home: PostgreSQLDatabase
    private let database: Database
    /// The number of runs of the closure.
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
        let waiting = try await home.query(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND \(event)")
        return !waiting.isEmpty
    }

    @Test func `A write that is blocked by another session's lock is done after its release`() async throws {
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

    @Test func `Blocked writes of all nodes fail within their patience`() async throws {
        let limits = PostgreSQLWriter.Limits(heartbeat: 3_600_000, patience: 1500)
        let nodes = try (1...3).map { try home.open(node: "\($0)", limits: limits) }
        let holder = Task { [home] in
            _ = try? await home.query("BEGIN; LOCK TABLE thing; SELECT pg_sleep(600)")
        }
        try await eventually("it is held") { try await waits(for: "wait_event = 'PgSleep'") }
        let start = ContinuousClock.now
        await withTaskGroup { group in
            for node in nodes + nodes {
                for name in ["c", "d", "e"] {
                    group.addTask {
                        let error = await #expect(throws: SQLError.self) { try await node.add(name) }
                        #expect(error?.isBusy == true, "\(error as Any)")
                    }
                }
            }
        }
        #expect(ContinuousClock.now - start < .milliseconds(2 * 1500))
        try await home.query(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event = 'PgSleep'
            """)
        await holder.value
        for (node, name) in zip(nodes, ["f", "g", "h"]) { try await node.add(name) }
        #expect(try await database.names() == ["a", "b", "f", "g", "h"])
    }

    @Test func `A node with blocked writes renews its lease`() async throws {
        let node = try home.open(
            node: "patient", limits: .init(heartbeat: 3000, patience: 60_000))
        try await node.add("c")
        let holder = Task { [home] in
            _ = try? await home.query("BEGIN; LOCK TABLE thing; SELECT pg_sleep(600)")
        }
        try await eventually("it is held") { try await waits(for: "wait_event = 'PgSleep'") }
        try await eventually("it said so long ago, as signs of life go") {
            try await home.query(
                "SELECT 1 FROM holder WHERE name = 'patient' AND signed_at < now() - interval '2 seconds'"
            ).count == 1
        }
        async let write: Void = node.add("d")
        let waiting = "datname = current_database() AND wait_event_type = 'Lock'"
        try await eventually("it waits") { try await waits(for: waiting) }
        let signed = try await home.query(
            """
            SELECT 1 FROM holder, pg_stat_activity
            WHERE name = 'patient' AND signed_at > xact_start - interval '2 seconds' AND \(waiting)
            """)
        #expect(signed.count == 1, "it said so before it began to wait")
        try await home.query(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event = 'PgSleep'
            """)
        try await write
        await holder.value
    }

    @Test func `A node that does not read the server's data loses its turn`() async throws {
        let proxy = try CuttingProxy(to: home.server.port)
        let stuck = try home.open(node: "stuck", through: proxy)
        async let lost: Void = stuck.write { [self] db in
            guard count() == 1 else { return }
            // More bytes than all buffers between the two hold, and slowly.
            _ = try db.all("SELECT repeat('x', 100000), pg_sleep(0.001) FROM generate_series(1, 5000)") {
                $0.text(0).utf8.count
            }
        }
        try await eventually("it sends") { try await waits(for: "query LIKE 'SELECT repeat%' AND state = 'active'") }
        proxy.hold(true)
        try await eventually("it sends in vain") { try await waits(for: "wait_event = 'ClientWrite'") }
        let start = ContinuousClock.now
        let other = try home.open(node: "other")
        try await other.add("c")
        #expect(ContinuousClock.now - start < .seconds(15))
        proxy.hold(false)
        try await lost
        #expect(runs.withLock { $0 } == 2)
    }

    @Test func `A write is repeated after a deadlock`() async throws {
        let gate = Gate()
        async let write: Void = database.write { [self] db in
            let isFirst = count() == 1
            _ = try db.change("UPDATE thing SET size = size + 1 WHERE name = 'a'")
            if isFirst { gate.pass() }
            // The server looks for a deadlock once: only after this time the other one surely waits.
            try db.execute("SET LOCAL deadlock_timeout = '1s'")
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
        // One more run for each time that the transaction is rolled back before the other one has the lock.
        #expect(runs.withLock { $0 } >= 2)
        #expect(try await home.query("SELECT size FROM thing") == [["11"], ["11"]])
    }

    @Test func `A write is repeated after a serialization failure`() async throws {
        try await database.write { [self] db in
            guard count() == 1 else { return try db.execute("UPDATE thing SET size = 5") }
            _ = try db.change("DO $$ BEGIN RAISE EXCEPTION 'others' USING ERRCODE = '40001'; END $$")
        }
        #expect(runs.withLock { $0 } == 2)
        #expect(try await home.query("SELECT size FROM thing") == [["5"], ["5"]])
    }

    @Test func `A transaction of a vanished node releases its rows`() async throws {
        let limit = try await database.write { db in
            try db.first("SELECT current_setting('idle_in_transaction_session_timeout')") { $0.text(0) }
        }
        #expect(limit == "5s")
    }

    @Test func `A division by zero is an error of the closure, not a lost place`() async throws {
        await #expect(throws: SQLError(.postgresql("22012"), "division by zero")) {
            try await database.write { db in try db.execute("UPDATE thing SET size = size / 0 WHERE name = 'a'") }
        }
        try await database.add("c")
        #expect(try await database.names() == ["a", "b", "c"])
    }
}
