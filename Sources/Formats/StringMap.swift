/// Names and texts in their original order, such as header fields and metadata.
public struct StringMap: Sendable, Hashable, MemberValue, ExpressibleByDictionaryLiteral, Sequence {
    /// One name and its text.
    public struct Pair: Sendable, Hashable {
        public var name: String
        public var value: String
    }

    /// The pairs in order. Their names differ.
    public private(set) var pairs: [Pair] = []

    public init() {}

    public init(dictionaryLiteral elements: (String, String)...) {
        for (name, value) in elements { self[name] = value }
    }

    /// Creates a map of pairs; of several pairs with one name the last counts.
    public init(_ pairs: some Sequence<(name: String, value: String)>) {
        for (name, value) in pairs { self[name] = value }
    }

    /// The text of a name with exactly this spelling.
    public subscript(name: String) -> String? {
        get { pairs.first { $0.name == name }?.value }
        set {
            let index = pairs.firstIndex { $0.name == name }
            switch (index, newValue) {
            case (let index?, let value?): pairs[index].value = value
            case (let index?, nil): pairs.remove(at: index)
            case (nil, let value?): pairs.append(Pair(name: name, value: value))
            case (nil, nil): break
            }
        }
    }

    /// The text of a header field, ignoring ASCII case.
    public func header(_ name: String) -> String? {
        let name = name.lowercased()
        return pairs.first { $0.name.lowercased() == name }?.value
    }

    public var isEmpty: Bool { pairs.isEmpty }
    public var count: Int { pairs.count }
    public func makeIterator() -> IndexingIterator<[Pair]> { pairs.makeIterator() }

    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            for pair in pairs { writer.member(pair.name, pair.value) }
        }
    }

    /// Appends a pair whose name is known to be new.
    package mutating func append(_ name: String, _ value: String) { pairs.append(Pair(name: name, value: value)) }
}

extension StringMap {
    /// The constraints on names and texts, their number, and the whole.
    public struct Rule: Sendable {
        let names: TextRule
        let values: TextRule
        let maximumCount: Int
        let check: @Sendable (StringMap, JSONPosition) -> Void

        package init(
            names: TextRule, values: TextRule, maximumCount: Int,
            check: @escaping @Sendable (StringMap, JSONPosition) -> Void = { _, _ in }
        ) {
            self.names = names
            self.values = values
            self.maximumCount = maximumCount
            self.check = check
        }
    }

    public static var kind: String { "an object of strings" }

    public static func read(_ json: JSON, _ rule: Rule?, _ position: JSONPosition) -> StringMap? {
        guard let members = json.members else { return position.reject(kind, json) }
        if let most = rule?.maximumCount, members.count > most {
            position.report("There may be at most \(most.counted("member")); there are \(members.count).")
            return nil
        }
        let path = position.path
        var map = StringMap()
        for member in members {
            let value = position.element(.name(member.name), in: path)
            guard let text = member.value.stringValue else {
                let _: String? = value.reject(String.kind, member.value)
                continue
            }
            if let rule, let detail = rule.names.fault(member.name) ?? rule.values.fault(text) { value.report(detail) }
            // Unicode knows several forms of one name, of which a dictionary keeps one.
            if rule != nil, map[member.name] != nil { value.report("This name stands here in another form already.") }
            map.append(member.name, text)
        }
        rule?.check(map, position)
        return map
    }
}
