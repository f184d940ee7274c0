import Base

/// One pipelined connection to a PostgreSQL server. A statement without a result is sent together with the next
/// statement whose result is read.
///
/// An error undoes the transaction. All later statements fail with the same error until ``rollBack()``.
final class PostgreSQLConnection: Connection {
    private let pipeline: PostgreSQLPipeline
    private var isInTransaction = false
    /// The number of statements in this transaction that may have changed rows.
    private(set) var writes = 0
    /// Requests without a received result, in order.
    private var questions: [Question] = []

    /// Statements whose rows a caller reads.
    private struct Question {
        /// The number of statements in the request.
        var statements: Int
        /// Whether one statement was sent for several lists, whose number is the last column of the rows.
        var isNumbered = false
        var show: (Int, Row) -> Void
        /// Called after the last row.
        var end: () -> Void
    }

    init(_ server: PostgreSQLServer) throws(SQLError) { pipeline = try PostgreSQLPipeline(server) }

    /// The error that ended the transaction.
    var failure: SQLError? { pipeline.failure }

    /// The number of round trips.
    var roundTrips: Int { pipeline.roundTrips }

    // MARK: Transactions

    /// Begins a transaction without waiting.
    ///
    /// - Parameters:
    ///   - sql: `BEGIN` with the transaction's characteristics.
    ///   - setting: A `SET LOCAL`.
    ///   - values: The parameters of the setting.
    func begin(
        _ sql: StaticString, _ setting: StaticString? = nil, _ values: (any SQLBindable)?...
    ) throws(SQLError) {
        pipeline.forgive()
        (writes, questions) = (0, [])
        try pipeline.connect()
        isInTransaction = true
        try pipeline.send(sql, [])
        if let setting { try pipeline.send(setting, values) }
    }

    /// Waits for the turn to write, which ends with the transaction. Statements sent later wait with it.
    ///
    /// The turn makes all nodes one writer: no other node changes rows between the reads and the writes of a closure.
    ///
    /// - Parameter patience: The maximum wait for the turn and each later lock together, in milliseconds from the start
    ///   of the transaction.
    func takeTurn(within patience: Int64) throws(SQLError) {
        try pipeline.send("SELECT pg_advisory_xact_lock(8390890187454)", [])
        try pipeline.send(
            """
            SELECT set_config('lock_timeout', CAST(greatest(1, CAST(?1 AS BIGINT) \
            - CAST(extract(epoch FROM clock_timestamp() - now()) * 1000 AS BIGINT)) AS TEXT), TRUE)
            """, [patience])
    }

    /// Commits and waits for the response.
    func commit() throws(SQLError) {
        try pipeline.send("COMMIT", [])
        try answer()
        isInTransaction = false
    }

    /// Runs `body` in a transaction of its own.
    func transact<Result>(_ body: (Connection) throws(SQLError) -> Result) throws(SQLError) -> Result {
        try begin("BEGIN ISOLATION LEVEL READ COMMITTED")
        defer { rollBack() }
        let result = try body(self)
        try commit()
        return result
    }

    /// Ends a transaction that changed nothing or has failed, without waiting.
    func rollBack() {
        let isOpen = isInTransaction && pipeline.isConnected
        (isInTransaction, questions) = (false, [])
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
            // For a read, a connection that broke while idle costs only time.
            return try readOnce(body)
        }
    }

    private func readOnce<Result>(_ body: (Connection) throws -> Result) throws -> Result {
        defer { rollBack() }
        try begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        let result = try body(self)
        if let failure { throw failure }
        // Receives the server's error for a write in a read-only transaction.
        if writes > 0 { try answer() }
        return result
    }

    // MARK: Statements

    /// Waits for the results of all statements sent.
    ///
    /// - Returns: The result of the last statement, unless it belongs to a request.
    @discardableResult
    private func answer() throws(SQLError) -> PostgreSQLAnswer? {
        var answers = try pipeline.wait()[...]
        for question in questions.takeAll() {
            for index in 0..<question.statements {
                guard let answer = answers.popFirst() else { return nil }
                let last = Int32(answer.columns.names.count) - 1
                while answer.row < answer.count {
                    let row = Row(answer: answer)
                    question.show(question.isNumbered ? Int(answer.integer(last)) - 1 : index, row)
                    answer.row += 1
                }
            }
            question.end()
        }
        return answers.last
    }

    override func waitForAnswers() throws(SQLError) {
        if let failure { throw failure }
        if !questions.isEmpty { try answer() }
    }

    override func run(
        _ sql: StaticString, _ values: [(any SQLBindable)?], descending: Bool,
        _ body: (Row) throws(SQLError) -> Bool
    ) throws(SQLError) {
        try pipeline.send(sql, values, descending: descending, isWanted: true)
        guard let answer = try answer() else { return }
        // A statement that affected no row leaves nothing to commit.
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
        let changes = try answer()?.changes ?? 0
        writes += changes > 0 ? 1 : 0
        return changes
    }

    override func number(of sql: StaticString, _ values: [(any SQLBindable)?]) throws(SQLError) -> Int64 {
        writes += 1
        try pipeline.send(sql, values, ending: " RETURNING id", isWanted: true)
        return try answer()?.integer(0) ?? 0
    }

    override func runEach(
        _ sql: StaticString, _ lists: [[(any SQLBindable)?]], end: @escaping () -> Void,
        _ body: @escaping (Int, Row) -> Void
    ) throws(SQLError) {
        guard !lists.isEmpty else { return end() }
        if sql.isQuery, lists.count > 1 {
            try pipeline.send(sql, lists: lists[...], isWanted: true)
            questions.append(Question(statements: 1, isNumbered: true, show: body, end: end))
        } else {
            writes += sql.isQuery ? 0 : 1
            for values in lists { try pipeline.send(sql, values, isWanted: true) }
            questions.append(Question(statements: lists.count, show: body, end: end))
        }
    }

    /// The maximum number of lists sent with one statement.
    private static let listLimit = 256

    override func executeAll(_ sql: StaticString, _ lists: [[(any SQLBindable)?]]) throws(SQLError) {
        guard lists.count > 1 else { return try super.executeAll(sql, lists) }
        writes += 1
        for start in stride(from: 0, to: lists.count, by: Self.listLimit) {
            try pipeline.send(sql, lists: lists[start..<min(start + Self.listLimit, lists.count)])
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
}

extension StaticString {
    /// Whether the statement changes nothing.
    fileprivate var isQuery: Bool {
        withUTF8Buffer { $0.starts(with: "SELECT".utf8) || $0.starts(with: "WITH RECURSIVE".utf8) }
    }
}
