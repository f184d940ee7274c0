/// What a request came to, for metrics and the access log.
package struct Observation: Sendable {
    package let method: String
    /// As sent, with its query, which may hold secrets.
    package let target: String
    /// The route's pattern; `nil` when there was none.
    package let route: String?
    /// 0 when nothing was answered.
    package let status: Int
    /// From the request line to the last byte handed to the socket.
    package let duration: Duration
    /// Bytes of the body read.
    package let bytesReceived: Int64
    package let bytesSent: Int64
    /// The answer was written piece by piece, as the handler went on.
    package let isStreamed: Bool
    package let requestID: String
}
