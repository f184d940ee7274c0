import Base
import Glibc
import SQL
import TestSupport
import Testing

@Suite struct `Statements` {
    private enum Colour: String, SQLBindable { case red, blue }

    @Test func `Values of all types survive a round trip`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        let absent: String? = nil
        try await database.read { db in
            let seen: Void? = try db.first(
                "SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?", 7, Int64.max, 0.5, "\u{e9}\0z", [UInt8(0), 255], true, nil,
                absent, Colour.blue, SQLValue.text("")
            ) { row in
                #expect(row.int(0) == 7)
                #expect(row.integer(1) == Int64.max)
                #expect(row.real(2) == 0.5)
                #expect(row.text(3) == "\u{e9}\0z")
                #expect(row.blob(4) == [0, 255])
                #expect(row.bool(5))
                #expect(row.integerOrNil(6) == nil && row.isNull(6))
                #expect(row.textOrNil(7) == nil && row.text(7) == "")
                #expect(row.text(8) == "blue")
                #expect(row.textOrNil(9) == "")
            }
            #expect(seen != nil)
        }
    }

    @Test func `Columns are found by name in each statement`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        let sums = try await database.write { db in
            try db.execute("INSERT INTO thing (name, size) VALUES ('a', 1), ('b', 2)")
            func weigh(_ row: Row) -> String { "\(row.text("name")) \(row.int("size") + row.int("extra"))" }
            return try db.all("SELECT name, size, size * 10 AS extra FROM thing ORDER BY id", read: weigh)
                + db.all("SELECT t.size, 100 AS extra, t.name FROM thing t ORDER BY id", read: weigh)
        }
        #expect(sums == ["a 11", "b 22", "a 101", "b 102"])
    }

    @Test func `An empty blob is not NULL`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        let blob = try await database.read { db in try db.first("SELECT ?", [UInt8]()) { $0.blobOrNil(0) } }
        #expect(blob == .some([]))
    }

    @Test func `A nested use of a statement is a statement of its own`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        @Sendable func countdown(_ db: Connection, _ from: Int) throws(SQLError) -> [Int] {
            var seen: [Int] = []
            try db.forEach("SELECT ?1 UNION ALL SELECT ?1 + 10", from) { row throws(SQLError) in
                seen.append(row.int(0))
                if from > 0 { seen += try countdown(db, from - 1) }
                return true
            }
            return seen
        }
        let seen = try await database.read { db in try countdown(db, 1) }
        #expect(seen == [1, 0, 10, 11, 0, 10])
    }

    @Test func `The loop stops when its closure returns false`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        let seen = try await database.read { db in
            var seen: [Int] = []
            try db.forEach("SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3") { row in
                seen.append(row.int(0))
                return seen.count < 2
            }
            return seen
        }
        #expect(seen == [1, 2])
    }

    @Test func `A writing statement runs to its end even if one row is read`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        let first = try await database.write { db in
            try db.first("INSERT INTO thing (name) VALUES ('a'), ('b'), ('c') RETURNING name") { $0.text(0) }
        }
        #expect(first == "a")
        #expect(try await database.names() == ["a", "b", "c"])
    }

    @Test func `A statement works again after a failure`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        let results = try await database.write { db in
            var results: [Bool] = []
            for name in ["a", "a", "b"] {
                do throws(SQLError) {
                    try db.execute("INSERT INTO thing (name) VALUES (?)", name)
                    results.append(true)
                } catch {
                    #expect(error.isConstraint && error.code == .sqlite(2067))
                    results.append(false)
                }
            }
            return results
        }
        #expect(results == [true, false, true])
        #expect(try await database.names() == ["a", "b"])
    }

    @Test func `The numbers of changes and of a new row are returned`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open()
        let (id, changes) = try await database.write { db in
            let id = try db.insert("INSERT INTO thing (id, name) VALUES (41, 'a')")
            return (id, try db.change("UPDATE thing SET size = ? WHERE id = ?", 9, id))
        }
        #expect(id == 41 && changes == 1)
    }
}
