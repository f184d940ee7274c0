extension JSON {
    /// Reads one JSON text, strictly by RFC 8259 and in UTF-8.
    ///
    /// Byte order marks, comments, trailing commas, lone surrogates and overlong encodings are malformed. Duplicate
    /// names, `\u0000` in strings and numbers beyond the range of 64-bit floating point are well-formed but refused,
    /// and all reported at once.
    ///
    /// - Parameter maximumDepth: The maximum nesting of arrays and objects.
    public static func parse(_ bytes: [UInt8], maximumDepth: Int = 32) throws(JSONError) -> JSON {
        try parse(bytes, maximumDepth, allowsNull: false)
    }

    /// - Parameter allowsNull: Whether strings may contain `\u0000`, as in texts that the program wrote itself.
    static func parse(_ bytes: [UInt8], _ maximumDepth: Int = 32, allowsNull: Bool) throws(JSONError) -> JSON {
        try bytes.withUnsafeBufferPointer { bytes throws(JSONError) in
            var parser = JSONParser(bytes: bytes, maximumDepth: maximumDepth, allowsNull: allowsNull)
            return try parser.parseDocument()
        }
    }
}

/// A recursive-descent parser over bytes. The limited depth also limits the stack.
struct JSONParser {
    private let bytes: UnsafeBufferPointer<UInt8>
    private let maximumDepth: Int
    private let allowsNull: Bool
    private var offset = 0
    private var depth = 0
    /// Faults with pointers relative to the innermost value that is being read. Each level prepends its own token.
    private var faults: [Fault] = []

    init(bytes: UnsafeBufferPointer<UInt8>, maximumDepth: Int, allowsNull: Bool) {
        self.bytes = bytes
        self.maximumDepth = maximumDepth
        self.allowsNull = allowsNull
    }

    mutating func parseDocument() throws(JSONError) -> JSON {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { throw malformed("a byte order mark is not allowed") }
        skipSpace()
        guard offset < bytes.count else { throw malformed("there is no JSON value") }
        let value = try parseValue()
        skipSpace()
        guard offset == bytes.count else { throw malformed("text follows the JSON value") }
        guard faults.isEmpty else { throw .invalid(faults) }
        return value
    }

    mutating func parseValue() throws(JSONError) -> JSON {
        guard offset < bytes.count else { throw malformed("the text ends before a value") }
        switch bytes[offset] {
        case UInt8(ascii: "{"): return try parseObject()
        case UInt8(ascii: "["): return try parseArray()
        case UInt8(ascii: "\""): return .string(try parseString())
        case UInt8(ascii: "-"), 0x30...0x39: return try parseNumber()
        case UInt8(ascii: "t"): return try parseWord("true", .bool(true))
        case UInt8(ascii: "f"): return try parseWord("false", .bool(false))
        case UInt8(ascii: "n"): return try parseWord("null", .null)
        default: throw malformed("a value is expected")
        }
    }

    mutating func parseWord(_ word: StaticString, _ value: JSON) throws(JSONError) -> JSON {
        let matches = word.withUTF8Buffer { word in
            bytes.count - offset >= word.count && zip(bytes[offset...], word).allSatisfy { $0 == $1 }
        }
        guard matches else { throw malformed("a value is expected") }
        offset += word.utf8CodeUnitCount
        return value
    }

    private mutating func parseArray() throws(JSONError) -> JSON {
        try enter()
        defer { depth -= 1 }
        var elements: [JSON] = []
        if take(UInt8(ascii: "]")) { return .array(elements) }
        while true {
            let known = faults.count
            elements.append(try parseValue())
            locate(since: known, String(elements.count - 1))
            skipSpace()
            if take(UInt8(ascii: ",")) {
                skipSpace()
                continue
            }
            guard take(UInt8(ascii: "]")) else { throw malformed("a comma or the end of the array is expected") }
            return .array(elements)
        }
    }

