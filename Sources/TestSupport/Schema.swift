import Base

/// JSON Schema 2020-12, limited to the features in `openapi.yaml`, with references into that document.
///
/// `pattern` and `uniqueItems` are ignored: they constrain requests, and only responses are checked.
package struct Schema: Sendable {
    package let document: JSON
    /// Whether a member that `properties` does not name is a fault, although the document permits new members in
    /// responses. A schema with `additionalProperties` decides for itself.
    package let isExact: Bool

    /// The rules of references, each read at its first use.
    private let rules = Locked<[String: SchemaRule]>([:])

    package init(document: JSON, isExact: Bool = false) {
        self.document = document
        self.isExact = isExact
    }

    /// The faults of a value with their positions; empty if it is valid.
    package func faults(of value: JSON, _ schema: JSON) -> [String] {
        faults(of: value, SchemaRule(schema), at: .root).map { $0() }
    }

    /// The schema or other part that a `$ref` names.
    package func resolve(_ reference: String) -> JSON {
        reference.split(separator: "/").dropFirst().reduce(document) { $0[String($1)] }
    }

    /// The part itself, or the part that its `$ref` names.
    package func resolved(_ part: JSON) -> JSON { part["$ref"].string.map { resolve($0) } ?? part }

    /// A fault as text when it is wanted: most faults are those of alternatives that another one makes good.
    private typealias Fault = () -> String

    private func faults(of value: JSON, _ rule: SchemaRule, at place: Place) -> [Fault] {
        guard rule.isPossible else { return [{ "\(place): nothing is allowed here" }] }
        var faults: [Fault] = []
        if let reference = rule.reference { faults += self.faults(of: value, self.rule(reference), at: place) }
        faults += faultsOfKind(value, rule, place)
        if let members = value.object { faults += self.faults(ofMembers: members, rule, place) }
        if let items = value.array { faults += self.faults(ofItems: items, rule, place) }
        if let number = value.double, !rule.numbers.contains(number) {
            faults.append { "\(place): \(number) is out of range" }
        }
        for other in rule.all { faults += self.faults(of: value, other, at: place) }
        if !rule.choices.isEmpty { faults += faultsOfChoice(value, rule, place) }
        if let excluded = rule.excluded, self.faults(of: value, excluded, at: place).isEmpty {
            faults.append { "\(place): is what not" }
        }
        if let condition = rule.condition {
            let branch = self.faults(of: value, condition, at: place).isEmpty ? rule.consequence : rule.alternative
            if let branch { faults += self.faults(of: value, branch, at: place) }
        }
        return faults
    }

    private func rule(_ reference: String) -> SchemaRule {
        if let rule = rules.withLock({ $0[reference] }) { return rule }
        let rule = SchemaRule(resolve(reference))
        rules.withLock { $0[reference] = rule }
        return rule
    }

    private func faultsOfKind(_ value: JSON, _ rule: SchemaRule, _ place: Place) -> [Fault] {
        var faults: [Fault] = []
        if let types = rule.types, !types.contains(where: { $0.includes(value) }) {
            faults.append { "\(place): \(value) is none of \(types)" }
        }
        if let values = rule.values, !values.contains(value) { faults.append { "\(place): \(value) is no word" } }
        if let constant = rule.constant, constant != value { faults.append { "\(place): \(value) is not \(constant)" } }
        if rule.isTime, let text = value.string, !isTime(text) { faults.append { "\(place): \(text) is no time" } }
        return faults
    }

    /// Whether the text is RFC 3339 in UTC with milliseconds.
    private func isTime(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count == Self.formOfTime.count else { return false }
        for (byte, form) in zip(bytes, Self.formOfTime)
        where form == UInt8(ascii: "d") ? byte < 0x30 || byte > 0x39 : byte != form {
            return false
        }
        return true
    }

    private static let formOfTime = Array("dddd-dd-ddTdd:dd:dd.dddZ".utf8)

    private func faults(ofMembers members: [String: JSON], _ rule: SchemaRule, _ place: Place) -> [Fault] {
        var faults: [Fault] = []
        for name in rule.required where members[name] == nil { faults.append { "\(place): \(name) is missing" } }
        if !rule.numberOfMembers.contains(members.count) {
            faults.append { "\(place): \(members.count) members, not \(rule.numberOfMembers)" }
        }
        for (name, dependent) in rule.dependents where members[name] != nil {
            faults += self.faults(of: .object(members), dependent, at: place)
        }
        for (name, value) in members {
            let place = Place.member(place, name)
            if let names = rule.names { faults += self.faults(of: .string(name), names, at: place) }
            if let known = rule.properties?[name] ?? rule.otherProperties {
                faults += self.faults(of: value, known, at: place)
            } else if isExact, rule.properties != nil, !rule.isCondition {
                faults.append { "\(place): the description has no such member" }
            }
        }
        return faults
    }

    private func faults(ofItems items: [JSON], _ rule: SchemaRule, _ place: Place) -> [Fault] {
        var faults: [Fault] = []
        if !rule.numberOfItems.contains(items.count) {
            faults.append { "\(place): \(items.count) items, not \(rule.numberOfItems)" }
        }
        guard let rule = rule.items else { return faults }
        for (index, item) in items.enumerated() { faults += self.faults(of: item, rule, at: .item(place, index)) }
        return faults
    }

    private func faultsOfChoice(_ value: JSON, _ rule: SchemaRule, _ place: Place) -> [Fault] {
        let faults = rule.choices.map { self.faults(of: value, $0, at: place) }
        let fitting = faults.count { $0.isEmpty }
        if rule.isExclusive ? fitting == 1 : fitting > 0 { return [] }
        if fitting > 1 { return [{ "\(place): fits \(fitting) of oneOf" }] }
        return [{ "\(place): fits no choice: \((faults.min { $0.count < $1.count } ?? []).map { $0() })" }]
    }
}

/// The position of a value in a document, as a JSON pointer (RFC 6901) without escapes.
private indirect enum Place: CustomStringConvertible {
    case root
    case member(Place, String)
    case item(Place, Int)

    var description: String {
        switch self {
        case .root: ""
        case .member(let parent, let name): "\(parent)/\(name)"
        case .item(let parent, let index): "\(parent)/\(index)"
        }
    }
}
