import Base
import TestSupport
import Testing

@testable import SQL

/// What is expected of a database whichever engine has it.
enum EitherEngine {
    struct Refusal: Error, Equatable {}

    static func add(_ name: String) -> @Sendable (Connection) throws -> Void {
        { db in try db.execute("INSERT INTO thing (name) VALUES (?1)", name) }
    }

    // MARK: Reads

    /// A closure that reads sees one moment.
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

    /// Of a group, a closure that throws after it wrote and one that breaks a rule are undone alone.
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

    /// Many who write at once lose nothing.
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

    // MARK: Migrations

    typealias Open = (_ migrations: [Migration]) throws -> Database

    /// A step behind those of `Migration.things`.
    static let second = Migration(
        version: 2, sql: "ALTER TABLE thing ADD COLUMN colour TEXT; UPDATE thing SET colour = 'red';")

    /// Migrations go forward and keep what is there.
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

    /// A schema of a newer program is refused and left alone.
    static func expectNewerRefused(_ open: Open) throws {
        try open(Migration.things + [second]).close()
        expectUnknown("schema version 2, this program knows versions up to 1") { try open(Migration.things) }
        try open(Migration.things + [second]).close()
    }

    /// A schema older than the first step is refused and left alone.
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

    /// A migration that fails is undone whole and says which it was.
    ///
    /// - Parameter reason: What the engine says of a table `nowhere` that is not there.
    static func expectUndoneWhole(_ reason: String, _ open: Open) async throws {
        let broken = Migration(
            version: 2, sql: "CREATE TABLE other (id INTEGER) STRICT; INSERT INTO nowhere VALUES (1)")
        let error = #expect(throws: SQLError.self) { try open(Migration.things + [broken]) }
        #expect(error?.message == "migration to version 2: \(reason)")
    }
}
