/// An answer. `Date`, `Content-Length`, `Transfer-Encoding` and `X-Request-Id` are the server's to add.
package struct HTTPResponse: Sendable {
    package var status: Int
    package var headers: [(String, String)]
    package var body: HTTPResponseBody

    package init(status: Int, headers: [(String, String)] = [], body: HTTPResponseBody = .none) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

package enum HTTPResponseBody: Sendable {
    case none
    case bytes([UInt8])
    /// `length` bytes of an open file from `offset`. The server closes the descriptor, whatever happens.
    case file(descriptor: Int32, offset: Int64, length: Int64)
    /// Bytes as they come, chunked. The closure runs after the head is on its way; its return ends the body.
    case stream(@Sendable (ResponseWriter) async -> Void)
    /// `length` bytes as they come. Where the closure throws, or writes fewer, the connection is closed.
    case sized(length: Int64, @Sendable (ResponseWriter) async throws -> Void)

    /// Bytes of the body, where that is known before it is sent.
    var length: Int64? {
        switch self {
        case .none: 0
        case .bytes(let bytes): Int64(bytes.count)
        case .file(_, _, let length), .sized(let length, _): length
        case .stream: nil
        }
    }
}
