package import Wire

// A word is the same text in Core and in Wire.

extension WireName {
    package init(_ word: some RawRepresentable<String>) { self.init(rawValue: word.rawValue) }
}

extension RawRepresentable<String> {
    /// Nil for an unknown word.
    package init?(_ word: some WireName) { self.init(rawValue: word.rawValue) }
}
