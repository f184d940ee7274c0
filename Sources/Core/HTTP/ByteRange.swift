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
        guard applies(ifRange, to: entityTag) else { return .whole }
        switch RequestedRange(range) {
        case .whole: return .whole
        case .suffix(0): return .unsatisfiable
        // No Content-Range can express the last bytes of an empty content: the response is the empty whole.
        case .suffix where length == 0: return .whole
        case .suffix(let count): return .part(first: max(0, length - count), last: length - 1)
        case .bytes(let first, let last):
            return first < length ? .part(first: first, last: min(last ?? .max, length - 1)) : .unsatisfiable
        }
    }

    /// Whether an `If-Range` value, if any, lets a range count for a content with this strong tag.
    static func applies(_ ifRange: String?, to entityTag: String?) -> Bool {
        guard let ifRange else { return true }
        guard let entityTag, entityTag.isStrongEntityTag else { return false }
        return ifRange.utf8.elementsEqual(entityTag.utf8)
    }
}

/// A `Range` value without the content that it selects from.
enum RequestedRange: Hashable, Sendable {
    /// No range, an invalid one, or several.
    case whole
    case suffix(Int64)
    /// `last` is `nil` for an open end.
    case bytes(first: Int64, last: Int64?)

    init(_ range: String?) {
        self = .whole
        guard let range else { return }
        var scanner = ByteScanner(trimming: range)
        guard scanner.skip(word: "bytes"), scanner.skip("=") else { return }
        if scanner.skip("-") {
            guard let count = scanner.saturatingInteger(), scanner.isAtEnd else { return }
            self = .suffix(count)
            return
        }
        guard let first = scanner.saturatingInteger(), scanner.skip("-") else { return }
        guard !scanner.isAtEnd else {
            self = .bytes(first: first, last: nil)
            return
        }
        guard let last = scanner.saturatingInteger(), scanner.isAtEnd, last >= first else { return }
        self = .bytes(first: first, last: last)
    }
}

extension ByteScanner {
    /// One or more digits. A number that does not fit becomes the largest value.
    fileprivate mutating func saturatingInteger() -> Int64? {
        guard let peek, peek.isDigit else { return nil }
        return integer() ?? .max
    }
}
