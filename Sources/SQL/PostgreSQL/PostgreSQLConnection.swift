import Base
import CPostgreSQL
import Glibc

/// One connection to a PostgreSQL server, in pipeline mode: what nobody waits for travels with what somebody does.
///
/// An error undoes the transaction, and whatever is asked of it afterwards fails with the same error until ``rollBack()``.
/// The corresponding C functions are `PQconnectdbParams`, `PQsendQueryPrepared`, `PQpipelineSync` and `PQfinish`.
final class PostgreSQLConnection: Connection {
    /// What was sent and is not answered yet, in order.
    private enum Sent {
        case preparation(Prepared)
        case statement(Prepared, isWanted: Bool)
        /// The transaction up to here is undone: what was wrong in it concerns nobody any more.
        case undone
        case sync
    }

    /// A statement that the server knows by a name, or that is sent anew each time.
    private final class Prepared {
        let name: String
        let types: [UInt32]
        let form: [UInt32]
        var shape: PostgreSQLAnswer.Shape?

        init(name: String, types: [UInt32], form: [UInt32]) {
            self.name = name
            self.types = types
            self.form = form
        }
    }

    private let pq: libpq
    private let server: PostgreSQLServer
    private var handle: OpaquePointer?
    private var statements: [UnsafePointer<UInt8>: [Prepared]] = [:]
    private var lastName = 0
    private var sent: [Sent] = []
    private var isInTransaction = false
    /// Why the transaction is lost.
    private(set) var failure: SQLError?
    /// Statements that may have changed something, in this transaction.
    private(set) var writes = 0
    /// Times that an answer was waited for, since the connection was made.
    private(set) var roundTrips = 0
    /// When what is waited for is given up, by the monotonic clock in milliseconds.
    var deadline = Int64.max
    private var values = PostgreSQLValues()

    init(_ server: PostgreSQLServer) throws(SQLError) {
        pq = try LibPQ.functions()
        self.server = server
    }

    deinit { pq.PQfinish(handle) }

    // MARK: The connection

    var isConnected: Bool { handle != nil }

    /// Connects, where that is not done yet, or the server has hung up: nobody would know what became of a commit that is
    /// sent there.
    func connect() throws(SQLError) {
        if hasEnded { disconnect() }
        guard handle == nil else { return }
        let handle = try connected()
        guard pq.PQsetnonblocking(handle, 1) == 0, pq.PQenterPipelineMode(handle) == 1 else {
            defer { pq.PQfinish(handle) }
            throw lost(handle)
        }
        self.handle = handle
    }

    /// Runs `body` with a connection that is not in pipeline mode, for scripts.
    func withScripts<Result>(
        _ body: ((String) throws(SQLError) -> [String?]) throws(SQLError) -> Result
    ) throws(SQLError) -> Result {
        let handle = try connected()
        defer { pq.PQfinish(handle) }
        return try body { sql throws(SQLError) in
            guard let result = pq.PQexec(handle, sql) else { throw lost(handle) }
            defer { pq.PQclear(result) }
            if let error = error(in: result) { throw error }
            guard pq.PQntuples(result) > 0 else { return [] }
            return (0..<pq.PQnfields(result)).map { column in
                pq.PQgetisnull(result, 0, column) != 0
                    ? nil : pq.PQgetvalue(result, 0, column).map { String(cString: $0) }
            }
        }
    }

    /// A connection that is not in pipeline mode, for whom it belongs to from here on.
    func connected() throws(SQLError) -> OpaquePointer {
        let parameters = PostgreSQLServer.defaults + [("dbname", server.connection)]
        let handle = withCStrings(parameters.map(\.0)) { names in
            withCStrings(parameters.map(\.1)) { pq.PQconnectdbParams(names, $0, 1) }
        }
        guard let handle else { throw SQLError(.unreachable, "no memory for a connection") }
        // By itself, libpq would print what the server remarks.
        _ = pq.PQsetNoticeProcessor(handle, { _, _ in }, nil)
        guard pq.PQstatus(handle) == CONNECTION_OK else {
            defer { pq.PQfinish(handle) }
            throw lost(handle)
        }
        guard pq.PQserverVersion(handle) >= 140_000 else {
            defer { pq.PQfinish(handle) }
            throw SQLError(.unknownSchema, "the PostgreSQL server is too old: version 14 or later is needed")
        }
        return handle
    }

    /// Lets go of the connection. The server undoes what was not committed.
    func disconnect() {
        pq.PQfinish(handle)
        handle = nil
        statements = [:]
        sent = []
        isInTransaction = false
        writes = 0
    }

