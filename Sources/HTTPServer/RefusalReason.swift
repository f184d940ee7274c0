/// The reason for which the server itself responds, before any handler or in its place.
package enum RefusalReason: Error, Sendable, Equatable {
    /// An ambiguous or unparsable head (RFC 9112, section 11). Closes the connection.
    case badFraming(String)
    /// A target that is no path, or contains a forbidden byte.
    case badTarget(String)
    /// A path or query whose percent-encoding does not decode to text without NUL.
    case undecodableTarget(String)
    /// A body on a route that accepts none.
    case unexpectedBody
    case notFound
    /// The path exists, but not with this method; `allow` lists its methods.
    case methodNotAllowed(allow: [String])
    /// The head or the body exceeded its deadline, or arrived too slowly.
    case requestTimeout
    case targetTooLong
    case headTooLarge
    /// An `Expect` other than `100-continue`.
    case expectationFailed
    case shuttingDown
}
