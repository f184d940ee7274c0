/// Writes `Encodable` values as JSON text in one pass, without a tree between.
///
/// A task's end writes a document of a hundred members while the one writer waits; Foundation's `JSONEncoder` took most
/// of that time. What it writes, `JSONDecoder` reads.
struct DocumentEncoder {
    /// - Throws: What the value's own `encode(to:)` throws; JSON has no infinite numbers, so those are refused.
    static func encode(_ value: some Encodable) throws -> [UInt8] {
        let text = DocumentText()
        let level = DocumentLevel(text)
        try value.encode(to: level)
        level.finish()
        return text.bytes
    }
}

/// The text so far.
private final class DocumentText {
    var bytes: [UInt8] = []

    init() { bytes.reserveCapacity(1024) }

    func append(_ text: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    func append(quoted string: String) {
        bytes.append(0x22)
        var string = string
        string.withUTF8 { utf8 in
            if utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x22 && $0 != 0x5C }) {
                bytes.append(contentsOf: utf8)
            } else {
                for byte in utf8 { append(escaped: byte) }
            }
        }
        bytes.append(0x22)
    }

    private func append(escaped byte: UInt8) {
        switch byte {
        case 0x22, 0x5C: bytes += [0x5C, byte]
        case 0..<0x20:
            let digits = Array("0123456789abcdef".utf8)
            bytes += [0x5C, 0x75, 0x30, 0x30, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        default: bytes.append(byte)
        }
    }
}

/// One value being written: it owns the brackets that were opened for it, and closes them when the value is done.
private final class DocumentLevel: Encoder {
    let text: DocumentText
    /// Closing brackets of the containers that are open, the outermost first.
    private var open: [UInt8] = []
    private var isEmpty: [Bool] = []
    private var hasWritten = false

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(_ text: DocumentText) { self.text = text }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(DocumentObject<Key>(level: self, depth: begin(0x7B, 0x7D)))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer { DocumentArray(level: self, depth: begin(0x5B, 0x5D)) }

    func singleValueContainer() -> any SingleValueEncodingContainer { DocumentValue(level: self) }

    /// Opens a bracket and answers how deep the container lies.
    func begin(_ bracket: UInt8, _ closing: UInt8) -> Int {
        hasWritten = true
        text.bytes.append(bracket)
        open.append(closing)
        isEmpty.append(true)
        return open.count
    }

    /// Makes ready for the next member or element of the container at a depth: what lies deeper is done.
    func next(at depth: Int) {
        close(to: depth)
        if isEmpty[depth - 1] { isEmpty[depth - 1] = false } else { text.bytes.append(0x2C) }
    }

    func finish() {
        if !hasWritten { text.append("{}") }
        close(to: 0)
    }

    private func close(to depth: Int) {
        while open.count > depth {
            text.bytes.append(open.removeLast())
            isEmpty.removeLast()
        }
    }

    func write(_ value: some Encodable) throws {
        hasWritten = true
        let inner = DocumentLevel(text)
        try value.encode(to: inner)
        inner.finish()
    }

    func write(flag: Bool) {
        hasWritten = true
        text.append(flag ? "true" : "false")
    }

    func write(string: String) {
        hasWritten = true
        text.append(quoted: string)
    }

    func write(integer number: some BinaryInteger) {
        hasWritten = true
        text.bytes.append(contentsOf: String(number).utf8)
    }

    func write(double number: Double) throws {
        hasWritten = true
        guard number.isFinite else {
            throw EncodingError.invalidValue(number, .init(codingPath: [], debugDescription: "not a number of JSON"))
        }
        text.bytes.append(contentsOf: number.description.utf8)
    }

    func writeNull() {
        hasWritten = true
        text.append("null")
    }
}

private struct DocumentObject<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let level: DocumentLevel
    let depth: Int
    var codingPath: [any CodingKey] { [] }

    private func name(_ key: some CodingKey) {
        level.next(at: depth)
        level.text.append(quoted: key.stringValue)
        level.text.bytes.append(0x3A)
    }

    func encodeNil(forKey key: Key) {
        name(key)
        level.writeNull()
    }

    func encode(_ value: Bool, forKey key: Key) throws {
        name(key)
        level.text.append(value ? "true" : "false")
    }

    func encode(_ value: String, forKey key: Key) throws {
        name(key)
        level.text.append(quoted: value)
    }

    func encode(_ value: Double, forKey key: Key) throws {
        name(key)
        try level.write(double: value)
    }

    func encode(_ value: Int, forKey key: Key) throws {
        name(key)
        level.write(integer: value)
    }

    func encode(_ value: Int64, forKey key: Key) throws {
        name(key)
        level.write(integer: value)
    }

    func encode(_ value: some Encodable, forKey key: Key) throws {
        name(key)
        try level.write(value)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        name(key)
        return KeyedEncodingContainer(DocumentObject<Nested>(level: level, depth: level.begin(0x7B, 0x7D)))
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        name(key)
        return DocumentArray(level: level, depth: level.begin(0x5B, 0x5D))
    }

    // Classes are not kept at rest, so nothing asks for the encoder of a superclass.
    func superEncoder() -> any Encoder { level }
    func superEncoder(forKey key: Key) -> any Encoder { level }
}

private struct DocumentArray: UnkeyedEncodingContainer {
    let level: DocumentLevel
    let depth: Int
    var count = 0
    var codingPath: [any CodingKey] { [] }

    private mutating func element() {
        level.next(at: depth)
        count += 1
    }

    mutating func encodeNil() {
        element()
        level.writeNull()
    }

    mutating func encode(_ value: some Encodable) throws {
        element()
        try level.write(value)
    }

    mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        element()
        return KeyedEncodingContainer(DocumentObject<Nested>(level: level, depth: level.begin(0x7B, 0x7D)))
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        element()
        return DocumentArray(level: level, depth: level.begin(0x5B, 0x5D))
    }

    func superEncoder() -> any Encoder { level }
}

private struct DocumentValue: SingleValueEncodingContainer {
    let level: DocumentLevel
    var codingPath: [any CodingKey] { [] }

    func encodeNil() { level.writeNull() }

    func encode(_ value: Bool) { level.write(flag: value) }
    func encode(_ value: String) { level.write(string: value) }
    func encode(_ value: Double) throws { try level.write(double: value) }
    func encode(_ value: Float) throws { try level.write(double: Double(value)) }
    func encode(_ value: Int) { level.write(integer: value) }
    func encode(_ value: Int8) { level.write(integer: value) }
    func encode(_ value: Int16) { level.write(integer: value) }
    func encode(_ value: Int32) { level.write(integer: value) }
    func encode(_ value: Int64) { level.write(integer: value) }
    func encode(_ value: UInt) { level.write(integer: value) }
    func encode(_ value: UInt8) { level.write(integer: value) }
    func encode(_ value: UInt16) { level.write(integer: value) }
    func encode(_ value: UInt32) { level.write(integer: value) }
    func encode(_ value: UInt64) { level.write(integer: value) }
    func encode(_ value: some Encodable) throws { try level.write(value) }
}
