/// JSON Schema 2020-12, limited to the features in `openapi.yaml`, with references into that document.
///
/// `pattern` and `uniqueItems` are ignored: they constrain requests, and only responses are checked.
package struct Schema: Sendable {
    package let document: JSON
    /// Whether a member that `properties` does not name is a fault, although the document permits new members in
    /// responses. A schema with `additionalProperties` decides for itself.
    package let isExact: Bool

    package init(document: JSON, isExact: Bool = false) {
        self.document = document
        self.isExact = isExact
    }

    /// The faults of a value with their positions; empty if it is valid.
    package func faults(of value: JSON, _ schema: JSON, at place: String = "") -> [String] {
        if let bool = schema.bool { return bool ? [] : ["\(place): nothing is allowed here"] }
        var faults: [String] = []
        if let reference = schema["$ref"].string { faults += self.faults(of: value, resolve(reference), at: place) }
        faults += faultsOfKind(value, schema, place)
        if let members = value.object { faults += self.faults(ofMembers: members, schema, place) }
        if let items = value.array { faults += self.faults(ofItems: items, schema, place) }
        faults += faultsOfNumber(value, schema, place)
        for other in schema["allOf"].array ?? [] { faults += self.faults(of: value, other, at: place) }
        if schema.has("oneOf") || schema.has("anyOf") { faults += faultsOfChoice(value, schema, place) }
        if schema.has("not"), self.faults(of: value, schema["not"]).isEmpty { faults.append("\(place): is what not") }
        if schema.has("if") {
            let branch = schema[self.faults(of: value, schema["if"]).isEmpty ? "then" : "else"]
            if !branch.isNull { faults += self.faults(of: value, branch, at: place) }
        }
        return faults
    }

    /// The schema or other part that a `$ref` names.
    package func resolve(_ reference: String) -> JSON {
        reference.split(separator: "/").dropFirst().reduce(document) { $0[String($1)] }
    }

    /// The part itself, or the part that its `$ref` names.
    package func resolved(_ part: JSON) -> JSON { part["$ref"].string.map { resolve($0) } ?? part }

    private func faultsOfKind(_ value: JSON, _ schema: JSON, _ place: String) -> [String] {
        var faults: [String] = []
        let types = schema["type"].array ?? (schema.has("type") ? [schema["type"]] : [])
        if !types.isEmpty, !types.contains(where: { isOfType(value, $0.string ?? "") }) {
            faults.append("\(place): \(value) is not \(schema["type"])")
        }
        if let values = schema["enum"].array, !values.contains(value) { faults.append("\(place): \(value) is no word") }
        if schema.has("const"), schema["const"] != value { faults.append("\(place): \(value) is another constant") }
        if schema["format"] == "date-time", let text = value.string, !isTime(text) {
            faults.append("\(place): \(text) is no time")
        }
        return faults
    }

    private func isOfType(_ value: JSON, _ type: String) -> Bool {
        switch (type, value) {
        case ("null", .null), ("boolean", .bool), ("string", .string), ("array", .array), ("object", .object): true
        case ("integer", _): value.int != nil
        case ("number", _): value.double != nil
        default: false
        }
    }

    /// Whether the text is RFC 3339 in UTC with milliseconds.
    private func isTime(_ text: String) -> Bool {
        zip(text.utf8, "dddd-dd-ddTdd:dd:dd.dddZ".utf8).allSatisfy { character, form in
            form == UInt8(ascii: "d") ? (0x30...0x39).contains(character) : character == form
        } && text.utf8.count == 24
    }

    private func faults(ofMembers members: [String: JSON], _ schema: JSON, _ place: String) -> [String] {
        var faults: [String] = []
        for name in (schema["required"].array ?? []).compactMap(\.string) where members[name] == nil {
            faults.append("\(place): \(name) is missing")
        }
        if let least = schema["minProperties"].int, members.count < least { faults.append("\(place): too few members") }
        if let most = schema["maxProperties"].int, members.count > most { faults.append("\(place): too many members") }
        for (name, dependent) in schema["dependentSchemas"].object ?? [:] where members[name] != nil {
            faults += self.faults(of: .object(members), dependent, at: place)
        }
        for (name, value) in members {
            if schema.has("propertyNames") {
                faults += self.faults(of: .string(name), schema["propertyNames"], at: "\(place)/\(name)")
            }
            if let known = schema["properties"].object?[name] {
                faults += self.faults(of: value, known, at: "\(place)/\(name)")
            } else if schema.has("additionalProperties") {
                faults += self.faults(of: value, schema["additionalProperties"], at: "\(place)/\(name)")
            } else if isExact, schema.has("properties"), !isCondition(schema) {
                faults.append("\(place)/\(name): the description has no such member")
            }
        }
        return faults
    }

    /// Whether a schema is only a condition of another one, such as the `if` beside `properties`: it has no `type`.
    private func isCondition(_ schema: JSON) -> Bool { !schema.has("type") }

    private func faults(ofItems items: [JSON], _ schema: JSON, _ place: String) -> [String] {
        var faults: [String] = []
        if let limit = schema["maxItems"].int, items.count > limit { faults.append("\(place): too many items") }
        if let limit = schema["minItems"].int, items.count < limit { faults.append("\(place): too few items") }
        guard schema.has("items") else { return faults }
        for (index, item) in items.enumerated() {
            faults += self.faults(of: item, schema["items"], at: "\(place)/\(index)")
        }
        return faults
    }

    private func faultsOfNumber(_ value: JSON, _ schema: JSON, _ place: String) -> [String] {
        guard let number = value.double else { return [] }
        let isLow = schema["minimum"].double.map { number < $0 } ?? false
        let isHigh = schema["maximum"].double.map { number > $0 } ?? false
        return isLow || isHigh ? ["\(place): \(number) is out of range"] : []
    }

    private func faultsOfChoice(_ value: JSON, _ schema: JSON, _ place: String) -> [String] {
        let name = schema.has("oneOf") ? "oneOf" : "anyOf"
        let choices = schema[name].array ?? []
        let faults = choices.map { self.faults(of: value, $0, at: place) }
        let fitting = faults.count { $0.isEmpty }
        if name == "oneOf" ? fitting == 1 : fitting > 0 { return [] }
        if fitting > 1 { return ["\(place): fits \(fitting) of \(name)"] }
        return ["\(place): fits none of \(name): \(faults.min { $0.count < $1.count } ?? [])"]
    }
}
