import Base
import CPostgreSQL
import Glibc

/// A connection in pipeline mode, for one thread: statements sent and results received.
///
/// Nothing waits before ``wait()``. After an error, all later statements fail with the same error until ``forgive()``.
/// The corresponding C functions are `PQsendQueryPrepared`, `PQpipelineSync` and `PQgetResult`.
final class PostgreSQLPipeline {
    /// Messages sent without a received result, in order.
    private enum Sent {
        case preparation(Prepared)
        case statement(Prepared, isWanted: Bool)
        /// The transaction up to here is rolled back: its errors are ignored.
        case undone
        case sync
    }

    /// A statement prepared under a name, or sent in full each time.
    private final class Prepared {
        let name: String
        let types: [UInt32]
        let form: [UInt32]
        let isDescending: Bool
        var shape: PostgreSQLAnswer.Shape?

        init(name: String, types: [UInt32], form: [UInt32], isDescending: Bool) {
            self.name = name
            self.types = types
            self.form = form
            self.isDescending = isDescending
        }
    }

    let pq: libpq
    /// The address of the functions, shared with all results.
    private let functions: UnsafePointer<libpq>
    private let server: PostgreSQLServer
    private var handle: OpaquePointer?
    private var statements: [UnsafePointer<UInt8>: [Prepared]] = [:]
    private var lastName = 0
    private var sent: [Sent] = []
    private var values = PostgreSQLValues()
    /// The error because of which nothing more is sent.
    private(set) var failure: SQLError?
    /// The number of round trips.
    private(set) var roundTrips = 0
    /// The deadline of waits, by the monotonic clock in milliseconds.
    var deadline = Int64.max

    init(_ server: PostgreSQLServer) throws(SQLError) {
        functions = try LibPQ.functions()
        pq = functions.pointee
        self.server = server
    }

    deinit { pq.PQfinish(handle) }

    // MARK: The connection

    /// Connects if there is no connection, or if the server has closed it: the outcome of a commit sent on a closed
    /// connection would stay unknown.
    func connect() throws(SQLError) {
        if hasEnded { disconnect() }
        guard handle == nil else { return }
        let handle = try server.connect()
        guard pq.PQsetnonblocking(handle, 1) == 0, pq.PQenterPipelineMode(handle) == 1 else {
            defer { pq.PQfinish(handle) }
            throw PostgreSQLServer.lost(handle, pq)
        }
        self.handle = handle
    }

    var isConnected: Bool { handle != nil }

    /// Closes the connection. The server undoes uncommitted changes.
    func disconnect() {
        pq.PQfinish(handle)
        handle = nil
        statements = [:]
        sent = []
    }

    /// Whether the server has closed the connection since the last use.
    private var hasEnded: Bool {
        guard let handle else { return false }
        var descriptor = pollfd(fd: pq.PQsocket(handle), events: Int16(POLLIN), revents: 0)
        // Final messages may precede the end of the stream.
        while poll(&descriptor, 1, 0) > 0 {
            if pq.PQconsumeInput(handle) != 1 { return true }
        }
        return false
    }

    /// Closes an unusable connection and records the error.
    private func breakOff(_ error: SQLError) -> SQLError {
        disconnect()
        failure = error
        return error
    }

    /// Allows statements to be sent again after an error.
    func forgive() { failure = nil }

    // MARK: Sending

    /// Sends a statement with values.
    ///
    /// - Parameters:
    ///   - descending: Whether to send the statement's twin in the opposite order.
    ///   - isWanted: Whether ``wait()`` returns its result.
    func send(
        _ sql: StaticString, _ parameters: [(any SQLBindable)?], descending: Bool = false, ending: StaticString = "",
        isWanted: Bool = false
    ) throws(SQLError) {
        values.set(parameters)
        try sendValues(sql, descending: descending, isWanted: isWanted) { () throws(Untranslatable) in
            try PostgreSQLTranslation.statement(sql.text(descending: descending)) + ending.description
        }
    }

    /// Sends a statement once for several lists of values, with an array for each parameter.
    func send(
        _ sql: StaticString, lists: ArraySlice<[(any SQLBindable)?]>, isWanted: Bool = false
    ) throws(SQLError) {
        values.set(columnsOf: lists)
        try sendValues(sql, descending: false, isWanted: isWanted) { () throws(Untranslatable) in
            try PostgreSQLTranslation.statement(sql.description, forLists: values.form)
        }
    }

    /// Marks everything before as undone by the next statement, whatever its result.
    func markUndone() throws(SQLError) {
        guard !sent.isEmpty else { return }
        // After an error the server skips statements up to the next sync, which therefore precedes the ROLLBACK.
        try sync()
        sent.append(.undone)
    }

    /// Sends a statement with the current values.
    ///
    /// - Parameter text: The statement in PostgreSQL's dialect.
    private func sendValues(
        _ sql: StaticString, descending: Bool, isWanted: Bool, text: () throws(Untranslatable) -> String
    ) throws(SQLError) {
        if let failure { throw failure }
        guard let handle else { throw breakOff(SQLError(.unreachable, "there is no connection")) }
        let statement = try prepared(sql, descending: descending, handle, text)
        let isSent = values.withPointers { pointers, lengths, formats in
            server.keepsStatements
                ? pq.PQsendQueryPrepared(
                    handle, statement.name, Int32(values.count), pointers, lengths, formats, 1)
                : statement.types.withUnsafeBufferPointer { types in
                    pq.PQsendQueryParams(
                        handle, statement.name, Int32(values.count), types.baseAddress, pointers, lengths, formats, 1)
                }
        }
        guard isSent == 1 else { throw breakOff(PostgreSQLServer.lost(handle, pq)) }
        sent.append(.statement(statement, isWanted: isWanted))
    }

