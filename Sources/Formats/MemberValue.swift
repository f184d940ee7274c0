/// The value of a member.
public protocol MemberValue: JSONWritable {
    /// The constraints on a value besides its type.
    associatedtype Rule = Never
    /// The kind, for messages: `a string`.
    static var kind: String { get }
    /// The plural of the kind, for messages about arrays: `strings`.
    static var kinds: String? { get }
    /// Reads a value. Faults are reported with their position; `nil` if there is no usable value.
    static func read(_ json: JSON, _ rule: Rule?, _ position: JSONPosition) -> Self?
    /// Reads a value of the program itself; `nil` if the text has another form.
    static func read(kept reader: inout KeptReader) -> Self?
}

extension MemberValue {
    public static var kinds: String? { nil }
}

/// The position of a value during reading.
public struct JSONPosition {
    private let step: JSONPath.Step?
    private let parent: JSONPath?
    let faults: Faults
    /// The checks that apply.
    public let mode: ReadingMode
    fileprivate let alternative: String

    /// - Parameter step: `nil` at the root.
    init(_ step: JSONPath.Step?, in parent: JSONPath?, _ faults: Faults, _ mode: ReadingMode, orNull: Bool = false) {
        self.step = step
        self.parent = parent
        self.faults = faults
        self.mode = mode
        alternative = orNull ? " or null" : ""
    }

    /// Reports that the value violates a rule.
    public func report(_ detail: String) { faults.report(path, detail) }

    /// Reports that the value has another type.
    public func reject<Value>(_ kind: String, _ json: JSON) -> Value? {
        report("This must be \(kind)\(alternative), not \(json.kind).")
        return nil
    }

    /// A reader of the object at this position.
    @usableFromInline
    func reader(of json: JSON) -> ObjectReader? {
        guard let members = json.members else { return reject("an object", json) }
        return ObjectReader(members: members, path: path, faults: faults, mode: mode)
    }

    /// The position of a member of the object at this position.
    package func member(_ name: String) -> JSONPosition { element(.name(name), in: path) }

    @usableFromInline
    var path: JSONPath? { step.map { JSONPath($0, in: parent) } }

    @usableFromInline
    func element(_ step: JSONPath.Step, in path: JSONPath?) -> JSONPosition {
        JSONPosition(step, in: path, faults, mode)
    }
}

extension MemberValue where Self: JSONReadable {
    public static var kind: String { "an object" }

    @inlinable
    public static func read(_ json: JSON, _ rule: Rule?, _ position: JSONPosition) -> Self? {
        guard var reader = position.reader(of: json) else { return nil }
        let value = Self(reading: &reader)
        reader.finish()
        return value
    }
}

extension String: MemberValue {
    public static var kind: String { "a string" }
    public static var kinds: String? { "strings" }

    public static func read(_ json: JSON, _ rule: TextRule?, _ position: JSONPosition) -> String? {
        guard let text = json.stringValue else { return position.reject(kind, json) }
        if let detail = rule?.fault(text) { position.report(detail) }
        return text
    }
}

extension MemberValue where Self: FixedWidthInteger & Sendable {
    public static var kind: String { "a whole number" }
    public static var kinds: String? { "whole numbers" }

    @inlinable
    public static func read(_ json: JSON, _ rule: ClosedRange<Self>?, _ position: JSONPosition) -> Self? {
        guard let number = json.integerValue.flatMap(Self.init(exactly:)) else { return position.reject(kind, json) }
        guard let rule, !rule.contains(number) else { return number }
        position.report(
            rule.upperBound == .max
                ? "This must be at least \(rule.lowerBound)."
                : "This must be from \(rule.lowerBound) to \(rule.upperBound).")
        return nil
    }
}

extension Int: MemberValue { public typealias Rule = ClosedRange<Int> }
extension Int64: MemberValue { public typealias Rule = ClosedRange<Int64> }

extension Double: MemberValue {
    public static var kind: String { "a number" }

    public static func read(_ json: JSON, _ rule: ClosedRange<Double>?, _ position: JSONPosition) -> Double? {
        guard let number = json.numberValue else { return position.reject(kind, json) }
        guard let rule, !rule.contains(number) else { return number }
        let bounds = [rule.lowerBound, rule.upperBound].map { String(decoding: $0.jsonBytes, as: UTF8.self) }
        position.report("This must be from \(bounds[0]) to \(bounds[1]).")
        return nil
    }
}

