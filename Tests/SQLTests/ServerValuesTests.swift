import Base
import TestSupport
import Testing

@testable import SQL

@Suite(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
struct `Values on a server` {
    private enum Colour: String, SQLBindable { case red, blue }

    private static let table = Migration(
        version: 1,
        sql: """
            CREATE TABLE record (
                id INTEGER PRIMARY KEY AUTOINCREMENT, number INTEGER, ratio REAL, name TEXT, body BLOB
            ) STRICT;
            """)

    @Test(arguments: [true, false])
    func `Values of all types survive a round trip`(_ keepsStatements: Bool) async throws {
        let home = try await SharedPostgreSQL.database()
        let database = try home.open(keepsStatements: keepsStatements, migrations: [Self.table])
        let absent: String? = nil
        let large = (0..<(3 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        let numbers: [Int64] = [.min, -1, 0, 1, .max]
        let ratios = [0.1, -.infinity, .greatestFiniteMagnitude, .leastNonzeroMagnitude, -0.0]
        let names = ["", "é", "👩‍🚀", "line\nbreak", "nothing\0more"]
        let bodies = [[], [0, 255], large, [0x80], [0]]
        try await database.write { db in
            for index in 0..<5 {
                try db.execute(
                    "INSERT INTO record (number, ratio, name, body) VALUES (?1, ?2, ?3, ?4)", numbers[index],
                    ratios[index], names[index], bodies[index])
            }
            try db.execute(
                "INSERT INTO record (number, ratio, name, body) VALUES (?1, ?2, ?3, ?4)", nil, Double?.none, absent,
                SQLValue.null)
            try db.execute(
                "INSERT INTO record (number, ratio, name, body) VALUES (?1, ?2, ?3, ?4)", true, 7.0, Colour.blue, nil)
        }
        try await database.read { db in
            var index = 0
            try db.forEach("SELECT number, ratio, name, body FROM record WHERE id < 6 ORDER BY id") { row in
                #expect(row.integer("number") == numbers[index])
                #expect(row.real("ratio").bitPattern == ratios[index].bitPattern)
                // PostgreSQL does not support this character in text.
                #expect(row.textOrNil("name") == names[index].replacing("\0", with: "?"))
                let isSame = row.blobOrNil("body") == bodies[index]
                #expect(isSame)
                index += 1
                return true
            }
            #expect(index == 5)
            let isEmpty = try db.first("SELECT number, ratio, name, body FROM record WHERE id = ?1", 6) { row in
                #expect(row.integerOrNil(0) == nil && row.integer(0) == 0)
                #expect(row.isNull(1) && row.real(1) == 0)
                #expect(row.textOrNil(2) == nil && row.text(2) == "")
                #expect(row.blobOrNil(3) == nil && row.blob(3) == [])
                return true
            }
            #expect(isEmpty == true)
            let last = try db.first("SELECT name, number FROM record WHERE name = ?1", Colour.blue) {
                ($0.bool("number"), $0.text("name"))
            }
            #expect(last?.0 == true && last?.1 == "blue")
        }
    }

    @Test(arguments: [true, false])
    func `A nested use of a statement is a statement of its own`(_ keepsStatements: Bool) async throws {
        let home = try await SharedPostgreSQL.database()
        let database = try home.open(keepsStatements: keepsStatements)
        @Sendable func countdown(_ db: Connection, _ from: Int) throws(SQLError) -> [Int] {
            var seen: [Int] = []
            try db.forEach("SELECT ?1 AS a UNION ALL SELECT ?1 + 10 ORDER BY a", from) { row throws(SQLError) in
                seen.append(row.int("a"))
                if from > 0 { seen += try countdown(db, from - 1) }
                seen.append(row.int("a"))
                return true
            }
            return seen
        }
        let seen = try await database.read { db in try countdown(db, 1) }
        #expect(seen == [1, 0, 0, 10, 10, 1, 11, 0, 0, 10, 10, 11])
    }

    @Test func `Reading stops when the closure has enough rows`() async throws {
        let database = try await SharedPostgreSQL.database().open()
        for name in ["a", "b", "c"] { try await database.add(name) }
        try await database.read { db in
            var seen: [String] = []
            try db.forEach("SELECT name FROM thing ORDER BY id") { row in
                seen.append(row.text(0))
                return seen.count < 2
            }
            #expect(seen == ["a", "b"])
            #expect(try db.first("SELECT name FROM thing ORDER BY id DESC") { $0.text(0) } == "c")
            #expect(try db.first("SELECT name FROM thing WHERE id < 0") { $0.text(0) } == nil)
            #expect(try db.exists("SELECT 1 FROM thing WHERE name = ?1", "b"))
            #expect(try !db.exists("SELECT 1 FROM thing WHERE name = ?1", "d"))
        }
    }

    @Test func `The numbers of changes and of a new row are returned`() async throws {
        let database = try await SharedPostgreSQL.database().open()
        try await database.write { db in
            let ids = try ["a", "b"].map { try db.insert("INSERT INTO thing (name) VALUES (?1)", $0) }
            #expect(ids == [1, 2])
            #expect(try db.insert("INSERT INTO thing (id, name) VALUES (41, 'c')") == 41)
            #expect(try db.change("UPDATE thing SET size = ?1 WHERE id < ?2", 9, 10) == 2)
            #expect(try db.change("DELETE FROM thing WHERE name = 'nobody'") == 0)
            let sizes = try db.all("SELECT size FROM thing ORDER BY id") { $0.int("size") }
            #expect(sizes == [9, 9, 0])
        }
    }

    @Test(arguments: [true, false])
    func `Prepared statements stay on the server only if permitted`(_ keepsStatements: Bool) async throws {
        let database = try await SharedPostgreSQL.database().open(keepsStatements: keepsStatements)
        try await database.add("a")
        let left = try await database.write {
            try $0.first("SELECT count(*) FROM pg_prepared_statements") { $0.int(0) }
        }
        #expect(left.map { $0 > 0 } == keepsStatements)
    }
}
