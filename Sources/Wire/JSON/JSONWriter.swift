/// Something that is written as one JSON value.
public protocol JSONWritable {
    /// Writes the value at the place where the writer stands.
    func write(to writer: inout JSONWriter)
}

extension JSONWritable {
    /// The value as compact JSON text in UTF-8.
    public var jsonBytes: [UInt8] {
        var writer = JSONWriter()
        write(to: &writer)
        return writer.bytes
    }
}

/// Builds compact JSON text in one buffer, from front to back.
///
///     writer.object { writer in
///         writer.member("seq", 4)
///         writer.object("data") { writer in writer.member("outcome", "succeeded") }
///     }
public struct JSONWriter {
    /// What has been written so far.
    public private(set) var bytes: [UInt8] = []
    private var needsComma = false

    /// Makes a writer, with room for as many bytes as are expected.
    public init(capacity: Int = 256) { bytes.reserveCapacity(capacity) }

    /// Writes an object as the next value; `body` writes its members.
    public mutating func object(_ body: (inout JSONWriter) -> Void) {
        open(UInt8(ascii: "{"))
        body(&self)
        close(UInt8(ascii: "}"))
    }

    /// Writes an array as the next value; `body` writes its elements.
    public mutating func array(_ body: (inout JSONWriter) -> Void) {
        open(UInt8(ascii: "["))
        body(&self)
        close(UInt8(ascii: "]"))
    }

    /// Writes any value, as an element of an array or at the top.
    public mutating func value(_ value: some JSONWritable) { value.write(to: &self) }

    /// Writes a value that is JSON text already.
    public mutating func raw(_ json: [UInt8]) {
        separate()
        bytes += json
        needsComma = true
    }

    /// Writes a member of the object being written. `nil` is written as `null`.
    public mutating func member(_ name: String, _ value: some JSONWritable) {
        self.name(name)
        value.write(to: &self)
    }

    /// Writes a member that is an object.
    public mutating func object(_ name: String, _ body: (inout JSONWriter) -> Void) {
        self.name(name)
        object(body)
    }

    /// Writes a member that is an array.
    public mutating func array(_ name: String, _ body: (inout JSONWriter) -> Void) {
        self.name(name)
        array(body)
    }

    /// Writes a member whose value is JSON text already.
    public mutating func member(_ name: String, raw json: [UInt8]) {
        self.name(name)
        raw(json)
    }

    /// Writes a member unless the value is `nil`.
    public mutating func memberIfPresent(_ name: String, _ value: (some JSONWritable)?) {
        if let value { member(name, value) }
    }

    mutating func string(_ text: String) {
        separate()
        var text = text
        text.withUTF8 { quote($0) }
        needsComma = true
    }

    mutating func literal(_ text: String) {
        separate()
        bytes += text.utf8
        needsComma = true
    }

    private mutating func name(_ name: String) {
        string(name)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    private mutating func open(_ bracket: UInt8) {
        separate()
        bytes.append(bracket)
        needsComma = false
    }

    private mutating func close(_ bracket: UInt8) {
        bytes.append(bracket)
        needsComma = true
    }

    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
    }

    /// Escapes what RFC 8259 section 7 demands and nothing else. Runs without escapes are copied whole.
    private mutating func quote(_ text: UnsafeBufferPointer<UInt8>) {
        bytes.append(UInt8(ascii: "\""))
        var start = 0
        for (index, byte) in text.enumerated() where byte < 0x20 || byte == 0x22 || byte == 0x5C {
            bytes.append(contentsOf: text[start..<index])
            bytes.append(UInt8(ascii: "\\"))
            switch byte {
            case 0x22, 0x5C: bytes.append(byte)
            case 0x08: bytes.append(UInt8(ascii: "b"))
            case 0x0C: bytes.append(UInt8(ascii: "f"))
            case 0x0A: bytes.append(UInt8(ascii: "n"))
            case 0x0D: bytes.append(UInt8(ascii: "r"))
            case 0x09: bytes.append(UInt8(ascii: "t"))
            default:
                let low = byte & 0xF
                bytes += [0x75, 0x30, 0x30, 0x30 + (byte >> 4), low < 10 ? 0x30 + low : 0x61 + low - 10]
            }
            start = index + 1
        }
        bytes.append(contentsOf: text[start...])
        bytes.append(UInt8(ascii: "\""))
    }
}

extension JSON: JSONWritable {
    /// Writes the value. Numbers that are no JSON become `null`.
    public func write(to writer: inout JSONWriter) {
        switch self {
        case .null: writer.literal("null")
        case .bool(let value): value.write(to: &writer)
        case .integer(let value): value.write(to: &writer)
        case .number(let value): writer.literal(value.isFinite ? value.description : "null")
        case .string(let text): writer.string(text)
        case .array(let elements): elements.write(to: &writer)
        case .object(let members):
            writer.object { writer in
                for member in members { writer.member(member.name, member.value) }
            }
        }
    }
}

extension String: JSONWritable {
    /// Writes a string.
    public func write(to writer: inout JSONWriter) { writer.string(self) }
}

extension Bool: JSONWritable {
    /// Writes `true` or `false`.
    public func write(to writer: inout JSONWriter) { writer.literal(self ? "true" : "false") }
}

extension Int: JSONWritable {
    /// Writes a whole number.
    public func write(to writer: inout JSONWriter) { writer.literal(description) }
}

extension Int64: JSONWritable {
    /// Writes a whole number.
    public func write(to writer: inout JSONWriter) { writer.literal(description) }
}

extension Double: JSONWritable {
    /// Writes a number, a whole one without a fraction. What is no JSON number becomes `null`.
    public func write(to writer: inout JSONWriter) {
        if magnitude < 9_007_199_254_740_992, Double(Int64(self)) == self {
            writer.literal(Int64(self).description)
        } else {
            writer.literal(isFinite ? description : "null")
        }
    }
}

extension Optional: JSONWritable where Wrapped: JSONWritable {
    /// Writes the value, or `null`.
    public func write(to writer: inout JSONWriter) {
        if let self { self.write(to: &writer) } else { writer.literal("null") }
    }
}

extension Array: JSONWritable where Element: JSONWritable {
    /// Writes an array.
    public func write(to writer: inout JSONWriter) {
        writer.array { writer in
            for element in self { element.write(to: &writer) }
        }
    }
}
