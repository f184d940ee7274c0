import Base
import TestSupport
import Testing

@testable import SQL

/// Expectations of a database on either engine.
enum EitherEngine {
    struct Refusal: Error, Equatable {}

    static func add(_ name: String) -> @Sendable (Connection) throws -> Void {
        { db in try db.execute("INSERT INTO thing (name) VALUES (?1)", name) }
    }

    // MARK: Reads

    /// A closure that reads sees one snapshot.
    static func expectOneMoment(_ database: Database) async throws {
        try await database.add("a")
        let gate = Gate()
        async let counts = database.read { db in
            let before = try db.first("SELECT count(*) FROM thing") { $0.int(0) }
            gate.pass()
            return [before, try db.first("SELECT count(*) FROM thing") { $0.int(0) }]
        }
        try await eventually { gate.waiting == 1 }
        try await database.add("b")
        gate.open()
        #expect(try await counts == [1, 1])
        #expect(try await database.names() == ["a", "b"])
    }

    // MARK: Group commit

    /// In a group, a closure that throws after a write and one that violates a constraint are rolled back alone.
    static func expectUndoneAlone(_ database: Database) async throws {
        let results = try await database.together([
            add("a"),
            { db in
                try add("b")(db)
                throw Refusal()
            },
            add("c"),
            add("a"),
        ])
        for index in [0, 2] { #expect(throws: Never.self) { try results[index].get() } }
        #expect(throws: Refusal()) { try results[1].get() }
        let error = #expect(throws: SQLError.self) { try results[3].get() }
        #expect(error?.isConstraint == true)
        #expect(try await database.names() == ["a", "c"])
    }

    /// Many concurrent writers lose no write.
    static func expectNothingLost(_ database: Database, writers: Int, times: Int) async throws {
        try await database.add("counter")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<writers {
                group.addTask {
                    for _ in 0..<times {
                        try await database.write { db in
                            let size = try db.first("SELECT size FROM thing") { $0.int(0) } ?? 0
                            try db.execute("UPDATE thing SET size = ?1", size + 1)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let size = try await database.read { try $0.first("SELECT size FROM thing") { $0.int(0) } }
        #expect(size == writers * times)
    }

    // MARK: Questions and sets

    /// A question is answered with its state at that time, and may be read after the commit.
    static func expectAnswersLater(_ database: Database) async throws {
        @Sendable func sizes(_ db: Connection) throws -> Asked<Int> {
            try db.ask("SELECT size FROM thing WHERE name = ?1", [["a"], ["b"], ["c"]]) { $0.int("size") }
        }
        let answers = try await database.writeThenRead { db in
            try add("a")(db)
            let (first, none) = (try sizes(db), try db.ask("SELECT id FROM thing", []) { $0.int(0) })
            try add("b")(db)
            try db.execute("UPDATE thing SET size = 7 WHERE name = 'a'")
            let second = try sizes(db)
            // This statement waits for a response, which answers the earlier questions.
            #expect(try db.exists("SELECT 1 FROM thing WHERE name = 'b'"))
            let third = try db.ask("UPDATE thing SET size = size + 1 WHERE name = ?1 RETURNING size", [["a"], ["b"]]) {
                $0.int("size")
            }
            return { [try none.get(), try first.get(), try second.get(), try third.get()] }
        }
        #expect(answers == [[], [[0], [], []], [[7], [0], []], [[8], [1]]])
        // The same for a closure that writes nothing, and for one whose neighbour fails.
        let read = try await database.writeThenRead { db in
            let asked = try sizes(db)
            return { try asked.get() }
        }
        #expect(read == [[8], [1], []])
        let results = try await database.together([
            { db in
                let asked = try sizes(db)
                try add("c")(db)
                guard try asked.get() == [[8], [1], []] else { throw Refusal() }
            },
            { db in
                try add("d")(db)
                throw Refusal()
            },
        ])
        #expect(throws: Never.self) { try results[0].get() }
        #expect(throws: Refusal()) { try results[1].get() }
        await #expect(throws: Refusal()) {
            try await database.writeThenRead { db in
                let asked = try db.ask("SELECT 1", [[]]) { _ -> Int in throw Refusal() }
                return { try asked.get() }
            }
        }
        #expect(try await database.names() == ["a", "b", "c"])
    }

    /// One statement for many lists of values has the effect of one statement each.
    static func expectSets(_ database: Database) async throws {
        typealias Thing = (name: String, size: Int, body: [UInt8]?)
        let count = 600
        @Sendable func body(_ number: Int) -> [UInt8]? { number % 3 == 0 ? [UInt8(number % 256)] : nil }
        try await database.write { db in
            let rows: [[(any SQLBindable)?]] = (0..<count).map { ["\($0)", $0, body($0)] }
            try db.executeAll("INSERT INTO thing (name, size, body) VALUES (?1, ?2, ?3)", rows)
            // A value that is NULL in all lists, and one that is NULL in some.
            try db.executeAll(
                "UPDATE thing SET body = coalesce(?3, body), size = size + coalesce(?2, 0) WHERE name = ?1",
                (0..<count).map { ["\($0)", $0 % 2 == 0 ? 1000 : nil, [UInt8]?.none] })
            try db.executeAll("DELETE FROM thing WHERE name = ?1", [])
            try db.executeAll(
                "DELETE FROM thing WHERE size >= ?2 AND name = ?1",
                (0..<count).map { ["\($0)", $0 < 300 ? 1000 : 3000] })
        }
        let rest = try await database.read { db in
            try db.all("SELECT name, size, body FROM thing ORDER BY id") {
                ($0.text("name"), $0.int("size"), $0.blobOrNil("body")) as Thing
            }
        }
        let numbers = (0..<count).filter { $0 >= 300 || $0 % 2 == 1 }
        let expected = numbers.map { number -> Thing in
            let body: [UInt8]? = number % 3 == 0 ? [UInt8(number % 256)] : nil
            return ("\(number)", number % 2 == 0 ? number + 1000 : number, body)
        }
        #expect(rest.map(\.name) == expected.map(\.name))
        #expect(rest.map(\.size) == expected.map(\.size))
        #expect(rest.map(\.body) == expected.map(\.body))
        // Each list has its own order and limit.
        let found = try await database.read { db in
            try db.allOfEach(
                "SELECT name FROM thing WHERE size > ?1 AND size < 1000 ORDER BY size DESC LIMIT ?2",
                [[590, 2], [2000, 5], [0, 3]]
            ) { $0.text("name") }
        }
        #expect(found == [["599", "597"], [], ["599", "597", "595"]])
    }

    // MARK: Migrations

    typealias Open = (_ migrations: [Migration]) throws -> Database

    /// A step after those of `Migration.things`.
    static let second = Migration(
        version: 2, sql: "ALTER TABLE thing ADD COLUMN colour TEXT; UPDATE thing SET colour = 'red';")

    /// Migrations run forward and keep the rows.
    static func expectForward(_ open: Open) async throws {
        let old = try open(Migration.things)
        try await old.add("a")
        old.close()
        for _ in 0..<2 {
            let new = try open(Migration.things + [second])
            #expect(try await new.read { try $0.first("SELECT colour FROM thing") { $0.text(0) } } == "red")
            new.close()
        }
    }

    /// A newer schema is refused and left unchanged.
    static func expectNewerRefused(_ open: Open) throws {
        try open(Migration.things + [second]).close()
        expectUnknown("schema version 2, this program knows versions up to 1") { try open(Migration.things) }
        try open(Migration.things + [second]).close()
    }

    /// A schema older than the first step is refused and left unchanged.
    static func expectOlderRefused(_ open: Open) throws {
        try open(Migration.things).close()
        expectUnknown("schema version 1, this program knows versions from 2 on") { try open([second]) }
        try open(Migration.things).close()
    }

    private static func expectUnknown(_ message: String, _ open: () throws -> Database) {
        let error = #expect(throws: SQLError.self) { try open() }
        #expect(
            error?.code == .unknownSchema && error?.message.contains(message) == true, "\(String(describing: error))")
    }

    /// A failed migration is rolled back and named.
    ///
    /// - Parameter reason: The engine's error for the missing table `nowhere`.
    static func expectUndoneWhole(_ reason: String, _ open: Open) async throws {
        let broken = Migration(
            version: 2, sql: "CREATE TABLE other (id INTEGER) STRICT; INSERT INTO nowhere VALUES (1)")
        let error = #expect(throws: SQLError.self) { try open(Migration.things + [broken]) }
        #expect(error?.message == "migration to version 2: \(reason)")
    }
}
