import CSQLite

/// A prepared statement, kept by its connection for the next time.
///
/// The corresponding C functions are `sqlite3_prepare_v3` and `sqlite3_finalize`.
final class Statement {
    let handle: OpaquePointer
    private let parameterCount: Int
    private let isReadOnly: Bool
    /// Where the columns are that were asked for by name, in the order of the first row's questions, which is mostly that
    /// of all rows. A name is a literal, and known by its address.
    private var columns: [(name: UnsafePointer<UInt8>, index: Int32)] = []
    private var nextColumn = 0
    /// Between its first step and its reset: whoever wants the same text meanwhile gets a statement of their own.
    private(set) var isRunning = false

    init(_ sql: StaticString, on connection: Connection) throws(SQLiteError) {
        var handle: OpaquePointer?
        var rest: UnsafePointer<CChar>?
        let code = sql.withUTF8Buffer { text in
            text.withMemoryRebound(to: CChar.self) { text in
                // The literal ends with a zero, which SQLite likes to have counted.
                sqlite3_prepare_v3(
                    connection.handle, text.baseAddress, Int32(text.count) + 1, UInt32(SQLITE_PREPARE_PERSISTENT),
                    &handle, &rest)
            }
        }
        guard code == SQLITE_OK else { throw connection.failure(code) }
        guard let handle else { preconditionFailure("an empty statement: \(sql)") }
        precondition(rest.map { String(cString: $0).allSatisfy(\.isWhitespace) } ?? true, "two statements: \(sql)")
        self.handle = handle
        parameterCount = Int(sqlite3_bind_parameter_count(handle))
        isReadOnly = sqlite3_stmt_readonly(handle) != 0
    }

    deinit { sqlite3_finalize(handle) }

    /// Runs the statement and shows each row to `body` until it says stop (`false`).
    ///
    /// A statement that writes always runs to its end, shown or not: its last step may still find a broken rule.
    func run(
        _ values: [(any SQLiteBindable)?], on connection: Connection, _ body: (Row) throws(SQLiteError) -> Bool
    ) throws(SQLiteError) {
        isRunning = true
        defer {
            connection.instructions += Int(sqlite3_stmt_status(handle, SQLITE_STMTSTATUS_VM_STEP, 1))
            reset()
        }
        try bind(values, on: connection)
        var isWanted = true
        while true {
            switch sqlite3_step(handle) {
            case SQLITE_ROW:
                if isWanted { isWanted = try body(Row(statement: self)) }
                if !isWanted && isReadOnly { return }
            case SQLITE_DONE: return
            case let code: throw connection.failure(code)
            }
        }
    }

    func column(named name: StaticString) -> Int32 {
        if nextColumn >= columns.count || columns[nextColumn].name != name.utf8Start {
            nextColumn = columns.firstIndex { $0.name == name.utf8Start } ?? addColumn(named: name)
        }
        defer { nextColumn += 1 }
        return columns[nextColumn].index
    }

    private func addColumn(named name: StaticString) -> Int {
        let found = (0..<sqlite3_column_count(handle)).filter { index in
            sqlite3_column_name(handle, index).map { String(cString: $0) } == name.description
        }
        precondition(found.count == 1, "\(found.count) columns \(name): \(sql)")
        columns.append((name.utf8Start, found[0]))
        return columns.count - 1
    }

    private func bind(_ values: [(any SQLiteBindable)?], on connection: Connection) throws(SQLiteError) {
        precondition(values.count == parameterCount, "\(values.count) values for \(parameterCount) parameters: \(sql)")
        var index: Int32 = 1
        for value in values {
            let code = bind(value?.sqliteValue ?? .null, at: index)
            // Too long a text or blob is the only thing a caller's data can cause here.
            guard code == SQLITE_OK else { throw connection.failure(code) }
            index += 1
        }
    }

    private func bind(_ value: SQLiteValue, at index: Int32) -> Int32 {
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

    /// Ends the run and lets go of the values. The code repeats the last step's, which was judged already.
    private func reset() {
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
        isRunning = false
    }

    private var sql: String { sqlite3_sql(handle).map { String(cString: $0) } ?? "" }
}

@available(*, unavailable)
extension Statement: Sendable {}
