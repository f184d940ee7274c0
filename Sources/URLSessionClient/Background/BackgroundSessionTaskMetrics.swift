public import Foundation
import Wire

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// How a task went, as `URLSessionTaskMetrics` tells it.
public struct BackgroundSessionTaskMetrics: Sendable {
    /// From creation to completion.
    public let taskInterval: DateInterval
    /// How many redirects were followed.
    public let redirectCount: Int
    /// The requests and their answers: attempts, redirects and authentication. The latest, if there were many.
    public let transactionMetrics: [BackgroundSessionTaskTransactionMetrics]

    init(_ metrics: TaskMetrics, of task: BackgroundSessionTask) {
        let (first, last) = (task.originalRequest, task.currentRequest)
        let response = task.response as? HTTPURLResponse
        let count = metrics.transactionMetrics.count
        let start = Date(rfc3339: metrics.taskInterval.start) ?? .distantPast
        taskInterval = DateInterval(start: start, duration: max(0, metrics.taskInterval.duration))
        redirectCount = Int(metrics.redirectCount)
        transactionMetrics = metrics.transactionMetrics.enumerated().map { place, metrics in
            // A redirect may change the method, and only that of the first and of the last request are known.
            let method = metrics.url == last?.url?.absoluteString ? last?.httpMethod : first?.httpMethod
            return BackgroundSessionTaskTransactionMetrics(
                metrics, method: method, response: place == count - 1 ? response : nil)
        }
    }
}

/// One request and its answer, as `URLSessionTaskTransactionMetrics` tells it.
///
/// A date is nil where the step was not needed, such as a look-up on a connection that was there before.
public struct BackgroundSessionTaskTransactionMetrics: Sendable {
    /// The request: URL and method. Its header fields and its body are those of the task and are not repeated here.
    public let request: URLRequest
    /// The response, an `HTTPURLResponse`; `nil` where none came.
    ///
    /// It has URL, status and protocol. The last one has the header fields of the task's response besides.
    public let response: URLResponse?
    /// Where it went.
    public let url: URL?
    /// The server's status.
    public var statusCode: Int? { metrics.statusCode.map { Int($0) } }
    /// Why it ended early, in words.
    public var error: String? { metrics.error }
    /// From which byte of the content on.
    public var offset: Int64 { metrics.offset }

    /// When it began.
    public var fetchStartDate: Date? { Self.date(metrics.fetchStartDate) }
    /// When the look-up of the name began.
    public var domainLookupStartDate: Date? { Self.date(metrics.domainLookupStartDate) }
    /// When the look-up of the name ended.
    public var domainLookupEndDate: Date? { Self.date(metrics.domainLookupEndDate) }
    /// When the connection was begun.
    public var connectStartDate: Date? { Self.date(metrics.connectStartDate) }
    /// When TLS began.
    public var secureConnectionStartDate: Date? { Self.date(metrics.secureConnectionStartDate) }
    /// When TLS was ready.
    public var secureConnectionEndDate: Date? { Self.date(metrics.secureConnectionEndDate) }
    /// When the connection was ready.
    public var connectEndDate: Date? { Self.date(metrics.connectEndDate) }
    /// When the first byte was sent.
    public var requestStartDate: Date? { Self.date(metrics.requestStartDate) }
    /// When the last byte was sent.
    public var requestEndDate: Date? { Self.date(metrics.requestEndDate) }
    /// When the first byte came.
    public var responseStartDate: Date? { Self.date(metrics.responseStartDate) }
    /// When the last byte came.
    public var responseEndDate: Date? { Self.date(metrics.responseEndDate) }

    /// `http/1.1` or `h2`.
    public var networkProtocolName: String? { metrics.networkProtocolName }
    /// `TLSv1.2` or `TLSv1.3`.
    public var negotiatedTLSProtocolVersion: String? { metrics.negotiatedTLSProtocolVersion }
    /// As OpenSSL names it, `TLS_AES_256_GCM_SHA384`.
    public var negotiatedTLSCipherSuite: String? { metrics.negotiatedTLSCipherSuite }
    /// Where the response came from. The service caches none.
    public var resourceFetchType: ResourceFetchType { .networkLoad }
    /// Whether the connection was there before.
    public var isReusedConnection: Bool { metrics.isReusedConnection }
    /// Whether it went through a proxy.
    public var isProxyConnection: Bool { metrics.isProxyConnection }
    /// The service's address.
    public var localAddress: String? { metrics.localAddress }
    /// The service's port.
    public var localPort: Int? { metrics.localPort.map { Int($0) } }
    /// The server's address, or the proxy's.
    public var remoteAddress: String? { metrics.remoteAddress }
    /// The server's port, or the proxy's.
    public var remotePort: Int? { metrics.remotePort.map { Int($0) } }

    /// Bytes of the request's head.
    public var countOfRequestHeaderBytesSent: Int64 { metrics.countOfRequestHeaderBytesSent }
    /// Bytes of the request's body.
    public var countOfRequestBodyBytesSent: Int64 { metrics.countOfRequestBodyBytesSent }
    /// Bytes of the answer's head.
    public var countOfResponseHeaderBytesReceived: Int64 { metrics.countOfResponseHeaderBytesReceived }
    /// Bytes of the answer's body.
    public var countOfResponseBodyBytesReceived: Int64 { metrics.countOfResponseBodyBytesReceived }

    /// Where a response comes from, as Apple numbers it.
    public enum ResourceFetchType: Int, Sendable {
        case unknown, networkLoad, serverPush, localCache
    }

    private let metrics: TransactionMetrics

    init(_ metrics: TransactionMetrics, method: String?, response: HTTPURLResponse?) {
        self.metrics = metrics
        let place = URL(string: metrics.url)
        var request = URLRequest(url: place ?? URL(filePath: "/"))
        request.httpMethod = method ?? "GET"
        self.request = request
        self.response = metrics.statusCode.flatMap { status in
            let status = Int(status)
            let fields = response?.statusCode == status ? response?.allHeaderFields as? [String: String] : nil
            return HTTPURLResponse(
                url: request.url ?? URL(filePath: "/"), statusCode: status,
                httpVersion: metrics.networkProtocolName == "h2" ? "HTTP/2" : "HTTP/1.1", headerFields: fields)
        }
        url = place
    }

    private static func date(_ text: String?) -> Date? { text.flatMap { Date(rfc3339: $0) } }
}
