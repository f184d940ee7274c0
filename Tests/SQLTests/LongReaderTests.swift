import Base
import SQL
import TestSupport
import Testing

/// Long reads, such as backups, beside the writer.
@Suite struct LongReaderTests {
    @Test func `A long read delays one checkpoint, not each of them`() async throws {
        let folder = TemporaryFolder()
        let complaints = Locked(0)
        let database = try folder.open(log: Log(level: .warning) { _ in complaints.withLock { $0 += 1 } })
        try await database.add("first")
        let gate = Gate()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                let names = try await database.read { db in
                    let before = try db.all("SELECT name FROM thing") { $0.text(0) }
                    gate.pass()
                    return before + (try db.all("SELECT name FROM thing") { $0.text(0) })
                }
                #expect(names == ["first", "first"])
            }
            try await eventually { gate.waiting == 1 }
            // 64 MiB until the log is long, and sixteen more checkpoints.
            for number in 0..<128 { try await database.addLarge("\(number)") }
            #expect(complaints.withLock { $0 } <= 1)
            gate.open()
            try await group.waitForAll()
        }
        #expect(try await database.names().count == 129)
    }

    @Test func `A backup during writes is one snapshot`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        for number in 0..<40 { try await database.addLarge("before \(number)") }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try Database.copy(of: folder.file("test.db"), to: folder.file("copy.db")) }
            for number in 0..<100 { try await database.addLarge("\(number)") }
            try await group.waitForAll()
        }
        let copy = try folder.open("copy.db")
        #expect(try await copy.check() == "ok")
        let names = try await copy.names()
        // A snapshot: all rows that were written before one of them, and no later ones.
        #expect(names == (0..<40).map { "before \($0)" } + (0..<(names.count - 40)).map { "\($0)" })
        #expect(names.count >= 40)
        #expect(try await database.names().count == 140)
    }
}

extension Database {
    /// Adds a row of a megabyte.
    fileprivate func addLarge(_ name: String) async throws {
        let body = [UInt8](repeating: 7, count: 1 << 20)
        try await write { try $0.execute("INSERT INTO thing (name, body) VALUES (?, ?)", name, body) }
    }
}
