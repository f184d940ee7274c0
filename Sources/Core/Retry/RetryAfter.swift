/// The `Retry-After` header field (RFC 9110 section 10.2.3).
package enum RetryAfter {
    package static let shortest = Duration.seconds(1)
    package static let longest = Duration.seconds(86_400)

    /// The wait that a peer requests, between 1 s and `limit`; 1 s for a date in the past, `nil` if invalid.
    package static func parse(_ value: String, now: Timestamp, atMost limit: Duration = longest) -> Duration? {
        var scanner = ByteScanner(trimming: value)
        if let first = scanner.peek, first.isDigit {
            let seconds = scanner.integer()
            guard scanner.isAtEnd else { return nil }
            // A number too large for Int64 is valid and requests a very long wait.
            return clamp(seconds.map { Duration.seconds($0) } ?? limit, limit)
        }
        return HTTPDate.parse(value, now: now).map { clamp($0 - now, limit) }
    }

    /// The wait that a response requests, or `nil`.
    package static func parse(_ fields: HTTPFields, now: Timestamp, atMost limit: Duration = longest) -> Duration? {
        fields["Retry-After"].flatMap { parse($0, now: now, atMost: limit) }
    }

    private static func clamp(_ wait: Duration, _ limit: Duration) -> Duration { min(max(wait, shortest), limit) }
}
