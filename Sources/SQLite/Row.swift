import CSQLite

/// One row of an answer. Valid only during the callback it is given to.
///
/// A column of another type is converted as SQLite does it, NULL to 0, "" or no bytes; `STRICT` tables leave little
/// to convert. The corresponding C functions are `sqlite3_column_int64` and its siblings.
package struct Row {
    let statement: Statement

    /// A column by its name, or by its position from 0 where an answer has but one.
    package enum Column: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
        case name(StaticString)
        case position(Int)

        package init(stringLiteral name: StaticString) { self = .name(name) }
        package init(integerLiteral position: Int) { self = .position(position) }
    }

    package func integer(_ column: Column) -> Int64 { sqlite3_column_int64(handle, index(column)) }

    package func integerOrNil(_ column: Column) -> Int64? { isNull(column) ? nil : integer(column) }

    package func int(_ column: Column) -> Int { Int(integer(column)) }

    package func intOrNil(_ column: Column) -> Int? { isNull(column) ? nil : int(column) }

    package func bool(_ column: Column) -> Bool { integer(column) != 0 }

    package func real(_ column: Column) -> Double { sqlite3_column_double(handle, index(column)) }

    /// The text of a column. Bytes that are not UTF-8 become U+FFFD.
    package func text(_ column: Column) -> String {
        let index = index(column)
        guard let bytes = sqlite3_column_text(handle, index) else { return "" }
        let count = Int(sqlite3_column_bytes(handle, index))
        return String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
    }

    package func textOrNil(_ column: Column) -> String? { isNull(column) ? nil : text(column) }

    package func blob(_ column: Column) -> [UInt8] { withBlob(column) { [UInt8]($0) } }

    package func blobOrNil(_ column: Column) -> [UInt8]? { isNull(column) ? nil : blob(column) }

    /// Lends the bytes of a column without a copy, until `body` returns.
    package func withBlob<Result>(_ column: Column, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        let index = index(column)
        let bytes = sqlite3_column_blob(handle, index)
        let count = Int(sqlite3_column_bytes(handle, index))
        return body(UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : count))
    }

    package func isNull(_ column: Column) -> Bool { sqlite3_column_type(handle, index(column)) == SQLITE_NULL }

    private var handle: OpaquePointer { statement.handle }

    private func index(_ column: Column) -> Int32 {
        switch column {
        case .name(let name): return statement.column(named: name)
        case .position(let position):
            precondition(position >= 0 && position < sqlite3_data_count(handle), "no column \(position)")
            return Int32(truncatingIfNeeded: position)
        }
    }
}

@available(*, unavailable)
extension Row: Sendable {}
