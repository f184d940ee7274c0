/// The value of a column or parameter.
package enum SQLValue: Sendable, Hashable {
    case null
    case integer(Int64)
    case real(Double)
    case text(String)
    case blob([UInt8])
}

/// A value that can be bound to a parameter of a statement.
///
/// An enum with raw values conforms with an empty extension. An identifier or a time returns its number:
///
///     extension TaskState: SQLBindable {}
///     extension Timestamp: SQLBindable { var sqlValue: SQLValue { .integer(milliseconds) } }
package protocol SQLBindable {
    var sqlValue: SQLValue { get }
}

extension SQLBindable where Self: RawRepresentable, RawValue: SQLBindable {
    package var sqlValue: SQLValue { rawValue.sqlValue }
}

extension SQLValue: SQLBindable {
    package var sqlValue: SQLValue { self }
}

extension Int64: SQLBindable {
    package var sqlValue: SQLValue { .integer(self) }
}

extension Int: SQLBindable {
    package var sqlValue: SQLValue { .integer(Int64(self)) }
}

extension Bool: SQLBindable {
    package var sqlValue: SQLValue { .integer(self ? 1 : 0) }
}

extension Double: SQLBindable {
    package var sqlValue: SQLValue { .real(self) }
}

extension String: SQLBindable {
    package var sqlValue: SQLValue { .text(self) }
}

extension [UInt8]: SQLBindable {
    package var sqlValue: SQLValue { .blob(self) }
}

extension Optional: SQLBindable where Wrapped: SQLBindable {
    package var sqlValue: SQLValue { self?.sqlValue ?? .null }
}
