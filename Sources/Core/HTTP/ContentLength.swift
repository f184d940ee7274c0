/// The length that a response declares (RFC 9110 section 8.6).
package enum ContentLength: Hashable, Sendable {
    case none
    case length(Int64)
    /// Two different values, a list, a sign or a number that does not fit: the response cannot be parsed (-1017).
    case invalid

    package static func parse(_ fields: HTTPFields) -> ContentLength {
        let lengths = fields.values("Content-Length").map { value -> Int64? in
            var scanner = ByteScanner(trimming: value)
            let length = scanner.integer()
            return scanner.isAtEnd ? length : nil
        }
        guard let first = lengths.first else { return .none }
        guard let first, lengths.allSatisfy({ $0 == first }) else { return .invalid }
        return .length(first)
    }

    /// The length, if a valid one is declared.
    package var value: Int64? { if case .length(let length) = self { length } else { nil } }
}
