import Testing

@testable import SQL

/// The translation of the store's statements for a server.
struct TranslationTests {
    @Test func `Every statement can be translated`() throws {
        let statements = try StoreStatement.all()
        #expect(statements.count > 150)
        for statement in statements {
            #expect(throws: Never.self, "\(statement.file):\(statement.line)") {
                try Self.translate(statement.sql, statement.call)
            }
        }
    }

    @Test(arguments: [
        ("UPDATE task SET state = 'why?' WHERE id = ?1", "execute"),
        ("SELECT id FROM task WHERE id = ?", "first"),
        ("INSERT INTO task (id, state) VALUES (?1, 'queued')", "executeAll"),
        ("INSERT INTO task (id, state) VALUES (?2, ?1)", "executeAll"),
        ("INSERT INTO task (id) VALUES (?1) ON CONFLICT (id) DO UPDATE SET id = ?1", "executeAll"),
        ("INSERT INTO task (id) SELECT ?1", "executeAll"),
        ("UPDATE task SET state = ?1", "executeAll"),
        ("DELETE FROM live WHERE task IN (SELECT id FROM task WHERE session = ?1)", "executeAll"),
    ])
    func `A statement that cannot be translated is detected`(sql: String, call: String) {
        #expect(throws: Untranslatable.self) { try Self.translate(sql, call) }
    }

    @Test func `The clause after the values of many rows is also sent`() throws {
        let sql = try PostgreSQLTranslation.statement(
            "INSERT INTO a (b, c) VALUES (?1, ?2) ON CONFLICT (b) DO UPDATE SET c = excluded.c", forLists: [1016, 1009])
        #expect(
            sql == """
                INSERT INTO a (b, c) SELECT lists.c1, lists.c2 FROM unnest($1, $2) AS lists (c1, c2) \
                ON CONFLICT (b) DO UPDATE SET c = excluded.c
                """)
    }

    /// Translates a statement like the connection: for one list of values and, if there may be several, for many.
    private static func translate(_ sql: String, _ call: String) throws {
        _ = try PostgreSQLTranslation.statement(sql)
        let isQuery = sql.hasPrefix("SELECT") || sql.hasPrefix("WITH RECURSIVE")
        let mayHaveLists = call == "executeAll" || isQuery && (call == "ask" || call == "allOfEach")
        let parameters = sql.matches(of: /\?(\d+)/).compactMap { Int($0.1) }.max() ?? 0
        guard mayHaveLists, parameters > 0 else { return }
        _ = try PostgreSQLTranslation.statement(sql, forLists: [UInt32](repeating: 1016, count: parameters))
    }
}
