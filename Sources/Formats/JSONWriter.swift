/// A type whose values are written as one JSON value.
public protocol JSONWritable {
    /// Writes the value at the writer's position.
    func write(to writer: inout JSONWriter)
    /// The value as compact JSON text in UTF-8.
    var jsonBytes: [UInt8] { get }
}

extension JSONWritable {
    public var jsonBytes: [UInt8] { jsonBytes(expecting: 2048) }

    /// The same text, with a buffer for the expected number of bytes.
    public func jsonBytes(expecting count: Int) -> [UInt8] {
        var writer = JSONWriter(capacity: count)
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
    /// The purpose of a text.
    public enum Purpose: Sendable {
        /// For clients: a missing value is `null`.
        case travel
        /// For the database: a missing value is left out.
        case rest
    }

    public let purpose: Purpose
    /// The bytes that were written.
    public private(set) var bytes: [UInt8] = []
    private var needsComma = false

    /// - Parameter capacity: The expected number of bytes.
    public init(_ purpose: Purpose = .travel, capacity: Int = 256) {
        self.purpose = purpose
        bytes.reserveCapacity(capacity)
    }

    // MARK: Values

    /// Writes any value, as an element of an array or at the top.
    @inlinable
    public mutating func value(_ value: some JSONWritable) { value.write(to: &self) }

    /// Writes an object as the next value; `body` writes its members.
    @inlinable
    public mutating func object(_ body: (inout JSONWriter) -> Void) {
        open(UInt8(ascii: "{"))
        body(&self)
        close(UInt8(ascii: "}"))
    }

    /// Writes an array as the next value; `body` writes its elements.
    @inlinable
    public mutating func array(_ body: (inout JSONWriter) -> Void) {
        open(UInt8(ascii: "["))
        body(&self)
        close(UInt8(ascii: "]"))
    }

    /// Writes JSON text as the next value.
    public mutating func raw(_ json: [UInt8]) {
        separate()
        bytes += json
        needsComma = true
    }

    public mutating func string(_ text: String) {
        separate()
        Self.append(quoted: text, to: &bytes)
        needsComma = true
    }

    public mutating func integer(_ number: Int64) {
        separate()
        // 19 digits and a sign, filled from the end.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { text in
            var first = text.endIndex
            var rest = number.magnitude
            repeat {
                first -= 1
                text[first] = 0x30 + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            } while rest > 0
            if number < 0 {
                first -= 1
                text[first] = UInt8(ascii: "-")
            }
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: text[first...]))
        }
        needsComma = true
    }

    public mutating func literal(_ text: String) {
        separate()
        bytes += text.utf8
        needsComma = true
    }

    // MARK: Members

    /// Writes a member of the object being written.
    @inlinable
    public mutating func member(_ name: String, _ value: some JSONWritable) {
        self.name(name)
        value.write(to: &self)
    }

    /// Writes a member of the object being written, with a substitute for a missing value.
    @inlinable
    public mutating func member<Value: JSONWritable>(_ name: String, _ value: Value?) {
        if value == nil, purpose == .rest { return }
        self.name(name)
        value.write(to: &self)
    }

    /// Writes a member unless the value is `nil`.
    @inlinable
    public mutating func memberIfPresent<Value: JSONWritable>(_ name: String, _ value: Value?) {
        if let value { member(name, value) }
    }

    /// Writes a member that is an object.
    @inlinable
    public mutating func object(_ name: String, _ body: (inout JSONWriter) -> Void) {
        self.name(name)
        object(body)
    }

    /// Writes a member that is an array.
    @inlinable
    public mutating func array(_ name: String, _ body: (inout JSONWriter) -> Void) {
        self.name(name)
        array(body)
    }

    /// Writes a member whose value is JSON text.
    public mutating func member(_ name: String, raw json: [UInt8]) {
        self.name(name)
        raw(json)
    }

    // MARK: Bytes

    @usableFromInline
    mutating func name(_ name: String) {
        string(name)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    @usableFromInline
    mutating func open(_ bracket: UInt8) {
        separate()
        bytes.append(bracket)
        needsComma = false
    }

    @usableFromInline
    mutating func close(_ bracket: UInt8) {
        bytes.append(bracket)
        needsComma = true
    }

    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
    }

    /// Escapes the characters that RFC 8259 section 7 requires and no others. Runs without escapes are copied.
    package static func append(quoted text: String, to bytes: inout [UInt8]) {
        var text = text
        text.withUTF8 { text in
            if text.count <= 62, append(plain: text, to: &bytes) { return }
            bytes.append(UInt8(ascii: "\""))
            var start = 0
            for (place, byte) in text.enumerated() where byte < 0x20 || byte == 0x22 || byte == 0x5C {
                bytes.append(contentsOf: UnsafeBufferPointer(rebasing: text[start..<place]))
                append(escaped: byte, to: &bytes)
                start = place + 1
            }
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: text[start...]))
            bytes.append(UInt8(ascii: "\""))
        }
    }

    /// Appends a short text in one step, if no character needs an escape.
    private static func append(plain text: UnsafeBufferPointer<UInt8>, to bytes: inout [UInt8]) -> Bool {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 64) { quoted in
            quoted[0] = UInt8(ascii: "\"")
            for place in 0..<text.count {
                let byte = text[place]
                if byte < 0x20 || byte == 0x22 || byte == 0x5C { return false }
                quoted[place + 1] = byte
            }
            quoted[text.count + 1] = UInt8(ascii: "\"")
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: quoted[..<(text.count + 2)]))
            return true
        }
    }

    private static func append(escaped byte: UInt8, to bytes: inout [UInt8]) {
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
    }
}

extension JSON: JSONWritable {
    /// NaN and infinities become `null`.
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
    @inlinable
    public func write(to writer: inout JSONWriter) { writer.string(self) }
}

extension Bool: JSONWritable {
    @inlinable
    public func write(to writer: inout JSONWriter) { writer.literal(self ? "true" : "false") }
}

extension Int: JSONWritable {
    @inlinable
    public func write(to writer: inout JSONWriter) { writer.integer(Int64(self)) }
}

extension Int64: JSONWritable {
    @inlinable
    public func write(to writer: inout JSONWriter) { writer.integer(self) }
}

extension Double: JSONWritable {
    /// A whole number has no fraction. NaN and infinities become `null`.
    public func write(to writer: inout JSONWriter) {
        if magnitude < 9_007_199_254_740_992, Double(Int64(self)) == self {
            writer.integer(Int64(self))
        } else {
            writer.literal(isFinite ? description : "null")
        }
    }
}

extension Optional: JSONWritable where Wrapped: JSONWritable {
    @inlinable
    public func write(to writer: inout JSONWriter) {
        if let self { self.write(to: &writer) } else { writer.literal("null") }
    }
}

extension Array: JSONWritable where Element: JSONWritable {
    @inlinable
    public func write(to writer: inout JSONWriter) {
        writer.array { writer in
            for element in self { element.write(to: &writer) }
        }
    }
}