    /// The statement for parameters of these types, prepared first if the server does not know it.
    private func prepared(
        _ sql: StaticString, descending: Bool, _ handle: OpaquePointer, _ text: () throws(Untranslatable) -> String
    ) throws(SQLError) -> Prepared {
        let known = statements[sql.utf8Start]?.first { $0.form == values.form && $0.isDescending == descending }
        if let known { return known }
        let text = translated(text)
        guard server.keepsStatements else {
            let statement = Prepared(
                name: text, types: values.types, form: values.form, isDescending: descending)
            statements[sql.utf8Start, default: []].append(statement)
            return statement
        }
        lastName += 1
        let statement = Prepared(
            name: "s\(lastName)", types: values.types, form: values.form, isDescending: descending)
        let isSent = values.types.withUnsafeBufferPointer {
            pq.PQsendPrepare(handle, statement.name, text, Int32($0.count), $0.baseAddress)
        }
        guard isSent == 1 else { throw breakOff(PostgreSQLServer.lost(handle, pq)) }
        statements[sql.utf8Start, default: []].append(statement)
        sent.append(.preparation(statement))
        return statement
    }

    private func translated(_ text: () throws(Untranslatable) -> String) -> String {
        do throws(Untranslatable) {
            return try text()
        } catch {
            preconditionFailure("\(error)")
        }
    }

    // MARK: Waiting

    /// Sends a sync point, so that the server responds to all statements sent.
    func sync() throws(SQLError) {
        guard let handle else { return }
        guard pq.PQpipelineSync(handle) == 1, pq.PQflush(handle) >= 0 else {
            throw breakOff(PostgreSQLServer.lost(handle, pq))
        }
        sent.append(.sync)
    }

    /// Waits for the results of all statements sent, and returns the wanted ones in order.
    ///
    /// - Throws: The first error of any statement.
    @discardableResult
    func wait() throws(SQLError) -> [PostgreSQLAnswer] {
        try sync()
        roundTrips += 1
        var wanted: [PostgreSQLAnswer] = []
        for item in sent.takeAll() {
            switch item {
            case .sync: pq.PQclear(try next())
            case .undone:
                failure = nil
                wanted = []
            case .preparation(let statement):
                let (result, error) = try result()
                pq.PQclear(result)
                if error != nil { forget(statement) }
                failure = failure ?? error
            case .statement(let statement, let isWanted):
                let (result, error) = try result()
                failure = failure ?? error
                if isWanted, let result { wanted.append(answer(statement, result)) } else { pq.PQclear(result) }
            }
        }
        // After a shutdown or a switch to read-only, the next use connects again, possibly to another server.
        if let failure { throw failure.code == .unreachable ? breakOff(failure) : failure }
        return wanted
    }

    private func answer(_ statement: Prepared, _ result: OpaquePointer) -> PostgreSQLAnswer {
        let shape = statement.shape ?? PostgreSQLAnswer.Shape(result, pq)
        statement.shape = shape
        return PostgreSQLAnswer(result, shape, functions)
    }

    /// The result of one statement, up to the end of its results.
    private func result() throws(SQLError) -> (OpaquePointer?, error: SQLError?) {
        guard let first = try next() else { throw breakOff(SQLError(.unreachable, "an answer is missing")) }
        do throws(SQLError) {
            while let more = try next() { pq.PQclear(more) }
            guard let error = PostgreSQLServer.error(in: first, pq) else { return (first, nil) }
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
        guard unsent >= 0 else { throw breakOff(PostgreSQLServer.lost(handle, pq)) }
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
        guard pq.PQconsumeInput(handle) == 1 else { throw breakOff(PostgreSQLServer.lost(handle, pq)) }
    }

    /// The default maximum wait for a response, in milliseconds.
    private static let patience: Int32 = 30_000

    /// Cancels the statement at the server on a separate thread: the request opens a connection, which can block while
    /// the network is down.
    private func cancel(_ handle: OpaquePointer) {
        guard let request = pq.PQgetCancel(handle) else { return }
        let cancellation = Cancellation(request: request)
        do throws(SystemError) {
            try SystemThread.start("store-cancel") { [pq] in
                var reason = [CChar](repeating: 0, count: 256)
                // The outcome does not matter, because the connection is closed in any case.
                _ = pq.PQcancel(cancellation.request, &reason, Int32(reason.count))
                pq.PQfreeCancel(cancellation.request)
            }
        } catch {
            pq.PQfreeCancel(request)
        }
    }

    /// Unchecked: only the cancelling thread uses it.
    private struct Cancellation: @unchecked Sendable {
        let request: OpaquePointer
    }

    private func forget(_ statement: Prepared) {
        for (key, variants) in statements where variants.contains(where: { $0 === statement }) {
            statements[key] = variants.filter { $0 !== statement }
        }
    }
}
