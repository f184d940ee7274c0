/// A word of a list that later versions of the service may extend.
///
/// Requests must use a known word. Clients keep unknown words of a newer service.
public protocol WireName: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible,
    MemberValue
where RawValue == String {
    /// The words that requests may use.
    static var known: [Self] { get }
    /// Any word, known or not.
    init(rawValue: String)
}

extension WireName {
    /// The empty word of a blank value.
    public init() { self.init(rawValue: "") }
    public init(stringLiteral value: String) { self.init(rawValue: value) }
    public var description: String { rawValue }
    public func write(to writer: inout JSONWriter) { rawValue.write(to: &writer) }
    /// Whether this is one of ``known``.
    public var isKnown: Bool { Self.known.contains(self) }
}

extension WireName {
    public static var kind: String { String.kind }
    public static var kinds: String? { String.kinds }

    public static func read(_ json: JSON, _ rule: Rule?, _ position: JSONPosition) -> Self? {
        guard let text = json.stringValue else { return position.reject(kind, json) }
        let word = Self(rawValue: text)
        if position.mode == .strict, !word.isKnown {
            position.report("This must be one of: " + known.map(\.rawValue).joined(separator: ", ") + ".")
        }
        return word
    }
}

extension ListRule where Element: WireName {
    /// A list of distinct words, with the given number of elements.
    static func words(_ count: ClosedRange<Int>) -> Self { distinct(count: count, "No word may occur twice.") }
}