    private mutating func parseObject() throws(JSONError) -> JSON {
        try enter()
        defer { depth -= 1 }
        var members: [JSON.Member] = []
        var names = MemberNames()
        if take(UInt8(ascii: "}")) { return .object(members) }
        members.reserveCapacity(8)
        while true {
            guard offset < bytes.count, bytes[offset] == UInt8(ascii: "\"") else {
                throw malformed("the name of a member is expected")
            }
            var known = faults.count
            let name = try parseString()
            locate(since: known, name)
            skipSpace()
            guard take(UInt8(ascii: ":")) else { throw malformed("a colon is expected") }
            skipSpace()
            known = faults.count
            let value = try parseValue()
            locate(since: known, name)
            if names.insert(name, after: members) {
                members.append(JSON.Member(name, value))
            } else {
                report(Fault(pointer: "", code: .duplicateMember, detail: "This member occurs twice."))
                locate(since: known, name)
            }
            skipSpace()
            if take(UInt8(ascii: ",")) {
                skipSpace()
                continue
            }
            guard take(UInt8(ascii: "}")) else { throw malformed("a comma or the end of the object is expected") }
            return .object(members)
        }
    }

    private mutating func enter() throws(JSONError) {
        guard depth < maximumDepth else { throw malformed("arrays and objects are nested deeper than \(maximumDepth)") }
        depth += 1
        offset += 1
        skipSpace()
    }

    private mutating func parseString() throws(JSONError) -> String {
        offset += 1
        let start = offset
        var union: UInt8 = 0
        while offset < bytes.count {
            switch bytes[offset] {
            case UInt8(ascii: "\""):
                let text = UnsafeBufferPointer(rebasing: bytes[start..<offset])
                offset += 1
                // Nearly all texts are ASCII, which is valid UTF-8.
                if union < 0x80 { return String(decoding: text, as: UTF8.self) }
                guard let text = String(validating: text, as: UTF8.self) else {
                    throw malformed("a string is not UTF-8", at: start)
                }
                return text
            case UInt8(ascii: "\\"): return try parseEscapedString(from: start)
            case 0..<0x20: throw malformed("a control character in a string is not escaped")
            case let byte:
                union |= byte
                offset += 1
            }
        }
        throw malformed("a string does not end")
    }

    /// The slower path, from the first backslash on.
    private mutating func parseEscapedString(from start: Int) throws(JSONError) -> String {
        var text = [UInt8](bytes[start..<offset])
        var hasNull = false
        while offset < bytes.count {
            let byte = bytes[offset]
            switch byte {
            case UInt8(ascii: "\""):
                guard let text = String(validating: text, as: UTF8.self) else {
                    throw malformed("a string is not UTF-8", at: start)
                }
                offset += 1
                if hasNull, !allowsNull {
                    report(Fault(pointer: "", code: .invalidValue, detail: "Strings must not contain \\u0000."))
                }
                return text
            case UInt8(ascii: "\\"):
                let scalar = try parseEscape()
                hasNull = hasNull || scalar == "\0"
                text.append(contentsOf: UTF8.encode(scalar) ?? .init())
            case 0..<0x20: throw malformed("a control character in a string is not escaped")
            default:
                text.append(byte)
                offset += 1
            }
        }
        throw malformed("a string does not end")
    }

    private mutating func parseEscape() throws(JSONError) -> Unicode.Scalar {
        guard offset + 1 < bytes.count else { throw malformed("a string does not end") }
        let kind = bytes[offset + 1]
        offset += 2
        switch kind {
        case UInt8(ascii: "\""): return "\""
        case UInt8(ascii: "\\"): return "\\"
        case UInt8(ascii: "/"): return "/"
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return try parseUnicodeEscape()
        default: throw malformed("no such escape", at: offset - 2)
        }
    }

