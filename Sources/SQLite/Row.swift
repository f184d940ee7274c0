import CSQLite

/// One row of an answer, its columns by position from 0. Valid only during the callback it is given to.
///
/// A column of another type is converted as SQLite does it, NULL to 0, "" or no bytes; `STRICT` tables leave little
/// to convert. The corresponding C functions are `sqlite3_column_int64` and its siblings.
package struct Row {
    let statement: OpaquePointer

    package func integer(_ index: Int) -> Int64 { sqlite3_column_int64(statement, column(index)) }

    package func integerOrNil(_ index: Int) -> Int64? { isNull(index) ? nil : integer(index) }

    package func int(_ index: Int) -> Int { Int(integer(index)) }

    package func intOrNil(_ index: Int) -> Int? { isNull(index) ? nil : int(index) }

    package func bool(_ index: Int) -> Bool { integer(index) != 0 }

    package func boolOrNil(_ index: Int) -> Bool? { isNull(index) ? nil : bool(index) }

    package func real(_ index: Int) -> Double { sqlite3_column_double(statement, column(index)) }

    package func realOrNil(_ index: Int) -> Double? { isNull(index) ? nil : real(index) }

    /// The text of a column. Bytes that are not UTF-8 become U+FFFD.
    package func text(_ index: Int) -> String {
        let column = column(index)
        guard let bytes = sqlite3_column_text(statement, column) else { return "" }
        let count = Int(sqlite3_column_bytes(statement, column))
        return String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
    }

    package func textOrNil(_ index: Int) -> String? { isNull(index) ? nil : text(index) }

    package func blob(_ index: Int) -> [UInt8] { withBlob(index) { [UInt8]($0) } }

    package func blobOrNil(_ index: Int) -> [UInt8]? { isNull(index) ? nil : blob(index) }

    /// Lends the bytes of a column without a copy, until `body` returns.
    package func withBlob<Result>(_ index: Int, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        let column = column(index)
        let bytes = sqlite3_column_blob(statement, column)
        let count = Int(sqlite3_column_bytes(statement, column))
        return body(UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : count))
    }

    package func isNull(_ index: Int) -> Bool { sqlite3_column_type(statement, column(index)) == SQLITE_NULL }

    private func column(_ index: Int) -> Int32 {
        precondition(index >= 0 && index < sqlite3_data_count(statement), "no column \(index)")
        return Int32(truncatingIfNeeded: index)
    }
}

@available(*, unavailable)
extension Row: Sendable {}
