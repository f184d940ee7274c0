/// One of the five things a column or a parameter can hold.
package enum SQLiteValue: Sendable, Hashable {
    case null
    case integer(Int64)
    case real(Double)
    case text(String)
    case blob([UInt8])
}

/// What can stand for a `?` of a statement.
///
/// An enum with raw values conforms with an empty extension; an identifier or a time says its number:
///
///     extension TaskState: SQLiteBindable {}
///     extension Timestamp: SQLiteBindable { var sqliteValue: SQLiteValue { .integer(milliseconds) } }
package protocol SQLiteBindable {
    var sqliteValue: SQLiteValue { get }
}

extension SQLiteBindable where Self: RawRepresentable, RawValue: SQLiteBindable {
    package var sqliteValue: SQLiteValue { rawValue.sqliteValue }
}

extension SQLiteValue: SQLiteBindable {
    package var sqliteValue: SQLiteValue { self }
}

extension Int64: SQLiteBindable {
    package var sqliteValue: SQLiteValue { .integer(self) }
}

extension Int: SQLiteBindable {
    package var sqliteValue: SQLiteValue { .integer(Int64(self)) }
}

extension Bool: SQLiteBindable {
    package var sqliteValue: SQLiteValue { .integer(self ? 1 : 0) }
}

extension Double: SQLiteBindable {
    package var sqliteValue: SQLiteValue { .real(self) }
}

extension String: SQLiteBindable {
    package var sqliteValue: SQLiteValue { .text(self) }
}

extension [UInt8]: SQLiteBindable {
    package var sqliteValue: SQLiteValue { .blob(self) }
}

extension Optional: SQLiteBindable where Wrapped: SQLiteBindable {
    package var sqliteValue: SQLiteValue { self?.sqliteValue ?? .null }
}
