import Core
import SQL

/// A raw value in the database that this program does not know: a newer program wrote it, or the file is damaged.
struct UnknownValue: Error, CustomStringConvertible {
    let type: String
    let word: String

    var description: String { "the database has an unknown \(type): \(word)" }
}

extension RawRepresentable<String> {
    init(stored word: String) throws(UnknownValue) {
        guard let value = Self(rawValue: word) else { throw UnknownValue(type: "\(Self.self)", word: word) }
        self = value
    }
}

/// Conversions of domain values that columns of numbers and text hold.
extension Row {
    func time(_ column: Column) -> Timestamp { Timestamp(milliseconds: integer(column)) }

    func timeOrNil(_ column: Column) -> Timestamp? { isNull(column) ? nil : time(column) }

    /// A case by its raw value.
    func value<Value: RawRepresentable<String>>(_ column: Column) throws(UnknownValue) -> Value {
        try Value(stored: text(column))
    }

    func valueOrNil<Value: RawRepresentable<String>>(_ column: Column) throws(UnknownValue) -> Value? {
        isNull(column) ? nil : try value(column)
    }
}