    private mutating func parseUnicodeEscape() throws(JSONError) -> Unicode.Scalar {
        let start = offset - 2
        let unit = try parseFourDigits()
        if let scalar = Unicode.Scalar(unit) { return scalar }
        guard unit < 0xDC00, take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else {
            throw malformed("half of a surrogate pair", at: start)
        }
        let second = try parseFourDigits()
        guard (0xDC00...0xDFFF).contains(second),
            let scalar = Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (second - 0xDC00))
        else { throw malformed("half of a surrogate pair", at: start) }
        return scalar
    }

    private mutating func parseFourDigits() throws(JSONError) -> UInt32 {
        guard bytes.count - offset >= 4 else { throw malformed("a string does not end") }
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = bytes[offset].hexadecimalValue else { throw malformed("\\u needs four hex digits") }
            value = value << 4 | UInt32(digit)
            offset += 1
        }
        return value
    }

    mutating func parseNumber() throws(JSONError) -> JSON {
        let start = offset
        let isNegative = take(UInt8(ascii: "-"))
        let firstDigit = offset
        try skipDigits()
        guard bytes[firstDigit] != UInt8(ascii: "0") || offset == firstDigit + 1 else {
            throw malformed("a number has a leading zero", at: firstDigit)
        }
        var isWhole = true
        if take(UInt8(ascii: ".")) {
            isWhole = false
            try skipDigits()
        }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            isWhole = false
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            try skipDigits()
        }
        if isWhole, let value = integer(firstDigit..<offset, isNegative: isNegative), value != 0 || !isNegative {
            return .integer(value)
        }
        return .number(number(start..<offset))
    }

    private mutating func skipDigits() throws(JSONError) {
        let start = offset
        while offset < bytes.count, (0x30...0x39).contains(bytes[offset]) { offset += 1 }
        guard offset > start else { throw malformed("a number needs a digit here") }
    }

    private func integer(_ digits: Range<Int>, isNegative: Bool) -> Int64? {
        guard digits.count <= 19 else { return nil }
        var magnitude: UInt64 = 0
        for index in digits { magnitude = magnitude * 10 + UInt64(bytes[index] - 0x30) }
        if isNegative { return magnitude <= 1 << 63 ? Int64(truncatingIfNeeded: 0 &- magnitude) : nil }
        return Int64(exactly: magnitude)
    }

    private mutating func number(_ text: Range<Int>) -> Double {
        let value = text.count <= 1000 ? Double(String(decoding: bytes[text], as: UTF8.self)) : nil
        if let value, value.isFinite { return value }
        report(Fault(pointer: "", code: .invalidValue, detail: "This number is too large or too long."))
        return 0
    }

    private mutating func skipSpace() {
        while offset < bytes.count {
            switch bytes[offset] {
            case 0x20, 0x0A, 0x0D, 0x09: offset += 1
            default: return
            }
        }
    }

    mutating func take(_ byte: UInt8) -> Bool {
        guard offset < bytes.count, bytes[offset] == byte else { return false }
        offset += 1
        return true
    }

    // MARK: Known order

    var isAtEnd: Bool { offset == bytes.count && faults.isEmpty }

    /// Skips the name of a member with its colon and a preceding comma, if the next member has this name.
    mutating func take(name: String) -> Bool {
        var name = name
        return name.withUTF8 { name in
            guard offset > 0, offset < bytes.count else { return false }
            let isFirst = bytes[offset - 1] == UInt8(ascii: "{")
            guard isFirst || bytes[offset] == UInt8(ascii: ",") else { return false }
            let first = isFirst ? offset + 1 : offset + 2
            let last = first + name.count
            guard last + 1 < bytes.count, bytes[first - 1] == UInt8(ascii: "\""), bytes[last] == UInt8(ascii: "\""),
                bytes[last + 1] == UInt8(ascii: ":")
            else { return false }
            for index in 0..<name.count where bytes[first + index] != name[index] { return false }
            offset = last + 2
            return true
        }
    }

    /// Reads a string, if the next value is one.
    mutating func parseText() throws(JSONError) -> String {
        guard offset < bytes.count, bytes[offset] == UInt8(ascii: "\"") else {
            throw malformed("a string is expected")
        }
        return try parseString()
    }

    private mutating func report(_ fault: Fault) {
        if faults.count < Faults.maximumCount { faults.append(fault) }
    }

    private mutating func locate(since known: Int, _ token: String) {
        for index in faults.indices.dropFirst(known) { faults[index].prefix(token) }
    }

    private func malformed(_ detail: String, at place: Int? = nil) -> JSONError {
        .malformed(offset: place ?? offset, detail: detail)
    }
}

/// The names of one object so far, compared as bytes: linearly for the few names of most objects, with a set above
/// that.
private struct MemberNames {
    private var set: Set<[UInt8]> = []

    /// Returns whether the name is new.
    mutating func insert(_ name: String, after members: [JSON.Member]) -> Bool {
        if set.isEmpty {
            // Strings that differ by `==` also differ in bytes, so only equal ones need the second comparison.
            if members.contains(where: { $0.isNamed(name) && $0.name.utf8.elementsEqual(name.utf8) }) { return false }
            if members.count >= 32 { set = Set(members.map { Array($0.name.utf8) } + [Array(name.utf8)]) }
            return true
        }
        return set.insert(Array(name.utf8)).inserted
    }
}
