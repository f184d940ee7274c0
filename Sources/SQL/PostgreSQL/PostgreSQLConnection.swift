import Base

/// One connection to a PostgreSQL server: what nobody waits for travels with what somebody does.
///
/// An error undoes the transaction, and whatever is asked of it afterwards fails with the same error until ``rollBack()``.
final class PostgreSQLConnection: Connection {
    private let pipeline: PostgreSQLPipeline
    private var isInTransaction = false
    /// Statements that may have changed something, in this transaction.
    private(set) var writes = 0

    init(_ server: PostgreSQLServer) throws(SQLError) { pipeline = try PostgreSQLPipeline(server) }

    /// Why the transaction is lost.
    var failure: SQLError? { pipeline.failure }

    /// Times that an answer was waited for.
    var roundTrips: Int { pipeline.roundTrips }

    // MARK: Transactions

    /// Begins a transaction; nothing is waited for.
    ///
    /// - Parameters:
    ///   - sql: `BEGIN` with what is to hold for it.
    ///   - setting: A `SET LOCAL`.
    func begin(_ sql: StaticString, _ setting: StaticString? = nil) throws(SQLError) {
        pipeline.forgive()
        writes = 0
        try pipeline.connect()
        isInTransaction = true
        try pipeline.send(sql, [])
        if let setting { try pipeline.send(setting, []) }
    }

    /// Waits for the turn to write, which a node has until its transaction ends; what is sent next waits with it.
    ///
    /// The turn makes of all nodes one writer: what a closure has read nobody changes before it writes.
    func takeTurn() throws(SQLError) { try pipeline.send("SELECT pg_advisory_xact_lock(8390890187454)", []) }

    /// Ends the transaction and waits until that is done.
    func commit() throws(SQLError) {
        try pipeline.send("COMMIT", [])
        try pipeline.wait()
        isInTransaction = false
    }

    /// Ends a transaction that may have changed nothing, or is lost; nothing is waited for.
    func rollBack() {
        let isOpen = isInTransaction && pipeline.isConnected
        isInTransaction = false
        pipeline.forgive()
        guard isOpen else { return }
        do throws(SQLError) {
            try pipeline.markUndone()
            try pipeline.send("ROLLBACK", [])
            try pipeline.sync()
        } catch {
            pipeline.disconnect()
            pipeline.forgive()
        }
    }

    override func read<Result>(until deadline: Int64, _ body: (Connection) throws -> Result) throws -> Result {
        pipeline.deadline = deadline
        defer { pipeline.deadline = .max }
        do {
            return try readOnce(body)
        } catch let error as SQLError where error.code == .unreachable && Clock.system.monotonic() < deadline {
            // A connection that broke while it idled costs a read nothing but time.
            return try readOnce(body)
        }
    }

    private func readOnce<Result>(_ body: (Connection) throws -> Result) throws -> Result {
        defer { rollBack() }
        try begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        let result = try body(self)
        if let failure { throw failure }
        // To be told that it may not.
        if writes > 0 { try pipeline.wait() }
        return result
    }

    // MARK: Statements

    override func run(
        _ sql: StaticString, _ values: [(any SQLBindable)?], _ body: (Row) throws(SQLError) -> Bool
    ) throws(SQLError) {
        try pipeline.send(sql, values, isWanted: true)
        guard let answer = try pipeline.wait().first else { return }
        // What found no row to change leaves nothing to commit.
        writes += sql.isQuery || answer.changes == 0 ? 0 : 1
        while answer.row < answer.count {
            guard try body(Row(answer: answer)) else { return }
            answer.row += 1
        }
    }

    override func enqueue(_ sql: StaticString, _ values: [(any SQLBindable)?]) throws(SQLError) {
        writes += 1
        try pipeline.send(sql, values)
    }

    override func changes(of sql: StaticString, _ values: [(any SQLBindable)?]) throws(SQLError) -> Int {
        try pipeline.send(sql, values, isWanted: true)
        let changes = try pipeline.wait().first?.changes ?? 0
        writes += changes > 0 ? 1 : 0
        return changes
    }

    override func number(of sql: StaticString, _ values: [(any SQLBindable)?]) throws(SQLError) -> Int64 {
        writes += 1
        try pipeline.send(sql, values, ending: " RETURNING id", isWanted: true)
        return try pipeline.wait().first?.integer(0) ?? 0
    }

    override func runEach(
        _ sql: StaticString, _ lists: [[(any SQLBindable)?]], _ body: (Int, Row) throws(SQLError) -> Void
    ) throws(SQLError) {
        guard !lists.isEmpty else { return }
        writes += sql.isQuery ? 0 : 1
        for values in lists { try pipeline.send(sql, values, isWanted: true) }
        for (index, answer) in try pipeline.wait().enumerated() {
            while answer.row < answer.count {
                try body(index, Row(answer: answer))
                answer.row += 1
            }
        }
    }

    /// Rows that one statement inserts at most.
    private static let rowLimit = 256

    override func insertAll(_ sql: StaticString, _ rows: [[(any SQLBindable)?]]) throws(SQLError) {
        guard rows.count > 1 else { return try super.insertAll(sql, rows) }
        writes += 1
        for start in stride(from: 0, to: rows.count, by: Self.rowLimit) {
            try pipeline.send(sql, rows: rows[start..<min(start + Self.rowLimit, rows.count)])
        }
    }

    override func newNumbers(_ count: Int, of table: String) throws(SQLError) -> [Int64] {
        var numbers: [Int64] = []
        try forEach(
            """
            SELECT nextval(sequence) FROM (SELECT CAST(pg_get_serial_sequence(?1, 'id') AS regclass) AS sequence) AS own, \
            generate_series(1, ?2)
            """, table, count
        ) { row throws(SQLError) in
            numbers.append(row.integer(0))
            return true
        }
        return numbers
    }

    // MARK: Nodes

    override func nodes() throws(SQLError) -> [Node] {
        var nodes: [Node] = []
        try forEach(
            """
            SELECT id, committed, draining, document, lease_until > now() AS alive, \
            CAST(extract(epoch FROM now() - lease_until) * 1000 AS BIGINT) AS overdue FROM node ORDER BY id
            """
        ) { row throws(SQLError) in
            nodes.append(
                Node(
                    id: row.text("id"), isAlive: row.bool("alive"),
                    silence: max(.zero, .seconds(PostgreSQLNode.lease) + .milliseconds(row.integer("overdue"))),
                    committed: row.integer("committed"), isDraining: row.bool("draining"),
                    document: row.blob("document")))
            return true
        }
        return nodes
    }

    override func buryNodes(but node: String) throws(SQLError) -> [String] {
        var buried: [String] = []
        try forEach("DELETE FROM node WHERE id <> ?1 AND lease_until <= now() RETURNING id", node) {
            row throws(SQLError) in
            buried.append(row.text("id"))
            return true
        }
        return buried
    }

    override func describe(node: String, as document: [UInt8]) throws(SQLError) {
        try execute("UPDATE node SET document = ?2 WHERE id = ?1", node, document)
    }

    override func drain(node: String) throws(SQLError) -> Bool {
        try change("UPDATE node SET draining = TRUE WHERE id = ?1", node) > 0
    }
}

extension StaticString {
    /// Whether it changes nothing.
    fileprivate var isQuery: Bool {
        withUTF8Buffer { $0.starts(with: "SELECT".utf8) || $0.starts(with: "WITH RECURSIVE".utf8) }
    }
}
