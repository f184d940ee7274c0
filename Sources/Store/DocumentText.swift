import FoundationEssentials

/// A value that writes its own JSON document.
///
/// A task's end writes a document of a hundred members while the one writer waits, and a batch writes ten thousand
/// requests: `Encodable` is too slow for that. What is written here, `JSONDecoder` reads as `Decodable` has it: the names
/// are those of the properties, nil is left out.
protocol Document: Encodable {
    func write(to text: inout DocumentText) throws
}

/// JSON text in the making.
struct DocumentText {
    private(set) var bytes: [UInt8] = []

    init(capacity: Int = 1024) { bytes.reserveCapacity(capacity) }

    /// - Parameter members: Writes the members of the object.
    mutating func object(_ members: (inout DocumentText) throws -> Void) rethrows {
        bytes.append(0x7B)
        try members(&self)
        bytes.append(0x7D)
    }

    mutating func array<Element>(_ elements: [Element], _ write: (Element, inout DocumentText) throws -> Void) rethrows
    {
        bytes.append(0x5B)
        for element in elements {
            separate()
            try write(element, &self)
        }
        bytes.append(0x5D)
    }

    // MARK: Members

    mutating func member(_ name: StaticString, _ value: String?) {
        guard let value else { return }
        begin(name)
        string(value)
    }

    mutating func member(_ name: StaticString, _ value: (some BinaryInteger)?) {
        guard let value else { return }
        begin(name)
        integer(Int64(value))
    }

    mutating func member(_ name: StaticString, _ value: Bool) {
        begin(name)
        append(value ? "true" : "false")
    }

    mutating func member(_ name: StaticString, _ value: (some Document)?) throws {
        guard let value else { return }
        begin(name)
        try value.write(to: &self)
    }

    mutating func member<Element: Document>(_ name: StaticString, _ values: [Element]) throws {
        begin(name)
        try array(values) { try $0.write(to: &$1) }
    }

    mutating func member(_ name: StaticString, _ values: [String]?) {
        guard let values else { return }
        begin(name)
        array(values) { $1.string($0) }
    }

    mutating func member(_ name: StaticString, _ values: [String: String]) {
        begin(name)
        bytes.append(0x7B)
        for (key, value) in values {
            separate()
            string(key)
            bytes.append(0x3A)
            string(value)
        }
        bytes.append(0x7D)
    }

    /// - Parameter number: Finite; JSON has no other.
    mutating func member(_ name: StaticString, _ number: Double) {
        begin(name)
        bytes.append(contentsOf: number.description.utf8)
    }

    /// A member that is rarely there.
    mutating func rare(_ name: StaticString, _ value: (some Encodable)?) throws {
        guard let value else { return }
        begin(name)
        bytes.append(contentsOf: try JSONEncoder().encode(value))
    }

    /// Values of which there are rarely any.
    mutating func rare(_ name: StaticString, _ values: [some Encodable]) throws {
        begin(name)
        bytes.append(contentsOf: values.isEmpty ? [0x5B, 0x5D] : Array(try JSONEncoder().encode(values)))
    }

    private mutating func begin(_ name: StaticString) {
        separate()
        bytes.append(0x22)
        append(name)
        bytes.append(0x22)
        bytes.append(0x3A)
    }

    /// A comma, but after an opening bracket.
    private mutating func separate() {
        if let last = bytes.last, last != 0x7B, last != 0x5B { bytes.append(0x2C) }
    }

    // MARK: Values

    mutating func integer(_ number: Int64) {
        var rest = number.magnitude
        if number < 0 { bytes.append(0x2D) }
        let start = bytes.count
        repeat {
            bytes.append(0x30 + UInt8(rest % 10))
            rest /= 10
        } while rest > 0
        bytes[start...].reverse()
    }

    mutating func string(_ string: String) {
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

    private mutating func append(_ text: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    private mutating func append(escaped byte: UInt8) {
        switch byte {
        case 0x22, 0x5C: bytes += [0x5C, byte]
        case 0..<0x20:
            let digits = Array("0123456789abcdef".utf8)
            bytes += [0x5C, 0x75, 0x30, 0x30, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        default: bytes.append(byte)
        }
    }
}
