import Base
import Glibc
import SQL
import TestSupport
import Testing

@Suite struct `Readers` {
    @Test func `A closure that reads sees one snapshot`() async throws {
        let folder = TemporaryFolder()
        try await EitherEngine.expectOneMoment(folder.open())
    }

    @Test func `Slow reads of requests do not delay those of the loops`() async throws {
        let database = try TemporaryFolder().open()
        let gates = (Gate(), Gate())
        async let first: Void = database.read { _ in gates.0.pass() }
        async let second: Void = database.read { _ in gates.1.pass() }
        try await eventually { gates.0.waiting == 1 }
        try await eventually { gates.1.waiting == 1 }
        // Every reader of requests is busy; a read of theirs would wait.
        let answer = try await Database.$readingParty.withValue(.loops) {
            try await withThrowingTaskGroup { group in
                group.addTask { try await database.read { try $0.first("SELECT 1") { $0.int(0) } } }
                return try await group.next() ?? nil
            }
        }
        #expect(answer == 1)
        gates.0.open()
        gates.1.open()
        _ = try await (first, second)
    }

    @Test func `Code on the readers' executor reads on its own thread`() async throws {
        let database = try TemporaryFolder().open()
        let threads = try await withTaskExecutorPreference(database.readers(for: .requests).turns(of: 1)) {
            let here = currentThread()
            return [here, try await database.read { _ in currentThread() }, currentThread()]
        }
        #expect(Set(threads).count == 1)
        #expect(try await database.read { _ in currentThread() } != currentThread())
    }

    @Test func `Reads of owners alternate, however many reads one of them has queued`() async throws {
        let database = try TemporaryFolder().open(readers: 1)
        let readers = database.readers(for: .requests)
        let (gate, order) = (Gate(), Locked<[Int64]>([]))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask(executorPreference: readers.turns(of: 1)) { gate.pass() }
            try await eventually { gate.waiting == 1 }
            for owner in [1, 1, 1, 1, 2, 3, 2] as [Int64] {
                group.addTask(executorPreference: readers.turns(of: owner)) { order.withLock { $0.append(owner) } }
            }
            gate.open()
            try await group.waitForAll()
        }
        #expect(order.withLock { $0 } == [1, 2, 3, 1, 2, 1, 1])
    }

    @Test func `A read that yields lets other reads run first`() async throws {
        let database = try TemporaryFolder().open(readers: 1)
        let readers = database.readers(for: .requests)
        let (gate, steps, others) = (Gate(), Locked(0), Locked<[Int]>([]))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask(executorPreference: readers.turns(of: 1)) {
                gate.pass()
                for _ in 0..<1000 {
                    _ = try await database.read { try $0.first("SELECT 1") { $0.int(0) } }
                    steps.withLock { $0 += 1 }
                    await Task.yield()
                }
            }
            try await eventually { gate.waiting == 1 }
            group.addTask(executorPreference: readers.turns(of: 2)) {
                others.withLock { $0.append(steps.withLock { $0 }) }
            }
            gate.open()
            try await group.waitForAll()
        }
        #expect(others.withLock { $0 }.allSatisfy { $0 <= 2 } && steps.withLock { $0 } == 1000)
    }

    @Test func `Closing waits for running reads and refuses later ones`() async throws {
        let database = try TemporaryFolder().open()
        let gate = Gate()
        async let read: Void = database.read { _ in gate.pass() }
        try await eventually { gate.waiting == 1 }
        let hasClosed = Locked(false)
        async let closed: Void = onThread {
            database.close()
            hasClosed.withLock { $0 = true }
        }
        // Reads are refused from the moment at which closing begins to wait.
        try await eventually { (try? await database.read { _ in }) == nil }
        #expect(!hasClosed.withLock { $0 })
        gate.open()
        _ = try await (read, closed)
        let error = await #expect(throws: SQLError.self) { try await database.read { _ in } }
        #expect(error?.code == .closed)
    }

    @Test func `A closure that reads cannot write`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        let error = await #expect(throws: SQLError.self) {
            try await database.read { try $0.execute("INSERT INTO thing (name) VALUES ('a')") }
        }
        #expect(error?.primary == 8)
        #expect(try await database.names() == [])
    }

    @Test func `A read that takes too long is interrupted, and the reader continues`() async throws {
        let folder = TemporaryFolder()
        let database = try Database.open(
            path: folder.file("test.db"), readers: 1, longestRead: .milliseconds(20), migrations: [], log: .none,
            onFatalError: { preconditionFailure("\($0)") })
        let error = await #expect(throws: SQLError.self) {
            try await database.read { db in
                try db.first(
                    """
                    WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number)
                    SELECT count(*) FROM number
                    """
                ) { $0.int(0) }
            }
        }
        #expect(error?.isInterrupted == true)
        #expect(try await database.read { try $0.first("SELECT 1") { $0.int(0) } } == 1)
    }
}

