/// A JSON value for tests: strict when reading, concise as a literal.
package enum JSON: Sendable, Hashable {
    case null
    case bool(Bool)
    case integer(Int)
    case double(Double)
    case string(String)
    case array([JSON])
    case object([String: JSON])

    /// The member; null if there is none.
    package subscript(name: String) -> JSON {
        get { object?[name] ?? .null }
        set {
            var members = object ?? [:]
            members[name] = newValue
            self = .object(members)
        }
    }

    /// The element; null if there is none.
    package subscript(index: Int) -> JSON {
        guard let array, array.indices.contains(index) else { return .null }
        return array[index]
    }

    /// Whether the object has the member, even if it is null.
    package func has(_ name: String) -> Bool { object?[name] != nil }

    package var isNull: Bool { self == .null }
    package var string: String? { if case .string(let value) = self { value } else { nil } }
    package var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    package var array: [JSON]? { if case .array(let value) = self { value } else { nil } }
    package var object: [String: JSON]? { if case .object(let value) = self { value } else { nil } }

    /// The value as an integer, `3.0` included.
    package var int: Int? {
        switch self {
        case .integer(let value): value
        case .double(let value): Int(exactly: value)
        default: nil
        }
    }

    package var double: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .double(let value): value
        default: nil
        }
    }
}

extension JSON: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByStringInterpolation,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    package init(nilLiteral: ()) { self = .null }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    package init(integerLiteral value: Int) { self = .integer(value) }
    package init(floatLiteral value: Double) { self = .double(value) }
    package init(stringLiteral value: String) { self = .string(value) }
    package init(arrayLiteral elements: JSON...) { self = .array(elements) }
    package init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(Dictionary(elements) { _, last in last })
    }
}

extension JSON: CustomStringConvertible {
    /// The value as JSON text, members in the order of their names.
    package var description: String {
        switch self {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .integer(let value): String(value)
        case .double(let value): "\(value)"
        case .string(let value): Self.quoted(value)
        case .array(let values): "[" + values.map(\.description).joined(separator: ",") + "]"
        case .object(let members):
            "{"
                + members.sorted { $0.key < $1.key }.map { Self.quoted($0.key) + ":" + $0.value.description }
                .joined(separator: ",") + "}"
        }
    }

    /// The JSON text as bytes.
    package var bytes: [UInt8] { Array(description.utf8) }

    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}

extension JSON {
    /// The position and reason of malformed text.
    package struct Malformed: Error, CustomStringConvertible {
        package let offset: Int
        package let reason: String
        package var description: String { "not JSON at byte \(offset): \(reason)" }
    }

    /// Reads a text that must be one JSON value (RFC 8259) without duplicate members.
    package init(parsing bytes: [UInt8]) throws {
        var parser = JSONParser(bytes: bytes)
        self = try parser.document()
    }

    package init(parsing text: String) throws { try self.init(parsing: Array(text.utf8)) }
}

private struct JSONParser {
    let bytes: [UInt8]
    var offset = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    mutating func document() throws -> JSON {
        let value = try value()
        skipSpace()
        guard offset == bytes.count else { throw malformed("text after the value") }
        return value
    }

    private func malformed(_ reason: String) -> JSON.Malformed { JSON.Malformed(offset: offset, reason: reason) }

    private var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { offset += 1 }
    }

    private mutating func take(_ character: Character) -> Bool {
        guard next == character.asciiValue else { return false }
        offset += 1
        return true
    }

    private mutating func value() throws -> JSON {
        skipSpace()
        guard let byte = next else { throw malformed("end of text") }
        switch byte {
        case UInt8(ascii: "{"): return try object()
        case UInt8(ascii: "["): return try array()
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        default: return try number()
        }
    }

    private mutating func literal(_ text: String, _ value: JSON) throws -> JSON {
        guard bytes[offset...].starts(with: text.utf8) else { throw malformed("unknown word") }
        offset += text.utf8.count
        return value
    }

    private mutating func object() throws -> JSON {
        offset += 1
        var members: [String: JSON] = [:]
        skipSpace()
        if take("}") { return .object(members) }
        while true {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw malformed("no member name") }
            let name = try string()
            skipSpace()
            guard take(":") else { throw malformed("no colon") }
            let value = try value()
            guard members.updateValue(value, forKey: name) == nil else { throw malformed("\(name) twice") }
            skipSpace()
            if take("}") { return .object(members) }
            guard take(",") else { throw malformed("no comma between members") }
        }
    }

    private mutating func array() throws -> JSON {
        offset += 1
        var values: [JSON] = []
        skipSpace()
        if take("]") { return .array(values) }
        while true {
            values.append(try value())
            skipSpace()
            if take("]") { return .array(values) }
            guard take(",") else { throw malformed("no comma between elements") }
        }
    }

    private mutating func string() throws -> String {
        offset += 1
        var text: [UInt8] = []
        while let byte = next {
            offset += 1
            switch byte {
            case UInt8(ascii: "\""):
                guard let result = String(validating: text, as: UTF8.self) else { throw malformed("not UTF-8") }
                return result
            case UInt8(ascii: "\\"): try escape(into: &text)
            case 0..<0x20: throw malformed("control character in a string")
            default: text.append(byte)
            }
        }
        throw malformed("string without end")
    }

    private mutating func escape(into text: inout [UInt8]) throws {
        guard let byte = next else { throw malformed("string without end") }
        offset += 1
        switch byte {
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "u"):
            var unit = try codeUnit()
            if (0xD800..<0xDC00).contains(unit) {
                guard take("\\"), take("u") else { throw malformed("lone surrogate") }
                let low = try codeUnit()
                guard (0xDC00..<0xE000).contains(low) else { throw malformed("lone surrogate") }
                unit = 0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00)
            }
            guard let scalar = Unicode.Scalar(unit) else { throw malformed("lone surrogate") }
            text += Array(String(Character(scalar)).utf8)
        default: throw malformed("unknown escape")
        }
    }

    private mutating func codeUnit() throws -> UInt32 {
        let digits = bytes[offset...].prefix(4)
        guard digits.count == 4, let unit = UInt32(String(decoding: digits, as: UTF8.self), radix: 16) else {
            throw malformed("four hex digits expected")
        }
        offset += 4
        return unit
    }

    private mutating func number() throws -> JSON {
        let start = offset
        while let byte = next, "+-0123456789.eE".utf8.contains(byte) { offset += 1 }
        let text = String(decoding: bytes[start..<offset], as: UTF8.self)
        if let value = Int(text), !text.hasPrefix("+") { return .integer(value) }
        guard let value = Double(text), !text.isEmpty, !text.hasPrefix("+") else { throw malformed("not a number") }
        return .double(value)
    }
}
