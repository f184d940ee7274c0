/// A constraint on a text.
public struct TextRule: Sendable {
    /// A description of the violation and of a valid text; `nil` if the text is valid.
    package let fault: @Sendable (String) -> String?

    /// Creates a rule from a check that describes the violation.
    public init(_ fault: @escaping @Sendable (String) -> String?) { self.fault = fault }

    /// A description of the violation and of a valid text; `nil` if the text is valid.
    public func violation(in text: String) -> String? { fault(text) }

    /// A text whose length in UTF-8 bytes is in the range.
    public static func length(_ range: ClosedRange<Int>) -> TextRule {
        TextRule { text in
            range.contains(text.utf8.count)
                ? nil : "This must be \(range.lowerBound) to \(range.upperBound) bytes long in UTF-8."
        }
    }

    /// A text without control characters whose length in UTF-8 bytes is in the range.
    public static func plain(_ range: ClosedRange<Int>) -> TextRule {
        TextRule { text in
            if let fault = length(range).fault(text) { return fault }
            let isPlain = text.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) }
            return isPlain ? nil : "This must not contain control characters."
        }
    }
}
