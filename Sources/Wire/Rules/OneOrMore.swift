/// One or more alternative words: a word alone, or an array of words. The service refuses an empty array, so that an
/// empty filter cannot select everything.
public struct OneOrMore<Word: WireName>: MemberValue, Hashable, Sendable, ExpressibleByArrayLiteral {
    public let words: [Word]

    public init(_ words: [Word]) { self.words = words }

    public init(arrayLiteral words: Word...) { self.init(words) }

    public static var kind: String { "\(Word.kind) or an array" }

    public static func read(_ json: JSON, _ rule: Never?, _ position: JSONPosition) -> Self? {
        if json.stringValue != nil { return Word.read(json, nil, position).map { [$0] } }
        guard json.elements != nil else { return position.reject(kind, json) }
        return [Word].read(json, .count(1...Word.known.count), position).map { Self($0) }
    }

    public func write(to writer: inout JSONWriter) {
        if words.count == 1 { words[0].write(to: &writer) } else { words.write(to: &writer) }
    }
}
