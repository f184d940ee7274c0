import Base
import CSQLite
import Core
import SQL
import TestSupport
import Testing

@testable import Store

/// A store that is moved from a file to a server and back.
@Suite(.enabled(if: PostgreSQL.isAvailable && !TestStore.isOnServer)) struct MovingTests {
    @Test func `All rows are moved, and new rows get new numbers`() async throws {
        var walk = try await Walk(seed: 9)
        for _ in 0..<300 { _ = try await walk.step() }
        let fixture = walk.fixture
        let texts = ["tab\tnewline\nreturn\r", "back\\slash", "\\N", "\u{0b}\u{0c}\u{08}", "é 🦊", ""]
        try await fixture.store.database.write { db in
            for (number, text) in texts.enumerated() {
                try db.execute(
                    "INSERT INTO idempotency VALUES (?1, 'k', ?2, ?3, x'', x'00ff0a5c09', ?4)", text, Array(text.utf8),
                    number, Int64.min)
            }
            try db.execute("UPDATE live SET priority = 0.1 + 0.2")
        }
        let (first, second) = (fixture.folder.file("first"), fixture.folder.file("second"))
        try Store.export(.file(fixture.folder.file("test.db")), to: first)
        let database = try await SharedPostgreSQL.database()
        let location = Store.Location.server(PostgreSQLServer(database.connection), node: "n")
        try Store.load(first, into: location)
        try Store.export(location, to: second)
        let (before, after) = (try Self.content(first), try Self.content(second))
        #expect(before.count > 20)
        for (table, rows) in before { #expect(after[table] == rows, "\(table)") }
        #expect(throws: (any Error).self) { try Store.load(first, into: location) }
        #expect(throws: (any Error).self) { try Store.export(location, to: second) }

        let there = try Self.open(location)
        defer { there.close() }
        let last = try await fixture.store.database.read { try $0.first("SELECT max(id) FROM task") { $0.int(0) } }
        let task = try await Self.task(in: there)
        #expect(task == (last ?? 0) + 1)
    }

    @Test func `A store in use is not filled`() async throws {
        let fixture = try await StoreFixture()
        let file = fixture.folder.file("copy")
        try Store.export(.file(fixture.folder.file("test.db")), to: file)
        let database = try await SharedPostgreSQL.database()
        let location = Store.Location.server(PostgreSQLServer(database.connection), node: "n")
        let store = try Self.open(location)
        let error = #expect(throws: SQLError.self) { try Store.load(file, into: location) }
        #expect(error?.code == .superseded, "\(String(describing: error))")
        store.close()
        try Store.load(file, into: location)
    }

    private static func open(_ location: Store.Location) throws -> Store {
        try Store(
            location, sealer: Sealer(masterKey: [UInt8](repeating: 7, count: 32)),
            policies: Store.Policies(
                contentRetention: .seconds(1), unacknowledgedRetention: .seconds(1),
                presence: { _ in Presence(isAttached: false, lastDetachedAt: Timestamp(milliseconds: 0)) }),
            log: .none, onFatalError: { preconditionFailure("\($0)") })
    }

    private static func task(in store: Store) async throws -> Int {
        try await store.database.write { db in Int(try db.newNumbers(1, of: "task")[0]) }
    }

    /// Each table's rows as SQL literals, in order.
    private static func content(_ path: String) throws -> [String: [String]] {
        var handle: OpaquePointer?
        try #require(sqlite3_open_v2(path, &handle, SQLITE_OPEN_READONLY, nil) == SQLITE_OK)
        defer { sqlite3_close(handle) }
        var tables: [String: [String]] = [:]
        for table in try texts("SELECT name FROM sqlite_schema WHERE type = 'table'", handle) {
            let columns = try texts("SELECT 'quote(' || name || ')' FROM pragma_table_info('\(table)')", handle)
            let row = columns.joined(separator: " || ',' || ")
            tables[table] = try texts("SELECT \(row) FROM \(table) ORDER BY 1", handle)
        }
        return tables
    }

    private static func texts(_ sql: String, _ handle: OpaquePointer?) throws -> [String] {
        var statement: OpaquePointer?
        try #require(sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK, "\(sql)")
        defer { sqlite3_finalize(statement) }
        var texts: [String] = []
        while sqlite3_step(statement) == SQLITE_ROW {
            texts.append(sqlite3_column_text(statement, 0).map { String(cString: $0) } ?? "")
        }
        return texts
    }
}
