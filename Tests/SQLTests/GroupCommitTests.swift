import Base
import Glibc
import SQL
import TestSupport
import Testing

@Suite struct `Group commit` {
    private typealias Refusal = EitherEngine.Refusal

    private static func add(_ name: String) -> @Sendable (Connection) throws -> Void { EitherEngine.add(name) }

    @Test func `A closure that throws is rolled back alone and gets its own error`() async throws {
        let folder = TemporaryFolder()
        try await EitherEngine.expectUndoneAlone(folder.open())
    }

    @Test func `A lone closure that throws is rolled back`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        await #expect(throws: Refusal()) {
            try await database.write { db in
                try Self.add("a")(db)
                throw Refusal()
            }
        }
        try await database.add("b")
        #expect(try await database.names() == ["b"])
    }

    @Test func `A question is answered with its state at that time, and may be read after the commit`() async throws {
        let folder = TemporaryFolder()
        try await EitherEngine.expectAnswersLater(folder.open())
    }

    @Test func `One statement for many lists of values has the effect of one statement each`() async throws {
        let folder = TemporaryFolder()
        try await EitherEngine.expectSets(folder.open())
    }

    @Test func `Closures run in the order of their submission`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        _ = try await database.together((0..<100).map { Self.add("\($0)") })
        #expect(try await database.names() == (0..<100).map { "\($0)" })
    }

    @Test func `Closures beyond one commit are all run`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        let results = try await database.together((0..<600).map { Self.add("\($0)") })
        #expect(results.count == 600)
        #expect(try await database.names().count == 600)
    }

    @Test func `A later closure sees the writes of an earlier one of its group`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        let seen = Locked(0)
        _ = try await database.together(
            [
                Self.add("a"),
                { db in
                    let count = try db.first("SELECT count(*) FROM thing") { $0.int(0) }
                    seen.withLock { $0 = count ?? 0 }
                },
            ])
        #expect(seen.withLock { $0 } == 1)
    }

    @Test func `Many concurrent writers lose no write`() async throws {
        let folder = TemporaryFolder()
        try await EitherEngine.expectNothingLost(folder.open(), writers: 64, times: 20)
    }

    @Test func `No closure of a group succeeds when the disk is full`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        // The limit is the current number of pages: there is no room for another.
        try await database.write { try $0.execute("PRAGMA max_page_count = 1") }
        let large: @Sendable (Connection) throws -> Void = { db in
            try db.execute("INSERT INTO thing (name, body) VALUES ('large', zeroblob(100000))")
        }
        let swallowed: @Sendable (Connection) throws -> Void = { db in try? large(db) }
        for closure in [large, swallowed] {
            let results = try await database.together([Self.add("a"), closure, Self.add("b")])
            for result in results {
                let error = #expect(throws: SQLError.self) { try result.get() }
                #expect(error?.isFull == true)
            }
            #expect(try await database.names() == [])
        }
        try await database.write { try $0.execute("PRAGMA max_page_count = 1000000") }
        try await database.add("c")
        #expect(try await database.names() == ["c"])
    }
}