    /// Whether the server has ended the connection since it was asked the last time.
    private var hasEnded: Bool {
        guard let handle else { return false }
        var descriptor = pollfd(fd: pq.PQsocket(handle), events: Int16(POLLIN), revents: 0)
        // Last words may come before the end.
        while poll(&descriptor, 1, 0) > 0 {
            if pq.PQconsumeInput(handle) != 1 { return true }
        }
        return false
    }

    private func lost(_ handle: OpaquePointer) -> SQLError {
        let message = pq.PQerrorMessage(handle).map { String(cString: $0) } ?? ""
        return SQLError(.unreachable, message.split(whereSeparator: \.isWhitespace).joined(separator: " "))
    }

    /// The connection is of no use any more.
    private func breakOff(_ error: SQLError) -> SQLError {
        disconnect()
        failure = error
        return error
    }

    // MARK: Transactions

    /// Begins a transaction; nothing is waited for.
    ///
    /// - Parameters:
    ///   - sql: `BEGIN` with what is to hold for it.
    ///   - setting: A `SET LOCAL`.
    func begin(_ sql: StaticString, _ setting: StaticString? = nil) throws(SQLError) {
        failure = nil
        writes = 0
        try connect()
        isInTransaction = true
        try send(sql, [])
        if let setting { try send(setting, []) }
    }

    /// Ends the transaction and waits until that is done.
    func commit() throws(SQLError) {
        try send("COMMIT", [])
        try wait()
        isInTransaction = false
    }

    /// Ends a transaction that may have changed nothing, or is lost; nothing is waited for.
    func rollBack() {
        failure = nil
        guard isInTransaction else { return }
        isInTransaction = false
        do throws(SQLError) {
            // Where something fails, the server skips all up to the next mark: ROLLBACK is behind it.
            if !sent.isEmpty {
                try sync()
                sent.append(.undone)
            }
            try send("ROLLBACK", [])
            try sync()
        } catch {
            disconnect()
        }
        failure = nil
    }

    override func read<Result>(until deadline: Int64, _ body: (Connection) throws -> Result) throws -> Result {
        self.deadline = deadline
        defer { self.deadline = .max }
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
        if writes > 0 { try wait() }
        return result
    }

    // MARK: Statements

    override func run(
        _ sql: StaticString, _ values: [(any SQLBindable)?], _ body: (Row) throws(SQLError) -> Bool
    ) throws(SQLError) {
        writes += sql.isQuery ? 0 : 1
        let answer = try answer(to: try send(sql, values, isWanted: true))
        while answer.row < answer.count {
            guard try body(Row(answer: answer)) else { return }
            answer.row += 1
        }
    }

    override func enqueue(_ sql: StaticString, _ values: [(any SQLBindable)?]) throws(SQLError) {
        writes += 1
        try send(sql, values)
    }

    override func changes(of sql: StaticString, _ values: [(any SQLBindable)?]) throws(SQLError) -> Int {
        writes += 1
        try send(sql, values, isWanted: true)
        guard let result = try wait().first else { return 0 }
        defer { pq.PQclear(result) }
        return pq.PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0
    }

    override func number(of sql: StaticString, _ values: [(any SQLBindable)?]) throws(SQLError) -> Int64 {
        writes += 1
        let statement = try send(sql, values, ending: " RETURNING id", isWanted: true)
        return try answer(to: statement).integer(0)
    }

    override func runEach(
        _ sql: StaticString, _ lists: [[(any SQLBindable)?]], _ body: (Int, Row) throws(SQLError) -> Void
    ) throws(SQLError) {
        guard !lists.isEmpty else { return }
        writes += sql.isQuery ? 0 : 1
        var statements: [Prepared] = []
        for values in lists { statements.append(try send(sql, values, isWanted: true)) }
        let answers = try zip(statements, wait()).map { answer($0, $1) }
        for (index, answer) in answers.enumerated() {
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
            values.set(columnsOf: rows[start..<min(start + Self.rowLimit, rows.count)])
            try sendValues(sql) { Self.insertion(sql, values.form) }
        }
    }

