/// The `Content-Range` header field in bytes (RFC 9110 section 14.4).
package enum ContentRange: Hashable, Sendable {
    /// `bytes first-last/total`; `total` is `nil` for `*`.
    case part(first: Int64, last: Int64, total: Int64?)
    /// `bytes */total`, the form of a 416.
    case unsatisfied(total: Int64)

    /// Strict: unit bytes, one space, first ≤ last < total, no further characters.
    package init?(_ text: String) {
        var scanner = ByteScanner(trimming: text)
        guard scanner.skip(word: "bytes"), scanner.skip(" ") else { return nil }
        if scanner.skip("*") {
            guard scanner.skip("/"), let total = scanner.integer(), scanner.isAtEnd else { return nil }
            self = .unsatisfied(total: total)
            return
        }
        guard let first = scanner.integer(), scanner.skip("-"), let last = scanner.integer(), first <= last,
            scanner.skip("/")
        else { return nil }
        if scanner.skip("*") {
            guard scanner.isAtEnd else { return nil }
            self = .part(first: first, last: last, total: nil)
            return
        }
        guard let total = scanner.integer(), last < total, scanner.isAtEnd else { return nil }
        self = .part(first: first, last: last, total: total)
    }

    /// The value of a field that must occur exactly once.
    package init?(_ fields: HTTPFields) {
        let values = fields.values("Content-Range")
        guard values.count == 1 else { return nil }
        self.init(values[0])
    }
}
