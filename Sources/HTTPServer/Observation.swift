/// The outcome of a request, for metrics and the access log.
package struct Observation: Sendable {
    package let method: String
    /// Path and query as sent; the query may hold secrets.
    package let target: String
    /// The route's pattern; `nil` without a route.
    package let route: String?
    /// 0 without a response.
    package let status: Int
    /// From the request line to the last byte passed to the socket.
    package let duration: Duration
    /// The number of bytes read of the body.
    package let bytesReceived: Int64
    package let bytesSent: Int64
    /// Whether the handler wrote the response piece by piece.
    package let isStreamed: Bool
    package let requestID: String
}
