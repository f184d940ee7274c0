import CSQLite

/// A prepared statement, kept by its connection.
///
/// A column of another type is converted by SQLite's rules; `STRICT` tables leave little to convert. The corresponding
/// C functions are `sqlite3_prepare_v3`, `sqlite3_finalize`, `sqlite3_column_int64` and its siblings.
final class SQLiteStatement: Answer {
    let handle: OpaquePointer
    private let parameterCount: Int
    private let isReadOnly: Bool
    /// Whether the statement is between its first step and its reset. Meanwhile, a caller with the same text gets
    /// another statement.
    private(set) var isRunning = false

    /// - Parameter sql: Text of this program only, which may contain names of its tables and columns.
    init(_ sql: String, on connection: SQLiteConnection) throws(SQLError) {
        var handle: OpaquePointer?
        var rest: UnsafePointer<CChar>?
        var isOne = true
        let code = sql.withCString { text in
            // The length includes the terminating zero, which saves SQLite a copy.
            let code = sqlite3_prepare_v3(
                connection.handle, text, Int32(sql.utf8.count) + 1, UInt32(SQLITE_PREPARE_PERSISTENT), &handle, &rest)
            isOne = rest.map { String(cString: $0).allSatisfy(\.isWhitespace) } ?? true
            return code
        }
        guard code == SQLITE_OK else { throw connection.failure(code) }
        guard let handle else { preconditionFailure("an empty statement: \(sql)") }
        precondition(isOne, "two statements: \(sql)")
        self.handle = handle
        parameterCount = Int(sqlite3_bind_parameter_count(handle))
        isReadOnly = sqlite3_stmt_readonly(handle) != 0
        super.init(
            Columns(
                (0..<sqlite3_column_count(handle)).map { index in
                    sqlite3_column_name(handle, index).map { String(cString: $0) } ?? ""
                }))
    }

    deinit { sqlite3_finalize(handle) }

    /// Runs the statement and passes each row to `body` until `body` returns `false`.
    ///
    /// A statement that writes always runs to its end, because its last step may still find a violated constraint.
    func run(
        _ values: [(any SQLBindable)?], on connection: SQLiteConnection, _ body: (Row) throws(SQLError) -> Bool
    ) throws(SQLError) {
        isRunning = true
        defer {
            connection.work += Int(sqlite3_stmt_status(handle, SQLITE_STMTSTATUS_VM_STEP, 1))
            reset()
        }
        try bind(values, on: connection)
        var isWanted = true
        while true {
            switch sqlite3_step(handle) {
            case SQLITE_ROW:
                if isWanted { isWanted = try body(Row(answer: self)) }
                if !isWanted && isReadOnly { return }
            case SQLITE_DONE: return
            case let code: throw connection.failure(code)
            }
        }
    }

    // MARK: The current row

    override func isNull(_ index: Int32) -> Bool { sqlite3_column_type(handle, index) == SQLITE_NULL }

    override func integer(_ index: Int32) -> Int64 { sqlite3_column_int64(handle, index) }

    override func real(_ index: Int32) -> Double { sqlite3_column_double(handle, index) }

    override func text(_ index: Int32) -> String {
        guard let bytes = sqlite3_column_text(handle, index) else { return "" }
        let count = Int(sqlite3_column_bytes(handle, index))
        return String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
    }

    override func blob(_ index: Int32) -> UnsafeRawBufferPointer {
        let bytes = sqlite3_column_blob(handle, index)
        return UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : Int(sqlite3_column_bytes(handle, index)))
    }

    // MARK: Parameters

    private func bind(_ values: [(any SQLBindable)?], on connection: SQLiteConnection) throws(SQLError) {
        precondition(values.count == parameterCount, "\(values.count) values for \(parameterCount) parameters: \(sql)")
        var index: Int32 = 1
        for value in values {
            let code = bind(value?.sqlValue ?? .null, at: index)
            // Caller data can only cause one error here: a text or blob that is too long.
            guard code == SQLITE_OK else { throw connection.failure(code) }
            index += 1
        }
    }

    private func bind(_ value: SQLValue, at index: Int32) -> Int32 {
        switch value {
        case .null: sqlite3_bind_null(handle, index)
        case .integer(let number): sqlite3_bind_int64(handle, index, number)
        case .real(let number): sqlite3_bind_double(handle, index, number)
        case .text(var text):
            text.withUTF8 { sqlite3_bind_text_copy(handle, index, $0.baseAddress, UInt64($0.count)) }
        case .blob(let bytes):
            bytes.withUnsafeBytes { sqlite3_bind_blob_copy(handle, index, $0.baseAddress, UInt64($0.count)) }
        }
    }

    /// Resets the statement and releases its values. The returned code repeats the last step's, which was checked.
    private func reset() {
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
        isRunning = false
    }

    private var sql: String { sqlite3_sql(handle).map { String(cString: $0) } ?? "" }
}

@available(*, unavailable)
extension SQLiteStatement: Sendable {}
