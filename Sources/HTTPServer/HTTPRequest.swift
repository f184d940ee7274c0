/// A request as passed to a handler.
package struct HTTPRequest: Sendable {
    package var method: String
    /// Path and query as sent.
    package var rawTarget: String
    /// The path split on `/` as sent, then each part percent-decoded once: `%2F` is a slash inside a segment.
    package var segments: [String]
    /// Decoded once; `+` stays `+`.
    package var query: [(name: String, value: String)]
    package var headers: RequestHeaders
    /// The segments at the positions of `{name}` in the route's pattern.
    package var parameters: [String: String] = [:]
    /// The client's `X-Request-Id` if it is 1–128 of `A-Za-z0-9._-`, otherwise a random one.
    package var requestID: String
    /// The framing of the body, which distinguishes an empty body from none.
    package var framing: BodyFraming
    package var body = HTTPRequestBody.none
    /// Tells a waiting handler that its client has left.
    package var clientGone: ClientGone
}

/// The framing of a request's body (RFC 9112, section 6.3).
package enum BodyFraming: Sendable, Equatable {
    case none
    case length(UInt64)
    case chunked
}

package enum HTTPRequestBody: Sendable {
    case none
    /// A body that the handler has read completely.
    case bytes([UInt8])
    case stream(RequestStream)
}

/// The header fields of a request in the order sent; names are looked up ignoring ASCII case.
package struct RequestHeaders: Sendable {
    package let fields: [(name: String, value: String)]

    package init(_ fields: [(name: String, value: String)]) { self.fields = fields }

    /// The first value of the field.
    package subscript(name: String) -> String? {
        fields.first { equalIgnoringASCIICase($0.name, name) }?.value
    }

    /// All values of the field, in order.
    package func all(_ name: String) -> [String] {
        fields.filter { equalIgnoringASCIICase($0.name, name) }.map(\.value)
    }
}

/// Compares two field names or tokens byte by byte, `A`–`Z` equal to `a`–`z`.
func equalIgnoringASCIICase(_ left: String, _ right: String) -> Bool {
    func lower(_ byte: UInt8) -> UInt8 { byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte }
    guard left.utf8.count == right.utf8.count else { return false }
    return zip(left.utf8, right.utf8).allSatisfy { lower($0) == lower($1) }
}
