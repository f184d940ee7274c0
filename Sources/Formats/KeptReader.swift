/// Reads JSON text of the program itself, from front to back and directly into the shapes: members have the order in
/// which they are visited, and those without a value are left out.
///
/// The reader stops at text of another form, such as that of an older version. Such text is read with ``JSON``, which
/// takes three times as long and reports faults.
public struct KeptReader {
    private var parser: JSONParser
    @usableFromInline private(set) var isLost = false

    init(_ bytes: UnsafeBufferPointer<UInt8>) { parser = JSONParser(bytes: bytes, maximumDepth: 32, allowsNull: true) }

    /// Reads the whole text as one value; `nil` if the text has another form.
    mutating func document<Value: MemberValue>() -> Value? {
        let value = Value.read(kept: &self)
        return !isLost && parser.isAtEnd ? value : nil
    }

    // MARK: Steps

    /// Records that the text has another form.
    @usableFromInline
    mutating func lose() { isLost = true }

    /// Whether the next member has this name. If so, its value is next.
    @usableFromInline
    mutating func takes(_ name: String) -> Bool { !isLost && parser.take(name: name) }

    /// Skips a bracket or comma, if it is next.
    @usableFromInline
    mutating func takes(_ byte: UInt8) -> Bool { !isLost && parser.take(byte) }

    @inlinable
    mutating func value<Value: MemberValue>() -> Value? {
        if !isLost, let value = Value.read(kept: &self) { return value }
        lose()
        return nil
    }

    @usableFromInline
    mutating func string() -> String? { try? parser.parseText() }

    @usableFromInline
    mutating func number() -> JSON? { try? parser.parseNumber() }

    @usableFromInline
    mutating func bool() -> Bool? {
        if (try? parser.parseWord("true", .null)) != nil { return true }
        return (try? parser.parseWord("false", .null)) == nil ? nil : false
    }

    /// Reads any value with ``JSON``.
    @usableFromInline
    mutating func tree<Value: MemberValue>() -> Value? {
        guard let json = try? parser.parseValue() else { return nil }
        let faults = Faults()
        let value = Value.read(json, nil, JSONPosition(nil, in: nil, faults, .tolerant))
        return faults.list.isEmpty ? value : nil
    }
}

extension KeptReader: MemberVisitor {
    @inlinable
    public mutating func member<Value: MemberValue>(
        _ name: String, _ value: inout Value, _ rule: @autoclosure () -> Value.Rule?
    ) {
        if takes(name) {
            if let read: Value = self.value() { value = read }
        } else {
            lose()
        }
    }

    @inlinable
    public mutating func defaulted<Value: MemberValue>(
        _ name: String, _ value: inout Value, _ rule: @autoclosure () -> Value.Rule?
    ) {
        if takes(name), let read: Value = self.value() { value = read }
    }

    @inlinable
    public mutating func nullable<Value: MemberValue>(
        _ name: String, _ value: inout Value?, _ rule: @autoclosure () -> Value.Rule?
    ) {
        if takes(name) { value = self.value() }
    }

    @inlinable
    public mutating func change<Value: MemberValue>(
        _ name: String, _ value: inout Change<Value>, _ rule: @autoclosure () -> Value.Rule?
    ) {
        if takes(name), let read: Value = self.value() { value = .set(read) }
    }
}

extension MemberValue {
    public static func read(kept reader: inout KeptReader) -> Self? { reader.tree() }
}

extension Shape {
    @inlinable
    public static func read(kept reader: inout KeptReader) -> Self? {
        guard reader.takes(UInt8(ascii: "{")) else { return nil }
        var value = Self()
        value.visit(&reader)
        return reader.takes(UInt8(ascii: "}")) ? value : nil
    }
}

extension Array where Element: MemberValue {
    @inlinable
    public static func read(kept reader: inout KeptReader) -> [Element]? {
        guard reader.takes(UInt8(ascii: "[")) else { return nil }
        var elements: [Element] = []
        guard !reader.takes(UInt8(ascii: "]")) else { return elements }
        repeat {
            guard let element: Element = reader.value() else { return nil }
            elements.append(element)
        } while reader.takes(UInt8(ascii: ","))
        return reader.takes(UInt8(ascii: "]")) ? elements : nil
    }
}

extension Word {
    @inlinable
    package static func read(kept reader: inout KeptReader) -> Self? {
        guard let value: RawValue = reader.value() else { return nil }
        return Self(rawValue: value)
    }
}

extension MemberValue where Self: FixedWidthInteger & Sendable {
    @inlinable
    public static func read(kept reader: inout KeptReader) -> Self? {
        reader.number()?.integerValue.flatMap(Self.init(exactly:))
    }
}

extension String {
    @inlinable
    public static func read(kept reader: inout KeptReader) -> String? { reader.string() }
}

extension Double {
    @inlinable
    public static func read(kept reader: inout KeptReader) -> Double? { reader.number()?.numberValue }
}

extension Bool {
    @inlinable
    public static func read(kept reader: inout KeptReader) -> Bool? { reader.bool() }
}
