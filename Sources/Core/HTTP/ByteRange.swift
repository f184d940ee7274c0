/// The bytes of a content that a request's `Range` selects (RFC 9110 section 14.2).
package enum ByteRange: Hashable, Sendable {
    /// 200 with the whole content: no range, an invalid one, or several.
    case whole
    /// 206 with the bytes from `first` to `last`, both included.
    case part(first: Int64, last: Int64)
    /// 416.
    case unsatisfiable

    /// Selects the bytes to send.
    ///
    /// - Parameters:
    ///   - range: The `Range` value, or `nil`.
    ///   - ifRange: The `If-Range` value, or `nil`. Unless it is byte-equal to `entityTag`, the range is ignored.
    ///   - entityTag: The content's strong tag, with quotes.
    ///   - length: The content's length.
    package static func select(
        range: String?, ifRange: String? = nil, entityTag: String? = nil, length: Int64
    ) -> ByteRange {
        guard let range else { return .whole }
        if let ifRange {
            guard let entityTag, entityTag.isStrongEntityTag, ifRange.utf8.elementsEqual(entityTag.utf8)
            else { return .whole }
        }
        var scanner = ByteScanner(trimming: range)
        guard scanner.skip(word: "bytes"), scanner.skip("=") else { return .whole }
        return scanner.peek == 0x2D ? suffix(&scanner, length) : fromFirst(&scanner, length)
    }

    private static func suffix(_ scanner: inout ByteScanner, _ length: Int64) -> ByteRange {
        guard scanner.skip("-"), let count = scanner.saturatingInteger(), scanner.isAtEnd else { return .whole }
        guard count > 0 else { return .unsatisfiable }
        // No Content-Range can express the last bytes of an empty content: the response is the empty whole.
        guard length > 0 else { return .whole }
        return .part(first: max(0, length - count), last: length - 1)
    }

    private static func fromFirst(_ scanner: inout ByteScanner, _ length: Int64) -> ByteRange {
        guard let first = scanner.saturatingInteger(), scanner.skip("-") else { return .whole }
        var last = Int64.max
        if !scanner.isAtEnd {
            guard let given = scanner.saturatingInteger(), scanner.isAtEnd, given >= first else { return .whole }
            last = given
        }
        return first < length ? .part(first: first, last: min(last, length - 1)) : .unsatisfiable
    }
}

extension ByteScanner {
    /// One or more digits. A number that does not fit becomes the largest value.
    fileprivate mutating func saturatingInteger() -> Int64? {
        guard let peek, peek.isDigit else { return nil }
        return integer() ?? .max
    }
}
