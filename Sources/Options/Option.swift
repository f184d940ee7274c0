/// An option of a program: its name, its value and its help, of which parsing, help, completions and manual pages are made.
package struct Option: Sendable {
    package let name: String
    package let short: Character?
    /// The name of the value in help texts; `nil` for an option that is there or not.
    package let value: String?
    package let kind: ValueKind
    package let isRepeated: Bool
    package let help: String

    package init(
        name: String, short: Character? = nil, value: String? = nil, kind: ValueKind = .text, isRepeated: Bool = false,
        help: String
    ) {
        (self.name, self.short, self.value, self.help) = (name, short, value, help)
        (self.kind, self.isRepeated) = (kind, isRepeated)
    }

    /// `-o, --output PATH`.
    package var usage: String { (short.map { "-\($0), " } ?? "") + "--\(name)" + (value.map { " \($0)" } ?? "") }
}

/// A word that names an option, such as `--output`, `--output=PATH`, `-o` or `-oPATH`.
package struct OptionWord {
    /// `--output`; of a short one the whole word.
    package let spelling: String
    package let isLong: Bool
    /// The value in the same word, or of a short option without a value the options behind it.
    package let rest: String?

    package init(_ word: String) {
        isLong = word.hasPrefix("--")
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        spelling = isLong ? parts[0] : word
        rest = isLong ? parts.dropFirst().first : word.count > 2 ? String(word.dropFirst(2)) : nil
    }

    package func names(_ option: Option) -> Bool {
        isLong ? spelling == "--\(option.name)" : option.short.map { spelling.dropFirst().first == $0 } ?? false
    }
}