/// The current thread.
private func currentThread() -> UInt { UInt(pthread_self()) }

@Suite struct `The file` {
    @Test func `The file and the log are readable by their owner alone`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        try await database.add("a")
        for name in ["test.db", "test.db-wal", "test.db-shm"] {
            var status = stat()
            #expect(stat(folder.file(name), &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600, "\(name)")
        }
    }

    @Test func `Closing runs queued closures, copies the log and refuses later ones`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        try await database.add("a")
        database.close()
        database.close()
        #expect(filesBelow(folder.path) == ["test.db"])
        let error = await #expect(throws: SQLError.self) { try await database.add("b") }
        #expect(error?.code == .closed)
        let reopened = try folder.open()
        #expect(try await reopened.check() == "ok")
        #expect(try await reopened.names() == ["a"])
    }

    @Test func `Releasing the last reference closes the database, even from a closure of its own`() async throws {
        let folder = TemporaryFolder()
        var database: Database? = try folder.open()
        try await database?.write { [database] db in
            _ = database
            try db.execute("INSERT INTO thing (name) VALUES ('a')")
        }
        database = nil
        try await eventually { filesBelow(folder.path) == ["test.db"] }
    }

    @Test func `The log stays short under many writes`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        var longest: off_t = 0
        for number in 0..<40 {
            try await database.write { db in
                try db.execute("INSERT INTO thing (name, body) VALUES (?, zeroblob(1000000))", "\(number)")
            }
            var status = stat()
            #expect(stat(folder.file("test.db-wal"), &status) == 0)
            longest = max(longest, status.st_size)
        }
        #expect(longest < 8 << 20)
    }
}

@Suite struct `Migrations` {
    private let folder = TemporaryFolder()

    private func open(_ migrations: [Migration]) throws -> Database { try folder.open(migrations: migrations) }

    @Test func `Migrations run forward and keep the rows`() async throws { try await EitherEngine.expectForward(open) }

    @Test func `A newer schema is refused and left unchanged`() throws {
        try EitherEngine.expectNewerRefused(open)
        #expect(filesBelow(folder.path) == ["test.db"])
    }

    @Test func `A schema older than the first step is refused and left unchanged`() throws {
        try EitherEngine.expectOlderRefused(open)
        #expect(filesBelow(folder.path) == ["test.db"])
    }

    @Test func `A failed migration is rolled back and named`() async throws {
        try await EitherEngine.expectUndoneWhole("no such table: nowhere", open)
        let tables = try await folder.open().read { db in
            try db.all("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name") { $0.text(0) }
        }
        #expect(tables == ["thing"])
    }
}

@Suite struct `Backup` {
    @Test func `A copy during writes is complete and private`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        // Each write adds two rows, so an inconsistent copy would have an odd number.
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<4 {
                group.addTask {
                    for number in 0..<50 {
                        try await database.write { db in
                            try db.execute("INSERT INTO thing (name) VALUES (?)", "\(writer) \(number) a")
                            try db.execute("INSERT INTO thing (name) VALUES (?)", "\(writer) \(number) b")
                        }
                    }
                }
            }
            for copy in 0..<3 {
                group.addTask { try Database.copy(of: folder.file("test.db"), to: folder.file("copy\(copy).db")) }
            }
            try await group.waitForAll()
        }
        try Database.copy(of: folder.file("test.db"), to: folder.file("copy3.db"))
        database.close()
        for copy in 0..<4 {
            var status = stat()
            #expect(stat(folder.file("copy\(copy).db"), &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
            let reopened = try folder.open("copy\(copy).db")
            #expect(try await reopened.check() == "ok")
            let names = try await reopened.names()
            #expect(names.count.isMultiple(of: 2))
            if copy == 3 { #expect(names.count == 400) }
        }
    }

    @Test func `An existing file is not overwritten`() throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        try Database.copy(of: folder.file("test.db"), to: folder.file("copy.db"))
        #expect(throws: SQLError.self) {
            try Database.copy(of: folder.file("test.db"), to: folder.file("copy.db"))
        }
        database.close()
    }
}
