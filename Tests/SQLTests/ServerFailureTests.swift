import Base
import TestSupport
import Testing

@testable import SQL

@Suite(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
struct `A server that fails` {
    /// The table accepts the same name twice, so that repeated writes are visible.
    private static let table = Migration(
        version: 1,
        sql: "CREATE TABLE entry (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL) STRICT;")

    /// Continuous writers, and the writes that were confirmed to them.
    private final class Writers: Sendable {
        private let done = Locked<[String]>([])
        private let isOver = Locked(false)

        var count: Int { done.withLock { $0.count } }

        /// Writes during `trouble`, and returns the confirmed writes.
        func write(to database: Database, during trouble: () async throws -> Void) async throws -> [String] {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for writer in 0..<8 {
                    group.addTask { [self] in
                        var number = 0
                        while !isOver.withLock({ $0 }) {
                            try await write("\(writer) \(number)", to: database)
                            number += 1
                        }
                    }
                }
                defer { isOver.withLock { $0 = true } }
                try await trouble()
                try await progress(20)
                isOver.withLock { $0 = true }
                try await group.waitForAll()
            }
            return done.withLock { $0.sorted() }
        }

        private func write(_ name: String, to database: Database) async throws {
            let id = try await database.write { try $0.insert("INSERT INTO entry (name) VALUES (?1)", name) }
            #expect(id > 0)
            done.withLock { $0.append(name) }
        }

        func progress(_ writes: Int) async throws {
            let before = count
            try await eventually("writes are done") { self.count >= before + writes }
        }
    }

    private func names(in home: PostgreSQLDatabase) async throws -> [String] {
        try await home.query("SELECT name FROM entry").map { $0[0] }.sorted()
    }

    @Test func `A server that is killed during writes loses none and repeats none`() async throws {
        let server = try await PostgreSQL()
        let home = try await server.database()
        let database = try home.open(migrations: [Self.table])
        let writers = Writers()
        let done = try await writers.write(to: database) {
            for _ in 0..<3 {
                try await writers.progress(20)
                server.kill()
                try await server.start()
                for _ in 0..<3 { #expect(try await database.read { try $0.exists("SELECT 1 FROM entry") }) }
            }
        }
        #expect(try await names(in: home) == done)
    }

    @Test func `A server that is away for too long fails writes until it is back`() async throws {
        let server = try await PostgreSQL()
        let home = try await server.database()
        let proxy = try CuttingProxy(to: server.port)
        let database = try home.open(through: proxy, limits: .init(heartbeat: 3_600_000, patience: 300))
        try await database.add("a")
        server.kill()
        // A socket may outlive its process for a moment, which leaves a commit in doubt.
        proxy.cut()
        let error = await #expect(throws: SQLError.self) { try await database.add("b") }
        #expect(error?.code == .unreachable)
        await #expect(throws: SQLError.self) { try await database.names() }
        try await server.start()
        try await database.add("c")
        #expect(try await database.names() == ["a", "c"])
    }

    @Test func `After a timeout further writes fail at once, until the server is reachable`() async throws {
        let home = try await SharedPostgreSQL.database()
        let proxy = try CuttingProxy(to: home.server.port)
        let database = try home.open(through: proxy, limits: .init(heartbeat: 3_600_000, patience: 3000))
        proxy.refuse(true)
        proxy.cut()
        let start = ContinuousClock.now
        for number in 0..<20 { await #expect(throws: SQLError.self) { try await database.add("\(number)") } }
        #expect(ContinuousClock.now - start < .seconds(30))
        proxy.refuse(false)
        try await database.add("a")
        // Writes wait for the server again.
        proxy.refuse(true)
        proxy.cut()
        async let write: Void = database.add("b")
        try await Task.sleep(for: .milliseconds(200))
        proxy.refuse(false)
        try await write
        #expect(try await database.names() == ["a", "b"])
    }

    @Test(arguments: [true, false])
    func `A commit with a lost response takes effect once, and its caller succeeds`(_ keepsStatements: Bool)
        async throws
    {
        let home = try await SharedPostgreSQL.database()
        let proxy = try CuttingProxy(to: home.server.port)
        let database = try home.open(through: proxy, keepsStatements: keepsStatements, migrations: [Self.table])
        // Only a new connection sends the text.
        proxy.cut()
        proxy.loseAnswers(after: Array("COMMIT".utf8))
        let id = try await database.write { try $0.insert("INSERT INTO entry (name) VALUES ('a')") }
        #expect(proxy.lostAnswers == 1)
        #expect(try await home.query("SELECT id, name FROM entry") == [["\(id)", "a"]])
        #expect(try await database.write { try $0.insert("INSERT INTO entry (name) VALUES ('b')") } > id)
        #expect(try await names(in: home) == ["a", "b"])
    }

    @Test func `A commit that never arrived is repeated`() async throws {
        let home = try await SharedPostgreSQL.database()
        let proxy = try CuttingProxy(to: home.server.port)
        let database = try home.open(through: proxy, migrations: [Self.table])
        let (gate, runs) = (Gate(), Locked(0))
        async let write = database.write { db in
            let id = try db.insert("INSERT INTO entry (name) VALUES ('a')")
            runs.withLock { $0 += 1 }
            gate.pass()
            return id
        }
        try await eventually { gate.waiting == 1 }
        proxy.hold(true)
        gate.open()
        try await eventually("the commit is sent") { gate.waiting == 0 }
        proxy.cut()
        proxy.hold(false)
        let id = try await write
        #expect(runs.withLock { $0 } == 2)
        #expect(try await home.query("SELECT id, name FROM entry") == [["\(id)", "a"]])
    }

    @Test(arguments: [true, false])
    func `Each write takes effect once, whenever the network is cut`(_ keepsStatements: Bool) async throws {
        let home = try await SharedPostgreSQL.database()
        let proxy = try CuttingProxy(to: home.server.port)
        let database = try home.open(through: proxy, keepsStatements: keepsStatements, migrations: [Self.table])
        let writers = Writers()
        let done = try await writers.write(to: database) {
            for turn in 0..<20 {
                try await writers.progress(1)
                try await Task.sleep(for: .microseconds(Int.random(in: 0...20_000)))
                if turn.isMultiple(of: 2) { proxy.cut() } else { proxy.loseAnswers(after: Array("COMMIT".utf8)) }
            }
        }
        #expect(try await names(in: home) == done)
    }

    @Test func `A session that the server ends, idle or in a transaction, fails no closure`() async throws {
        let home = try await SharedPostgreSQL.database()
        let database = try home.open(migrations: [Self.table])
        let (gate, runs) = (Gate(), Locked(0))
        async let write = database.write { db in
            let id = try db.insert("INSERT INTO entry (name) VALUES ('a')")
            runs.withLock { $0 += 1 }
            gate.pass()
            return try db.change("UPDATE entry SET name = 'b' WHERE id = ?1", id)
        }
        try await eventually { gate.waiting == 1 }
        try await home.endSessions()
        gate.open()
        #expect(try await write == 1)
        #expect(runs.withLock { $0 } == 2)
        try await home.endSessions()
        #expect(try await database.read { try $0.all("SELECT name FROM entry") { $0.text(0) } } == ["b"])
        _ = try await database.write { try $0.insert("INSERT INTO entry (name) VALUES ('c')") }
        #expect(try await names(in: home) == ["b", "c"])
    }

    @Test func `If a server becomes read-only, the writer connects again`() async throws {
        let home = try await SharedPostgreSQL.database()
        let database = try home.open(migrations: [Self.table])
        let sessions = Locked<[Int]>([])
        try await database.write { db in
            let session = try db.first("SELECT pg_backend_pid()") { $0.int(0) } ?? 0
            let isFirst = sessions.withLock { sessions in
                sessions.append(session)
                return sessions.count == 1
            }
            // The error of a server that became a standby.
            if isFirst { try db.execute("SET TRANSACTION READ ONLY") }
            try db.execute("INSERT INTO entry (name) VALUES ('a')")
        }
        #expect(Set(sessions.withLock { $0 }).count == 2)
        #expect(try await names(in: home) == ["a"])
    }

    @Test func `A server without room fails writes until it has room`() async throws {
        let database = try await SharedPostgreSQL.database().open()
        let error = await #expect(throws: SQLError.self) {
            try await database.write { db in
                try db.execute("DO $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$")
            }
        }
        #expect(error?.isFull == true)
        #expect(try await database.names() == [])
        try await database.add("a")
        #expect(try await database.names() == ["a"])
    }
}
