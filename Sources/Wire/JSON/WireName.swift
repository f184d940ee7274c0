/// A word from a list that the service may make longer one day.
///
/// Requests must use a known word; a client keeps unknown ones from a newer service as they are.
public protocol WireName: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible,
    JSONWritable
where RawValue == String {
    /// The words that may be sent.
    static var known: [Self] { get }
    /// Any word, known or not.
    init(rawValue: String)
}

extension WireName {
    /// A word in the source.
    public init(stringLiteral value: String) { self.init(rawValue: value) }
    /// The word itself.
    public var description: String { rawValue }
    /// Writes a string.
    public func write(to writer: inout JSONWriter) { rawValue.write(to: &writer) }
    /// Whether this is one of ``known``.
    public var isKnown: Bool { Self.known.contains(self) }
}
