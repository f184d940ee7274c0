/// Names and texts in the order in which they were given, such as header fields and metadata.
public struct StringMap: Sendable, Hashable, JSONWritable, ExpressibleByDictionaryLiteral, Sequence {
    /// One name and its text.
    public struct Pair: Sendable, Hashable {
        /// The name.
        public var name: String
        /// The text.
        public var value: String

        /// Makes a pair.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The pairs in order. The names differ.
    public private(set) var pairs: [Pair] = []

    /// Makes an empty map.
    public init() {}

    /// Makes a map of a literal.
    public init(dictionaryLiteral elements: (String, String)...) {
        for (name, value) in elements { self[name] = value }
    }

    /// Makes a map of pairs; of several with one name the last counts.
    public init(_ pairs: some Sequence<(name: String, value: String)>) {
        for (name, value) in pairs { self[name] = value }
    }

    /// The text under a name, in exactly this spelling.
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

    /// The text of a header field: letters of either case are the same.
    public func header(_ name: String) -> String? {
        let name = name.lowercased()
        return pairs.first { $0.name.lowercased() == name }?.value
    }

    /// Whether there is nothing in it.
    public var isEmpty: Bool { pairs.isEmpty }
    /// How many pairs there are.
    public var count: Int { pairs.count }

    /// The pairs, one after the other.
    public func makeIterator() -> IndexingIterator<[Pair]> { pairs.makeIterator() }

    /// Writes an object of strings.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            for pair in pairs { writer.member(pair.name, pair.value) }
        }
    }

    /// Adds a pair whose name is known to be new.
    mutating func append(_ name: String, _ value: String) { pairs.append(Pair(name: name, value: value)) }
}
