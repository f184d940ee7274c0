/// An object of JSON. Its members are listed once, in ``visit(_:)``, for reading, checking and writing.
public protocol Shape: JSONReadable, MemberValue, Hashable, Sendable {
    /// A blank value, to be filled. A reader never hands out one that it could not fill.
    init()
    /// Names each member once, in the order in which they are written.
    mutating func visit(_ members: inout some MemberVisitor)
    /// Reports what members say about each other, when a strict reader has read them.
    mutating func check(_ reader: inout ObjectReader)
}

/// Visits the members of an object, one after the other: a reader fills them, a writer writes them.
///
/// A rule says what a value must be like; only strict readers ask for it.
public protocol MemberVisitor {
    /// A member that has to be there.
    mutating func member<Value: MemberValue>(
        _ name: String, _ value: inout Value, _ rule: @autoclosure () -> Value.Rule?)
    /// A member that may be absent, and then has the value of the blank.
    mutating func defaulted<Value: MemberValue>(
        _ name: String, _ value: inout Value, _ rule: @autoclosure () -> Value.Rule?)
    /// A member that may be absent, and is not written while it has the value that then counts.
    mutating func sparse<Value: MemberValue & Equatable>(
        _ name: String, _ value: inout Value, unless standard: @autoclosure () -> Value,
        _ rule: @autoclosure () -> Value.Rule?)
    /// A member that may be absent or `null`, and is written as `null` where there is no value.
    mutating func nullable<Value: MemberValue>(
        _ name: String, _ value: inout Value?, _ rule: @autoclosure () -> Value.Rule?)
    /// A member that may be absent or `null`, and is not written where there is no value.
    mutating func optional<Value: MemberValue>(
        _ name: String, _ value: inout Value?, _ rule: @autoclosure () -> Value.Rule?)
    /// A member that may be absent, but not `null`: where it is there, it changes something.
    mutating func given<Value: MemberValue>(
        _ name: String, _ value: inout Value?, _ rule: @autoclosure () -> Value.Rule?)
    /// A member of a `PATCH`, for which absent and `null` are different things.
    mutating func change<Value: MemberValue>(
        _ name: String, _ value: inout Change<Value>, _ rule: @autoclosure () -> Value.Rule?)
}

extension MemberVisitor {
    @inlinable
    public mutating func sparse<Value: MemberValue & Equatable>(
        _ name: String, _ value: inout Value, unless standard: @autoclosure () -> Value,
        _ rule: @autoclosure () -> Value.Rule?
    ) { defaulted(name, &value, rule()) }

    @inlinable
    public mutating func optional<Value: MemberValue>(
        _ name: String, _ value: inout Value?, _ rule: @autoclosure () -> Value.Rule?
    ) { nullable(name, &value, rule()) }

    @inlinable
    public mutating func given<Value: MemberValue>(
        _ name: String, _ value: inout Value?, _ rule: @autoclosure () -> Value.Rule?
    ) { optional(name, &value, rule()) }

    @inlinable
    public mutating func member(_ name: String, _ value: inout some MemberValue) { member(name, &value, nil) }
    @inlinable
    public mutating func defaulted(_ name: String, _ value: inout some MemberValue) { defaulted(name, &value, nil) }
    @inlinable
    public mutating func sparse<Value: MemberValue & Equatable>(
        _ name: String, _ value: inout Value, unless standard: @autoclosure () -> Value
    ) { sparse(name, &value, unless: standard(), nil) }
    @inlinable
    public mutating func nullable(_ name: String, _ value: inout (some MemberValue)?) { nullable(name, &value, nil) }
    @inlinable
    public mutating func optional(_ name: String, _ value: inout (some MemberValue)?) { optional(name, &value, nil) }
    @inlinable
    public mutating func given(_ name: String, _ value: inout (some MemberValue)?) { given(name, &value, nil) }
    @inlinable
    public mutating func change(_ name: String, _ value: inout Change<some MemberValue>) { change(name, &value, nil) }
}

