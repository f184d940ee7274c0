/// An option of a program: its name, value and help, from which parsing, help, completions and manual pages are
/// derived.
package struct Option: Sendable {
    /// `-o, --output PATH`.
    package let usage: String
    package let name: String
    package let short: Character?
    /// The name of the value in help texts; `nil` for an option without a value.
    package let value: String?
    package let kind: ValueKind
    package let isRepeated: Bool
    package let help: String

    /// - Parameter usage: `--json`, `--profile NAME`, `-q, --quiet` or `-o, --output PATH`.
    package init(_ usage: String, _ help: String, _ kind: ValueKind = .text, isRepeated: Bool = false) {
        let isShort = !usage.hasPrefix("--")
        let words = usage.dropFirst(isShort ? "-o, --".count : "--".count).split(separator: " ", maxSplits: 1)
        (self.usage, self.help, self.kind, self.isRepeated) = (usage, help, kind, isRepeated)
        (name, value) = (String(words[0]), words.dropFirst().first.map(String.init))
        short = isShort ? usage.dropFirst().first : nil
    }
}

/// A word that names an option, such as `--output`, `--output=PATH`, `-o` or `-oPATH`.
package struct OptionWord {
    /// `--output`; for a short option the whole word.
    package let spelling: String
    package let isLong: Bool
    /// The value in the same word, or the options after a short option without a value.
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
