extension BinaryInteger {
    /// The number with its noun: "1 task", "2 tasks".
    ///
    /// - Parameter noun: A singular whose plural ends in "s".
    public func counted(_ noun: String) -> String { "\(self) \(noun)\(self == 1 ? "" : "s")" }
}
