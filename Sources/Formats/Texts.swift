extension BinaryInteger {
    /// The number with its noun: "1 task", "2 tasks".
    ///
    /// - Parameter noun: A singular whose plural ends in "s".
    public func counted(_ noun: String) -> String { "\(self) \(noun)\(self == 1 ? "" : "s")" }
}

extension StringProtocol {
    /// The text without leading and trailing spaces, tabs and line ends.
    @inlinable package var trimmed: String {
        let isText = { (byte: UInt8) in byte != 0x20 && byte != 0x09 && byte != 0x0A && byte != 0x0D }
        guard let first = utf8.firstIndex(where: isText) else { return "" }
        var last = first
        for index in utf8[first...].indices where isText(utf8[index]) { last = index }
        return String(self[first..<utf8.index(after: last)])
    }
}