extension Bool: MemberValue {
    public static var kind: String { "true or false" }

    public static func read(_ json: JSON, _ rule: Never?, _ position: JSONPosition) -> Bool? {
        json.boolValue ?? position.reject(kind, json)
    }
}

/// One word or number of a closed list.
package protocol Word: MemberValue, RawRepresentable, Hashable, Sendable where RawValue: MemberValue {}

extension Word {
    package static var kind: String { RawValue.kind }
    package static var kinds: String? { RawValue.kinds }

    @inlinable
    package static func read(_ json: JSON, _ rule: Rule?, _ position: JSONPosition) -> Self? {
        guard let name = RawValue.read(json, nil, position) else { return nil }
        if let word = Self(rawValue: name) { return word }
        position.report("This is none of the allowed words.")
        return nil
    }

    @inlinable
    package func write(to writer: inout JSONWriter) { rawValue.write(to: &writer) }
}

extension JSON: MemberValue {
    public static var kind: String { "a value" }
    public static func read(_ json: JSON, _ rule: Never?, _ position: JSONPosition) -> JSON? { json }
}

/// The constraints on a list: its elements, their number, and the whole.
public struct ListRule<Element: MemberValue> {
    @usableFromInline let element: Element.Rule?
    @usableFromInline let count: ClosedRange<Int>
    @usableFromInline let fault: ([Element]) -> String?

    public init(
        _ element: Element.Rule? = nil, count: ClosedRange<Int>, fault: @escaping ([Element]) -> String? = { _ in nil }
    ) {
        self.element = element
        self.count = count
        self.fault = fault
    }

    public static func each(_ element: Element.Rule, count: ClosedRange<Int>) -> Self { Self(element, count: count) }

    public static func count(_ count: ClosedRange<Int>) -> Self { Self(count: count) }
}

extension ListRule where Element: Hashable {
    /// - Parameter detail: The message for a repeated element.
    public static func distinct(_ element: Element.Rule? = nil, count: ClosedRange<Int>, _ detail: String) -> Self {
        Self(element, count: count) { Set($0).count == $0.count ? nil : detail }
    }
}

extension Array: MemberValue where Element: MemberValue {
    public static var kind: String { Element.kinds.map { "an array of \($0)" } ?? "an array" }

    @inlinable
    public static func read(_ json: JSON, _ rule: ListRule<Element>?, _ position: JSONPosition) -> [Element]? {
        guard let elements = json.elements else { return position.reject(kind, json) }
        if let count = rule?.count, !count.contains(elements.count) {
            let most = count.upperBound == .max ? "" : ", at most \(count.upperBound)"
            let least = count.lowerBound.counted("element")
            position.report("This needs at least \(least)\(most); there are \(elements.count).")
            return []
        }
        let path = position.path
        var values: [Element] = []
        values.reserveCapacity(elements.count)
        for (index, element) in elements.enumerated() {
            let value = Element.read(element, rule?.element, position.element(.index(index), in: path))
            if let value { values.append(value) }
        }
        if let detail = rule?.fault(values) { position.report(detail) }
        return values
    }
}

extension Set: MemberValue, JSONWritable where Element: MemberValue & Comparable {
    public static var kind: String { [Element].kind }

    public static func read(_ json: JSON, _ rule: ListRule<Element>?, _ position: JSONPosition) -> Set<Element>? {
        guard let elements = [Element].read(json, rule, position) else { return nil }
        return Set(elements)
    }

    /// Writes in ascending order, so that equal sets have equal bytes.
    public func write(to writer: inout JSONWriter) { sorted().write(to: &writer) }
}

extension Dictionary: MemberValue, JSONWritable where Key == String, Value: MemberValue {
    public static var kind: String { "an object" }

    public static func read(_ json: JSON, _ rule: Never?, _ position: JSONPosition) -> [String: Value]? {
        guard let members = json.members else { return position.reject(kind, json) }
        let path = position.path
        var values: [String: Value] = [:]
        for member in members {
            values[member.name] = Value.read(member.value, nil, position.element(.name(member.name), in: path))
        }
        return values
    }

    /// Writes in the order of the names, so that equal dictionaries have equal bytes.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            for (name, value) in isEmpty ? [] : sorted(by: { $0.key < $1.key }) { writer.member(name, value) }
        }
    }
}
