/// A JSON value (RFC 8259). Members keep their order. Whole numbers are distinguished from other numbers.
public enum JSON: Sendable, Hashable {
    case null
    case bool(Bool)
    /// A number without fraction and exponent, within 64 bits.
    case integer(Int64)
    /// Any other number: `1.0`, `1e2`, `-0`, or too large for ``integer(_:)``.
    case number(Double)
    case string(String)
    case array([JSON])
    case object([Member])

    /// One member of an object.
    public struct Member: Sendable, Hashable {
        /// The name, unique in its object.
        public var name: String
        /// The value of the member.
        public var value: JSON

        public init(_ name: String, _ value: JSON) {
            self.name = name
            self.value = value
        }

        /// Whether this is the name. Most names differ in length, which is compared faster.
        func isNamed(_ other: String) -> Bool { name.utf8.count == other.utf8.count && name == other }
    }

    /// The value of an object's member; `nil` if there is none or this is no object.
    public subscript(name: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    /// An element of an array; `nil` if there is none or this is no array.
    public subscript(index: Int) -> JSON? {
        guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
        return elements[index]
    }

    /// The text of a string, else `nil`.
    public var stringValue: String? { if case .string(let text) = self { text } else { nil } }

    /// The value of a whole number, else `nil`.
    public var integerValue: Int64? { if case .integer(let value) = self { value } else { nil } }

    /// The value of any number, else `nil`.
    public var numberValue: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: nil
        }
    }

    /// The value of `true` and `false`, else `nil`.
    public var boolValue: Bool? { if case .bool(let value) = self { value } else { nil } }

    /// The elements of an array, else `nil`.
    public var elements: [JSON]? { if case .array(let elements) = self { elements } else { nil } }

    /// The members of an object, else `nil`.
    public var members: [Member]? { if case .object(let members) = self { members } else { nil } }

    /// Whether this is `null`.
    public var isNull: Bool { self == .null }

    /// The kind of the value, for messages: `a string`, `null`.
    var kind: String {
        switch self {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .integer: "a number"
        case .number: "a number with a fraction or an exponent"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}

extension JSON: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(nilLiteral: ()) { self = .null }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(floatLiteral value: Double) { self = .number(value) }
    public init(stringLiteral value: String) { self = .string(value) }
    public init(arrayLiteral elements: JSON...) { self = .array(elements) }
    /// An object whose members keep the order of the literal.
    public init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(elements.map { Member($0.0, $0.1) })
    }
}
