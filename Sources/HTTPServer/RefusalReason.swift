/// Why the server answers a request itself, before any handler or in its place.
package enum RefusalReason: Error, Sendable, Equatable {
    /// A head that can be read in two ways, or not at all (RFC 9112, section 11). Closes the connection.
    case badFraming(String)
    /// A target that is no path, or has a byte that may stand in none.
    case badTarget(String)
    /// A path or query whose percent-encoding does not decode to text without NUL.
    case undecodableTarget(String)
    /// A body on a route that takes none.
    case unexpectedBody
    case notFound
    /// The path exists, the method does not; the methods that do.
    case methodNotAllowed(allow: [String])
    /// The head or the body took longer than its deadline, or came too slowly.
    case requestTimeout
    case targetTooLong
    case headTooLarge
    /// An `Expect` other than `100-continue`.
    case expectationFailed
    case shuttingDown
}
