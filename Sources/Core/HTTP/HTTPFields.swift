package import Formats

/// One header field, with its name as given.
package struct HTTPField: Shape {
    package var name = ""
    package var value = ""

    package init() {}

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("name", &name)
        members.member("value", &value)
    }
}

/// Header fields in order. Names are compared ignoring ASCII case (RFC 9110 section 5.1).
package struct HTTPFields: Hashable, Sendable {
    package var fields: [HTTPField]

    package init(_ fields: [HTTPField] = []) { self.fields = fields }

    /// The first value of a field, or `nil`.
    package subscript(_ name: String) -> String? {
        fields.first { $0.name.equalsIgnoringASCIICase(name) }?.value
    }

    /// All values of a field, one per line.
    package func values(_ name: String) -> [String] {
        fields.filter { $0.name.equalsIgnoringASCIICase(name) }.map(\.value)
    }

    package func contains(_ name: String) -> Bool { self[name] != nil }

    /// Replaces all lines of a field with one.
    package mutating func set(_ name: String, _ value: String) {
        remove(name)
        fields.append(HTTPField(name: name, value: value))
    }

    package mutating func append(_ name: String, _ value: String) {
        fields.append(HTTPField(name: name, value: value))
    }

    package mutating func remove(_ name: String) {
        fields.removeAll { $0.name.equalsIgnoringASCIICase(name) }
    }
}

extension HTTPFields: MemberValue {
    package static var kind: String { [HTTPField].kind }

    package static func read(_ json: JSON, _ rule: Never?, _ position: JSONPosition) -> HTTPFields? {
        [HTTPField].read(json, nil, position).map(HTTPFields.init)
    }

    package static func read(kept reader: inout KeptReader) -> HTTPFields? {
        [HTTPField].read(kept: &reader).map(HTTPFields.init)
    }

    package func write(to writer: inout JSONWriter) { fields.write(to: &writer) }
}

extension String {
    /// Byte equality that ignores only the case of A–Z, as HTTP requires for field names and schemes.
    package func equalsIgnoringASCIICase(_ other: String) -> Bool {
        guard utf8.count == other.utf8.count else { return false }
        return zip(utf8, other.utf8).allSatisfy { $0.asciiLowercased == $1.asciiLowercased }
    }

    /// The string with A–Z lower-cased and everything else unchanged.
    package var asciiLowercased: String { String(decoding: utf8.map(\.asciiLowercased), as: UTF8.self) }
}

extension UInt8 {
    package var asciiLowercased: UInt8 { (0x41...0x5A).contains(self) ? self | 0x20 : self }
}
