/// A JSON object. ``visit(_:)`` lists its members once, for reading, checking and writing.
public protocol Shape: JSONReadable, MemberValue, Hashable, Sendable {
    /// Creates a blank value. A reader never returns one that it could not fill.
    init()
    /// Visits each member once, in the order of writing.
    mutating func visit(_ members: inout some MemberVisitor)
    /// Reports violations between members, after strict reading.
    mutating func check(_ reader: inout ObjectReader)
}

/// A visitor of the members of an object: a reader assigns them, a writer writes them.
///
/// A rule constrains a value; only strict readers apply it.
public protocol MemberVisitor {
    /// Visits a required member.
    mutating func member<Value: MemberValue>(
        _ name: String, _ value: inout Value, _ rule: @autoclosure () -> Value.Rule?)
    /// Visits a member that may be absent and then has the blank's value.
    mutating func defaulted<Value: MemberValue>(
        _ name: String, _ value: inout Value, _ rule: @autoclosure () -> Value.Rule?)
    /// Visits a member that may be absent, and is not written while it has its default value.
    mutating func sparse<Value: MemberValue & Equatable>(
        _ name: String, _ value: inout Value, unless standard: @autoclosure () -> Value,
        _ rule: @autoclosure () -> Value.Rule?)
    /// Visits a member that may be absent or `null`, and is written as `null` if there is no value.
    mutating func nullable<Value: MemberValue>(
        _ name: String, _ value: inout Value?, _ rule: @autoclosure () -> Value.Rule?)
    /// Visits a member that may be absent or `null`, and is not written if there is no value.
    mutating func optional<Value: MemberValue>(
        _ name: String, _ value: inout Value?, _ rule: @autoclosure () -> Value.Rule?)
    /// Visits a member that may be absent but not `null`: its presence requests a change.
    mutating func given<Value: MemberValue>(
        _ name: String, _ value: inout Value?, _ rule: @autoclosure () -> Value.Rule?)
    /// Visits a member of a `PATCH`, for which absent and `null` differ.
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
    /// Creates a value and assigns its members: `TaskInterval { $0.duration = 3 }`.
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

    /// Visits a member that is required in some shapes only.
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