extension Shape {
    /// Makes a value and fills it: `TaskInterval { $0.duration = 3 }`.
    @inlinable
    public init(_ fill: (inout Self) throws -> Void) rethrows {
        self.init()
        try fill(&self)
    }

    @inlinable
    public init(reading reader: inout ObjectReader) {
        self.init()
        visit(&reader)
        if reader.mode == .strict { check(&reader) }
    }

    @inlinable
    public func write(to writer: inout JSONWriter) {
        var members = self
        writer.object { members.visit(&$0) }
    }

    public func check(_ reader: inout ObjectReader) {}
}

extension JSONWriter: MemberVisitor {
    @inlinable
    public mutating func member<Value: MemberValue>(
        _ name: String, _ value: inout Value, _ rule: @autoclosure () -> Value.Rule?
    ) { member(name, value) }

    @inlinable
    public mutating func defaulted<Value: MemberValue>(
        _ name: String, _ value: inout Value, _ rule: @autoclosure () -> Value.Rule?
    ) { member(name, value) }

    @inlinable
    public mutating func sparse<Value: MemberValue & Equatable>(
        _ name: String, _ value: inout Value, unless standard: @autoclosure () -> Value,
        _ rule: @autoclosure () -> Value.Rule?
    ) {
        if value != standard() { member(name, value) }
    }

    @inlinable
    public mutating func nullable<Value: MemberValue>(
        _ name: String, _ value: inout Value?, _ rule: @autoclosure () -> Value.Rule?
    ) { member(name, value) }

    @inlinable
    public mutating func optional<Value: MemberValue>(
        _ name: String, _ value: inout Value?, _ rule: @autoclosure () -> Value.Rule?
    ) {
        memberIfPresent(name, value)
    }

    @inlinable
    public mutating func change<Value: MemberValue>(
        _ name: String, _ value: inout Change<Value>, _ rule: @autoclosure () -> Value.Rule?
    ) {
        if let update = value.update { member(name, update) }
    }
}

extension ObjectReader: MemberVisitor {
    @inlinable
    public mutating func member<Value: MemberValue>(
        _ name: String, _ value: inout Value, _ rule: @autoclosure () -> Value.Rule?
    ) {
        guard let json = take(name) else {
            return report(name, "This member is missing; it must be \(Value.kind).")
        }
        if let read = Value.read(json, ruling(rule), position(of: name)) { value = read }
    }

    @inlinable
    public mutating func defaulted<Value: MemberValue>(
        _ name: String, _ value: inout Value, _ rule: @autoclosure () -> Value.Rule?
    ) {
        guard let json = take(name), mode == .strict || !json.isNull else { return }
        if let read = Value.read(json, ruling(rule), position(of: name)) { value = read }
    }

    @inlinable
    public mutating func nullable<Value: MemberValue>(
        _ name: String, _ value: inout Value?, _ rule: @autoclosure () -> Value.Rule?
    ) {
        guard let json = take(name), !json.isNull else { return }
        value = Value.read(json, ruling(rule), position(of: name, orNull: true))
    }

    @inlinable
    public mutating func given<Value: MemberValue>(
        _ name: String, _ value: inout Value?, _ rule: @autoclosure () -> Value.Rule?
    ) {
        guard let json = take(name), mode == .strict || !json.isNull else { return }
        value = Value.read(json, ruling(rule), position(of: name))
    }

    @inlinable
    public mutating func change<Value: MemberValue>(
        _ name: String, _ value: inout Change<Value>, _ rule: @autoclosure () -> Value.Rule?
    ) {
        guard let json = take(name) else { return }
        if json.isNull {
            value = .clear
        } else if let read = Value.read(json, ruling(rule), position(of: name, orNull: true)) {
            value = .set(read)
        }
    }

    /// A member that has to be there, for shapes of which only some have it.
    @inlinable
    public mutating func required<Value: MemberValue>(
        _ name: String, _ blank: Value, _ rule: @autoclosure () -> Value.Rule? = nil
    ) -> Value {
        var value = blank
        member(name, &value, rule())
        return value
    }

    @inlinable
    func ruling<Rule>(_ rule: () -> Rule?) -> Rule? { mode == .strict ? rule() : nil }
}
