extension ObjectReader {
    // MARK: Objects

    /// A required object.
    public mutating func object<Value: JSONReadable>(_ name: String, _ type: Value.Type = Value.self) -> Value {
        object(name) { Value(reading: &$0) }
    }

    /// A required object, read by `body`.
    public mutating func object<Value>(_ name: String, _ body: (inout ObjectReader) -> Value) -> Value {
        let members = required(name, "an object", placeholder: nil) { $0.members.map(Optional.some) } ?? nil
        if let members { return read(members, at: JSONPath(.name(name), in: path), body) }
        var nothing = ObjectReader(members: [], path: nil, faults: Faults(), mode: .tolerant)
        return body(&nothing)
    }

    /// An object that may be absent or `null`.
    public mutating func optionalObject<Value: JSONReadable>(
        _ name: String, _ type: Value.Type = Value.self
    ) -> Value? {
        optionalObject(name) { Value(reading: &$0) }
    }

    /// An object that may be absent or `null`, read by `body`.
    public mutating func optionalObject<Value>(_ name: String, _ body: (inout ObjectReader) -> Value) -> Value? {
        optional(name, "an object", \.members).map { read($0, at: JSONPath(.name(name), in: path), body) }
    }

    /// An object that may be absent.
    public mutating func object<Value: JSONReadable>(_ name: String, default standard: Value) -> Value {
        defaulted(name, "an object", nil) { $0.members.map(Optional.some) }
            .map { read($0, at: JSONPath(.name(name), in: path)) { Value(reading: &$0) } } ?? standard
    }

    private func read<Value>(
        _ members: [JSON.Member], at path: JSONPath, _ body: (inout ObjectReader) -> Value
    ) -> Value {
        var reader = ObjectReader(members: members, path: path, faults: faults, mode: mode)
        let value = body(&reader)
        reader.finish()
        return value
    }

    // MARK: Arrays

    /// A required array of objects.
    public mutating func objects<Value: JSONReadable>(
        _ name: String, _ type: Value.Type = Value.self, count: ClosedRange<Int> = 0 ... .max
    ) -> [Value] {
        let elements = required(name, "an array", placeholder: []) { $0.elements }
        return objects(elements, name, count)
    }

    /// An array of objects that may be absent or `null`.
    public mutating func optionalObjects<Value: JSONReadable>(
        _ name: String, _ type: Value.Type = Value.self, count: ClosedRange<Int> = 0 ... .max
    ) -> [Value]? {
        optional(name, "an array", \.elements).map { objects($0, name, count) }
    }

    private mutating func objects<Value: JSONReadable>(
        _ elements: [JSON], _ name: String, _ count: ClosedRange<Int>
    ) -> [Value] {
        each(elements, name, count) { element, path, reader in
            guard let members = element.members else {
                reader.faults.report(path, "This must be an object, not \(element.kind).")
                return nil
            }
            return reader.read(members, at: path) { Value(reading: &$0) }
        }
    }

    /// A required array of strings that follow `rule`.
    public mutating func strings(
        _ name: String, _ rule: TextRule = .any, count: ClosedRange<Int> = 0 ... .max
    ) -> [String] {
        let elements = required(name, "an array of strings", placeholder: []) { $0.elements }
        return strings(elements, name, rule, count)
    }

    /// An array of strings that may be absent.
    public mutating func strings(
        _ name: String, default standard: [String], _ rule: TextRule = .any, count: ClosedRange<Int> = 0 ... .max
    ) -> [String] {
        defaulted(name, "an array of strings", nil) { $0.elements.map(Optional.some) }
            .map { strings($0, name, rule, count) } ?? standard
    }

    private mutating func strings(
        _ elements: [JSON], _ name: String, _ rule: TextRule, _ count: ClosedRange<Int>
    ) -> [String] {
        each(elements, name, count) { element, path, reader in
            guard let text = element.stringValue else {
                reader.faults.report(path, "This must be a string, not \(element.kind).")
                return nil
            }
            if reader.isStrict, let detail = rule.fault(text) { reader.faults.report(path, detail) }
            return text
        }
    }

    /// An array of words from a list that may be absent. No word stands twice.
    public mutating func words<Name: WireName>(
        _ name: String, default standard: [Name], count: ClosedRange<Int> = 0 ... .max
    ) -> [Name] {
        guard presence(of: name) != .absent else {
            _ = take(name)
            return standard
        }
        let rule = TextRule { text in
            Name.known.contains(Name(rawValue: text)) ? nil : Self.choice(of: Name.self)
        }
        let words = strings(name, rule, count: count).map { Name(rawValue: $0) }
        if isStrict, Set(words).count != words.count { report(name, "No word may stand here twice.") }
        return words
    }

    /// An array of whole numbers that may be absent.
    public mutating func integers(
        _ name: String, default standard: [Int64], in range: ClosedRange<Int64>, count: ClosedRange<Int> = 0 ... .max
    ) -> [Int64] {
        let elements = defaulted(name, "an array of whole numbers", nil) { $0.elements.map(Optional.some) }
        guard let elements else { return standard }
        return each(elements, name, count) { element, path, reader in
            if let number = element.integerValue, !reader.isStrict || range.contains(number) { return number }
            let bounds = "\(range.lowerBound) to \(range.upperBound)"
            reader.faults.report(path, "This must be a whole number from \(bounds).")
            return nil
        }
    }

    private mutating func each<Value>(
        _ elements: [JSON], _ name: String, _ count: ClosedRange<Int>,
        _ body: (JSON, JSONPath, ObjectReader) -> Value?
    ) -> [Value] {
        if isStrict && !count.contains(elements.count) {
            let most = count.upperBound == .max ? "" : ", at most \(count.upperBound)"
            report(name, "This needs at least \(count.lowerBound) elements\(most); there are \(elements.count).")
            return []
        }
        let path = JSONPath(.name(name), in: path)
        var values: [Value] = []
        values.reserveCapacity(elements.count)
        for (index, element) in elements.enumerated() {
            if let value = body(element, JSONPath(.index(index), in: path), self) { values.append(value) }
        }
        return values
    }

    // MARK: Maps

    /// An object whose names are free and whose values are strings. May be absent.
    public mutating func stringMap(
        _ name: String, default standard: StringMap = [:], names: TextRule = .any, values: TextRule = .any,
        count: ClosedRange<Int> = 0 ... .max
    ) -> StringMap {
        let members = defaulted(name, "an object of strings", nil) { $0.members.map(Optional.some) }
        guard let members else { return standard }
        if isStrict && !count.contains(members.count) {
            report(name, "There may be at most \(count.upperBound) members; there are \(members.count).")
            return standard
        }
        let path = JSONPath(.name(name), in: path)
        var map = StringMap()
        for member in members {
            guard let text = member.value.stringValue else {
                faults.report(
                    JSONPath(.name(member.name), in: path), "This must be a string, not \(member.value.kind).")
                continue
            }
            if isStrict, let detail = names.fault(member.name) ?? values.fault(text) {
                faults.report(JSONPath(.name(member.name), in: path), detail)
            }
            map.append(member.name, text)
        }
        return map
    }

    // MARK: Changes

    /// What a `PATCH` says about a member: nothing, `null`, or a value, which `body` reads.
    public mutating func change<Value>(_ name: String, _ body: (inout ObjectReader) -> Value?) -> Change<Value> {
        switch presence(of: name) {
        case .absent:
            _ = take(name)
            return .unchanged
        case .null:
            _ = take(name)
            return .clear
        case .present:
            return body(&self).map { .set($0) } ?? .unchanged
        }
    }
}
