extension ObjectReader {
    // MARK: Strings

    /// A required string that follows `rule`.
    public mutating func string(_ name: String, _ rule: TextRule = .any) -> String {
        checked(name, rule, required(name, "a string", placeholder: nil) { $0.stringValue.map(Optional.some) }) ?? ""
    }

    /// A string that may be absent.
    public mutating func string(_ name: String, default standard: String, _ rule: TextRule = .any) -> String {
        guard presence(of: name) != .absent else {
            _ = take(name)
            return standard
        }
        return string(name, rule)
    }

    /// A string that may be absent or `null`.
    public mutating func optionalString(_ name: String, _ rule: TextRule = .any) -> String? {
        checked(name, rule, optional(name, "a string", \.stringValue))
    }

    private mutating func checked(_ name: String, _ rule: TextRule, _ text: String?) -> String? {
        guard isStrict, let text, let detail = rule.fault(text) else { return text }
        report(name, detail)
        return text
    }

    /// A required word from a list.
    public mutating func word<Name: WireName>(_ name: String, _ type: Name.Type = Name.self) -> Name {
        known(name, Name(rawValue: string(name)))
    }

    /// A word from a list that may be absent.
    public mutating func word<Name: WireName>(_ name: String, default standard: Name) -> Name {
        known(name, Name(rawValue: string(name, default: standard.rawValue)))
    }

    /// A word from a list that may be absent or `null`.
    public mutating func optionalWord<Name: WireName>(_ name: String, _ type: Name.Type = Name.self) -> Name? {
        optionalString(name).map { known(name, Name(rawValue: $0)) }
    }

    private mutating func known<Name: WireName>(_ name: String, _ word: Name) -> Name {
        // The placeholder of a string that is missing or none has been reported already.
        guard isStrict, peek(name)?.stringValue != nil, !word.isKnown else { return word }
        report(name, Self.choice(of: Name.self))
        return word
    }

    static func choice<Name: WireName>(of type: Name.Type) -> String {
        "This must be one of: " + Name.known.map(\.rawValue).joined(separator: ", ") + "."
    }

    // MARK: Numbers

    /// A required whole number.
    public mutating func integer(_ name: String, in range: ClosedRange<Int64> = .min ... .max) -> Int64 {
        checked(name, range, required(name, "a whole number", placeholder: nil) { $0.integerValue.map(Optional.some) })
            ?? range.clampedZero
    }

    /// A whole number that may be absent.
    public mutating func integer(
        _ name: String, default standard: Int64, in range: ClosedRange<Int64> = .min ... .max
    ) -> Int64 {
        checked(name, range, defaulted(name, "a whole number", standard, \.integerValue)) ?? standard
    }

    /// A whole number that may be absent or `null`.
    public mutating func optionalInteger(
        _ name: String, in range: ClosedRange<Int64> = .min ... .max
    ) -> Int64? {
        checked(name, range, optional(name, "a whole number", \.integerValue))
    }

    private mutating func checked(_ name: String, _ range: ClosedRange<Int64>, _ value: Int64?) -> Int64? {
        guard isStrict, let value, !range.contains(value) else { return value }
        report(name, Self.bounds(range))
        return nil
    }

    private static func bounds(_ range: ClosedRange<Int64>) -> String {
        if range.upperBound == .max { return "This must be at least \(range.lowerBound)." }
        return "This must be from \(range.lowerBound) to \(range.upperBound)."
    }

    /// A required number.
    public mutating func number(_ name: String, in range: ClosedRange<Double>? = nil) -> Double {
        checked(name, range, required(name, "a number", placeholder: nil) { $0.numberValue.map(Optional.some) }) ?? 0
    }

    /// A number that may be absent.
    public mutating func number(
        _ name: String, default standard: Double, in range: ClosedRange<Double>? = nil
    ) -> Double {
        checked(name, range, defaulted(name, "a number", standard, \.numberValue)) ?? standard
    }

    /// A number that may be absent or `null`.
    public mutating func optionalNumber(_ name: String, in range: ClosedRange<Double>? = nil) -> Double? {
        checked(name, range, optional(name, "a number", \.numberValue))
    }

    private mutating func checked(_ name: String, _ range: ClosedRange<Double>?, _ value: Double?) -> Double? {
        guard isStrict, let value, let range, !range.contains(value) else { return value }
        var low = JSONWriter()
        low.value(range.lowerBound)
        var high = JSONWriter()
        high.value(range.upperBound)
        let bounds =
            "from \(String(decoding: low.bytes, as: UTF8.self)) to \(String(decoding: high.bytes, as: UTF8.self))"
        report(name, "This must be \(bounds).")
        return nil
    }

    // MARK: Truth

    /// A required `true` or `false`.
    public mutating func bool(_ name: String) -> Bool {
        required(name, "true or false", placeholder: false, \.boolValue)
    }

    /// A `true` or `false` that may be absent.
    public mutating func bool(_ name: String, default standard: Bool) -> Bool {
        defaulted(name, "true or false", standard, \.boolValue)
    }

    /// A `true` or `false` that may be absent or `null`.
    public mutating func optionalBool(_ name: String) -> Bool? { optional(name, "true or false", \.boolValue) }

    // MARK: Anything

    /// A required value of any kind.
    public mutating func json(_ name: String) -> JSON { required(name, "a value", placeholder: .null) { $0 } }

    /// A value of any kind; `nil` where it is absent.
    public mutating func optionalJSON(_ name: String) -> JSON? { take(name) }
}

extension ClosedRange<Int64> {
    /// What stands for a number that could not be read.
    fileprivate var clampedZero: Int64 { contains(0) ? 0 : lowerBound }
}