    /// An INSERT of rows that come as an array for each column.
    private static func insertion(_ sql: StaticString, _ form: [UInt32]) -> String {
        let text = sql.description
        guard let values = text.firstRange(of: "VALUES (") else { preconditionFailure("no VALUES: \(text)") }
        let names = form.indices.map { form[$0] == 0 ? "NULL" : "c\($0)" }
        let present = names.filter { $0 != "NULL" }
        let parameters = present.indices.map { "$\($0 + 1)" }
        return text[..<values.lowerBound] + "SELECT " + names.joined(separator: ", ") + " FROM unnest("
            + parameters.joined(separator: ", ") + ") AS rows (" + present.joined(separator: ", ") + ")"
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

    private func answer(to statement: Prepared) throws(SQLError) -> PostgreSQLAnswer {
        guard let result = try wait().first else { throw breakOff(SQLError(.unreachable, "an answer is missing")) }
        return answer(statement, result)
    }

    private func answer(_ statement: Prepared, _ result: OpaquePointer) -> PostgreSQLAnswer {
        let shape = statement.shape ?? PostgreSQLAnswer.Shape(result, pq)
        statement.shape = shape
        return PostgreSQLAnswer(result, shape, pq)
    }

    @discardableResult
    private func send(
        _ sql: StaticString, _ parameters: [(any SQLBindable)?], ending: StaticString = "",
        isWanted: Bool = false
    ) throws(SQLError) -> Prepared {
        values.set(parameters)
        return try sendValues(sql, isWanted: isWanted) { Self.translated(sql) + ending.description }
    }

    /// Sends a statement with the values that are set.
    ///
    /// - Parameter text: In the server's words.
    @discardableResult
    private func sendValues(
        _ sql: StaticString, isWanted: Bool = false, text: () -> String
    ) throws(SQLError) -> Prepared {
        if let failure { throw failure }
        guard let handle else { throw breakOff(SQLError(.unreachable, "there is no connection")) }
        let statement = try prepared(sql, handle, text)
        let isSent = values.withPointers { pointers, lengths, formats in
            server.keepsStatements
                ? pq.PQsendQueryPrepared(
                    handle, statement.name, Int32(values.count), pointers, lengths, formats, 1)
                : statement.types.withUnsafeBufferPointer { types in
                    pq.PQsendQueryParams(
                        handle, statement.name, Int32(values.count), types.baseAddress, pointers, lengths, formats, 1)
                }
        }
        guard isSent == 1 else { throw breakOff(lost(handle)) }
        sent.append(.statement(statement, isWanted: isWanted))
        return statement
    }

    /// The statement with parameters of these types; sent ahead where the server does not know it.
    private func prepared(
        _ sql: StaticString, _ handle: OpaquePointer, _ text: () -> String
    ) throws(SQLError) -> Prepared {
        if let known = statements[sql.utf8Start]?.first(where: { $0.form == values.form }) { return known }
        let text = text()
        guard server.keepsStatements else {
            let statement = Prepared(name: text, types: values.types, form: values.form)
            statements[sql.utf8Start, default: []].append(statement)
            return statement
        }
        lastName += 1
        let statement = Prepared(name: "s\(lastName)", types: values.types, form: values.form)
        let isSent = values.types.withUnsafeBufferPointer {
            pq.PQsendPrepare(handle, statement.name, text, Int32($0.count), $0.baseAddress)
        }
        guard isSent == 1 else { throw breakOff(lost(handle)) }
        statements[sql.utf8Start, default: []].append(statement)
        sent.append(.preparation(statement))
        return statement
    }

    /// The literal with `$1` for `?1`. No literal has a question mark elsewhere.
    private static func translated(_ sql: StaticString) -> String {
        sql.withUTF8Buffer { bytes in
            String(decoding: bytes.map { $0 == UInt8(ascii: "?") ? UInt8(ascii: "$") : $0 }, as: UTF8.self)
        }
    }

    // MARK: Waiting

    private func sync() throws(SQLError) {
        guard let handle else { return }
        guard pq.PQpipelineSync(handle) == 1, pq.PQflush(handle) >= 0 else { throw breakOff(lost(handle)) }
        sent.append(.sync)
    }

    /// Waits for the answers to all that was sent, and gives those that somebody wants, in order.
    ///
    /// - Throws: The first error among all of them.
    @discardableResult
    private func wait() throws(SQLError) -> [OpaquePointer] {
        try sync()
        roundTrips += 1
        var wanted: [OpaquePointer] = []
        do throws(SQLError) {
            for item in sent.takeAll() {
                switch item {
                case .sync: pq.PQclear(try next())
                case .undone:
                    failure = nil
                    for result in wanted.takeAll() { pq.PQclear(result) }
                case .preparation(let statement):
                    let (result, error) = try result()
                    pq.PQclear(result)
                    if error != nil { forget(statement) }
                    failure = failure ?? error
                case .statement(_, let isWanted):
                    let (result, error) = try result()
                    failure = failure ?? error
                    if isWanted, let result { wanted.append(result) } else { pq.PQclear(result) }
                }
            }
            // A server that is going away, or takes no writes any more, is looked for anew.
            if let failure { throw failure.code == .unreachable ? breakOff(failure) : failure }
            return wanted
        } catch {
            for result in wanted { pq.PQclear(result) }
            throw error
        }
    }

    /// The result of one statement, up to the mark that nothing follows.
    private func result() throws(SQLError) -> (OpaquePointer?, error: SQLError?) {
        guard let first = try next() else { throw breakOff(SQLError(.unreachable, "an answer is missing")) }
        do throws(SQLError) {
            while let more = try next() { pq.PQclear(more) }
            guard let error = error(in: first) else { return (first, nil) }
            throw error
        } catch {
            pq.PQclear(first)
            guard handle != nil else { throw error }
            return (nil, error)
        }
    }

    private func next() throws(SQLError) -> OpaquePointer? {
        guard let handle else { throw breakOff(SQLError(.unreachable, "there is no connection")) }
        while pq.PQisBusy(handle) != 0 { try waitForServer(handle) }
        return pq.PQgetResult(handle)
    }

    private func waitForServer(_ handle: OpaquePointer) throws(SQLError) {
        let unsent = pq.PQflush(handle)
        guard unsent >= 0 else { throw breakOff(lost(handle)) }
        var descriptor = pollfd(
            fd: pq.PQsocket(handle), events: Int16(POLLIN | (unsent > 0 ? POLLOUT : 0)), revents: 0)
        let left = deadline == .max ? Int64(Self.patience) : deadline - Clock.system.monotonic()
        let count = left > 0 ? poll(&descriptor, 1, Int32(clamping: left)) : 0
        if count < 0, errno == EINTR { return }
        guard count > 0 else {
            cancel(handle)
            let isRead = deadline != .max
            throw breakOff(isRead ? .interrupted : SQLError(.unreachable, "the server does not answer"))
        }
        guard pq.PQconsumeInput(handle) == 1 else { throw breakOff(lost(handle)) }
    }

    /// For how long an answer is waited for where nothing else is said, in milliseconds.
    private static let patience: Int32 = 30_000

    /// Tells the server that nobody waits any more, on a thread of its own: that takes a connection, and where the network
    /// stands still nobody should wait for that either.
    private func cancel(_ handle: OpaquePointer) {
        guard let request = pq.PQgetCancel(handle) else { return }
        let cancellation = Cancellation(request: request)
        do throws(SystemError) {
            try SystemThread.start("store-cancel") { [pq] in
                var reason = [CChar](repeating: 0, count: 256)
                // What comes of it is not needed: the connection is closed in any case.
                _ = pq.PQcancel(cancellation.request, &reason, Int32(reason.count))
                pq.PQfreeCancel(cancellation.request)
            }
        } catch {
            pq.PQfreeCancel(request)
        }
    }

    /// Unchecked: the thread that cancels is the only one that has it.
    private struct Cancellation: @unchecked Sendable {
        let request: OpaquePointer
    }

    private func forget(_ statement: Prepared) {
        for (key, variants) in statements where variants.contains(where: { $0 === statement }) {
            statements[key] = variants.filter { $0 !== statement }
        }
    }

    private func error(in result: OpaquePointer) -> SQLError? {
        switch pq.PQresultStatus(result) {
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY, PGRES_PIPELINE_SYNC: return nil
        case PGRES_PIPELINE_ABORTED: return SQLError(.postgresql("25P02"), "a statement before failed")
        default:
            func field(_ code: Int32) -> String? {
                pq.PQresultErrorField(result, code).map { String(cString: $0) }
            }
            let message = field(libpq_message) ?? "no message"
            guard let state = field(libpq_sqlstate) else { return SQLError(.unreachable, message) }
            // The server ends, has ended, or is one that takes no writes any more.
            let isAway = ["57P01", "57P02", "57P03", "25006"].contains(state) || state.hasPrefix("08")
            return isAway ? SQLError(.unreachable, message) : SQLError(.postgresql(state), message)
        }
    }
}

extension StaticString {
    /// Whether it changes nothing.
    fileprivate var isQuery: Bool { withUTF8Buffer { $0.starts(with: "SELECT".utf8) } }
}
