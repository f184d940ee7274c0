import Base
import TestSupport
import Testing

@testable import SQL

@Suite(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
struct `Group commit on a server` {
    private typealias Refusal = EitherEngine.Refusal

    private static func add(_ name: String) -> @Sendable (Connection) throws -> Void { EitherEngine.add(name) }

    @Test(arguments: [true, false])
    func `Many writers share commits and lose no write`(_ keepsStatements: Bool) async throws {
        let commits = Locked<[Int]>([])
        let database = try await SharedPostgreSQL.database().open(
            keepsStatements: keepsStatements, onCommit: { commit in commits.withLock { $0.append(commit.writes) } })
        try await EitherEngine.expectNothingLost(database, writers: 32, times: 10)
        try await eventually { commits.withLock { $0.reduce(0, +) } == 321 }
        #expect(commits.withLock { $0.count } < 200)
    }

    @Test func `A closure that throws before it writes affects no other closure`() async throws {
        let commits = Locked<[Int]>([])
        let database = try await SharedPostgreSQL.database().open(
            onCommit: { commit in commits.withLock { $0.append(commit.writes) } })
        let results = try await database.together([Self.add("a"), { _ in throw Refusal() }, Self.add("b")])
        #expect(throws: Refusal()) { try results[1].get() }
        for index in [0, 2] { #expect(throws: Never.self) { try results[index].get() } }
        #expect(try await database.names() == ["a", "b"])
        try await eventually { commits.withLock { $0 } == [3] }
    }

    @Test func `A closure that throws after a write is rolled back alone`() async throws {
        try await EitherEngine.expectUndoneAlone(try await SharedPostgreSQL.database().open())
    }

    @Test func `A closure that violates a constraint fails alone, at once or at the end`() async throws {
        let database = try await SharedPostgreSQL.database().open()
        let results = try await database.together([
            Self.add("a"),
            Self.add("a"),
            Self.add("b"),
            { db in _ = try db.change("UPDATE thing SET name = NULL") },
            { db in _ = try db.insert("INSERT INTO thing (name) VALUES ('b')") },
            Self.add("c"),
        ])
        for index in [1, 3, 4] {
            let error = #expect(throws: SQLError.self) { try results[index].get() }
            #expect(error?.isConstraint == true, "\(index)")
        }
        for index in [0, 2, 5] { #expect(throws: Never.self) { try results[index].get() } }
        #expect(try await database.names() == ["a", "b", "c"])
    }

    @Test func `A closure that catches an error still fails, because its transaction is lost`() async throws {
        let database = try await SharedPostgreSQL.database().open()
        let swallowing: @Sendable (Connection) throws -> Void = { db in
            try db.execute("INSERT INTO thing (name) VALUES ('b')")
            _ = try? db.change("UPDATE thing SET name = NULL")
            _ = try? db.exists("SELECT 1")
        }
        let error = await #expect(throws: SQLError.self) { try await database.write(swallowing) }
        #expect(error?.isConstraint == true)
        let results = try await database.together([Self.add("a"), swallowing, Self.add("c")])
        let another = #expect(throws: SQLError.self) { try results[1].get() }
        #expect(another?.isConstraint == true)
        #expect(try await database.names() == ["a", "c"])
    }

    @Test func `An error of an unread result does not affect the next closure`() async throws {
        let database = try await SharedPostgreSQL.database().open()
        try await database.add("a")
        for number in 0..<3 {
            await #expect(throws: Refusal()) {
                try await database.write { db in
                    try Self.add("a")(db)
                    throw Refusal()
                }
            }
            try await database.add("\(number)")
        }
        #expect(try await database.names() == ["a", "0", "1", "2"])
    }

    @Test func `Closures that only write share one round trip`() async throws {
        let database = try await SharedPostgreSQL.database().open()
        let roundTrips: @Sendable (Connection) -> Int = { ($0 as? PostgreSQLConnection)?.roundTrips ?? 0 }
        try await database.add("first")
        let before = try await database.write { roundTrips($0) }
        _ = try await database.together(inOrder: false, (0..<100).map { Self.add("\($0)") })
        #expect(try await database.write { roundTrips($0) } == before + 1)
        #expect(try await database.names().count == 101)
    }

    @Test(arguments: [true, false])
    func `A question is answered with its state at that time, and may be read after the commit`(_ keepsStatements: Bool)
        async throws
    {
        try await EitherEngine.expectAnswersLater(
            try await SharedPostgreSQL.database().open(keepsStatements: keepsStatements))
    }

    @Test(arguments: [true, false])
    func `One statement for many lists of values has the effect of one statement each`(_ keepsStatements: Bool)
        async throws
    {
        try await EitherEngine.expectSets(try await SharedPostgreSQL.database().open(keepsStatements: keepsStatements))
    }

    @Test
    func `All questions before the first read take one round trip, and reads after the commit take none`()
        async throws
    {
        let commits = Locked<[Int]>([])
        let database = try await SharedPostgreSQL.database().open(
            onCommit: { commit in commits.withLock { $0.append(commit.roundTrips) } })
        _ = try await database.writeThenRead { db in
            let names = try db.ask("SELECT name FROM thing WHERE id = ?1", [[1], [2], [3]]) { $0.text(0) }
            let count = try db.ask("SELECT count(*) FROM thing", [[]]) { $0.int(0) }
            #expect(try names.get().count == 3 && count.get() == [[0]])
            try Self.add("a")(db)
            let added = try db.ask("UPDATE thing SET size = 1 RETURNING name", [[]]) { $0.text(0) }
            return { try added.get() }
        }
        try await eventually { commits.withLock { $0 } == [2] }
    }

    @Test func `Large amounts of data in both directions cause no deadlock`() async throws {
        try await Self.expectNoBlock(try await SharedPostgreSQL.database().open())
    }

    static func expectNoBlock(_ database: Database) async throws {
        let body = [UInt8](repeating: 7, count: 20 << 10)
        let results = try await database.together(
            inOrder: false,
            (0..<500).map { number in
                { db in
                    try db.execute(
                        "INSERT INTO thing (name, body) VALUES (?1, ?2) RETURNING body, body AS other", "\(number)",
                        body)
                }
            })
        for result in results { #expect(throws: Never.self) { try result.get() } }
        #expect(try await database.names().count == 500)
    }
}
