/// What a text must be like.
public struct TextRule: Sendable {
    /// What is wrong with the text and what would be right, or `nil`.
    package let fault: @Sendable (String) -> String?

    /// Makes a rule of a check that says what is wrong.
    public init(_ fault: @escaping @Sendable (String) -> String?) { self.fault = fault }

    /// What is wrong with the text and what would be right, or `nil`.
    public func violation(in text: String) -> String? { fault(text) }

    /// Text of so many bytes in UTF-8.
    public static func length(_ range: ClosedRange<Int>) -> TextRule {
        TextRule { text in
            range.contains(text.utf8.count)
                ? nil : "This must be \(range.lowerBound) to \(range.upperBound) bytes long in UTF-8."
        }
    }

    /// Text without control characters, of so many bytes in UTF-8.
    public static func plain(_ range: ClosedRange<Int>) -> TextRule {
        TextRule { text in
            if let fault = length(range).fault(text) { return fault }
            let isPlain = text.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) }
            return isPlain ? nil : "This must not contain control characters."
        }
    }
}
