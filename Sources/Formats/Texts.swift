extension BinaryInteger {
    /// The number with its noun: "1 task", "2 tasks".
    ///
    /// - Parameter noun: A singular whose plural ends in "s".
    public func counted(_ noun: String) -> String { "\(self) \(noun)\(self == 1 ? "" : "s")" }
}

extension StringProtocol {
    /// The text without leading and trailing spaces, tabs and line ends.
    package var trimmed: String {
        let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }
        return String(decoding: utf8.drop(while: isSpace).reversed().drop(while: isSpace).reversed(), as: UTF8.self)
    }
}
