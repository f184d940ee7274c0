/// A response. The server adds `Date`, `Content-Length`, `Transfer-Encoding` and `X-Request-Id`.
package struct HTTPResponse: Sendable {
    package var status: Int
    package var headers: [(String, String)]
    package var body: HTTPResponseBody
    /// The time for which the client may acknowledge no byte, or read none of a full receive buffer, before the
    /// connection ends; `nil` for the kernel's limit.
    package var silenceLimit: Duration?

    package init(status: Int, headers: [(String, String)] = [], body: HTTPResponseBody = .none) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

package enum HTTPResponseBody: Sendable {
    case none
    case bytes([UInt8])
    /// `length` bytes of an open file from `offset`. The server closes the descriptor in any case.
    case file(descriptor: Int32, offset: Int64, length: Int64)
    /// A chunked body. The closure runs after the head was sent; its return ends the body. If it throws, the connection
    /// is closed without the last chunk.
    case stream(@Sendable (ResponseWriter) async throws -> Void)
    /// A body of `length` bytes. If the closure throws or writes fewer bytes, the connection is closed.
    case sized(length: Int64, @Sendable (ResponseWriter) async throws -> Void)

    /// The length of the body, if it is known before the body is sent.
    var length: Int64? {
        switch self {
        case .none: 0
        case .bytes(let bytes): Int64(bytes.count)
        case .file(_, _, let length), .sized(let length, _): length
        case .stream: nil
        }
    }
}
