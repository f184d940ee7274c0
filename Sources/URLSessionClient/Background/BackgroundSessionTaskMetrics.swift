public import Foundation
import Wire

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// The metrics of a task, as in `URLSessionTaskMetrics`.
public struct BackgroundSessionTaskMetrics: Sendable {
    /// From creation to completion.
    public let taskInterval: DateInterval
    /// The number of followed redirects.
    public let redirectCount: Int
    /// The requests and their responses: attempts, redirects and authentication. The latest ones if there were many.
    public let transactionMetrics: [BackgroundSessionTaskTransactionMetrics]

    init(_ metrics: TaskMetrics, of task: BackgroundSessionTask) {
        let (first, last) = (task.originalRequest, task.currentRequest)
        let response = task.response as? HTTPURLResponse
        let count = metrics.transactionMetrics.count
        let start = Date(rfc3339: metrics.taskInterval.start) ?? .distantPast
        taskInterval = DateInterval(start: start, duration: max(0, metrics.taskInterval.duration))
        redirectCount = Int(metrics.redirectCount)
        transactionMetrics = metrics.transactionMetrics.enumerated().map { place, metrics in
            // A redirect may change the method, and only the methods of the first and the last request are known.
            let method = metrics.url == last?.url?.absoluteString ? last?.httpMethod : first?.httpMethod
            return BackgroundSessionTaskTransactionMetrics(
                metrics, method: method, response: place == count - 1 ? response : nil)
        }
    }
}

/// One request and its response, as in `URLSessionTaskTransactionMetrics`.
///
/// A date is `nil` if the step was not needed, such as a look-up for an existing connection.
public struct BackgroundSessionTaskTransactionMetrics: Sendable {
    /// The URL and method of the request. Its header fields and its body are the task's and are not repeated here.
    public let request: URLRequest
    /// The response, an `HTTPURLResponse`; `nil` if none arrived.
    ///
    /// It has URL, status and protocol. The last one also has the header fields of the task's response.
    public let response: URLResponse?
    /// The URL of the request.
    public let url: URL?
    /// The status of the response.
    public var statusCode: Int? { metrics.statusCode.map { Int($0) } }
    /// The error that ended it early, in words.
    public var error: String? { metrics.error }
    /// The offset of the first requested byte of the content.
    public var offset: Int64 { metrics.offset }

    /// The beginning of the exchange.
    public var fetchStartDate: Date? { Self.date(metrics.fetchStartDate) }
    /// The beginning of the host look-up.
    public var domainLookupStartDate: Date? { Self.date(metrics.domainLookupStartDate) }
    /// The end of the host look-up.
    public var domainLookupEndDate: Date? { Self.date(metrics.domainLookupEndDate) }
    /// The beginning of the connection attempt.
    public var connectStartDate: Date? { Self.date(metrics.connectStartDate) }
    /// The beginning of the TLS handshake.
    public var secureConnectionStartDate: Date? { Self.date(metrics.secureConnectionStartDate) }
    /// The end of the TLS handshake.
    public var secureConnectionEndDate: Date? { Self.date(metrics.secureConnectionEndDate) }
    /// The end of the connection attempt.
    public var connectEndDate: Date? { Self.date(metrics.connectEndDate) }
    /// The time of the first sent byte.
    public var requestStartDate: Date? { Self.date(metrics.requestStartDate) }
    /// The time of the last sent byte.
    public var requestEndDate: Date? { Self.date(metrics.requestEndDate) }
    /// The time of the first received byte.
    public var responseStartDate: Date? { Self.date(metrics.responseStartDate) }
    /// The time of the last received byte.
    public var responseEndDate: Date? { Self.date(metrics.responseEndDate) }

    /// `http/1.1` or `h2`.
    public var networkProtocolName: String? { metrics.networkProtocolName }
    /// `TLSv1.2` or `TLSv1.3`.
    public var negotiatedTLSProtocolVersion: String? { metrics.negotiatedTLSProtocolVersion }
    /// OpenSSL's name of the cipher suite, such as `TLS_AES_256_GCM_SHA384`.
    public var negotiatedTLSCipherSuite: String? { metrics.negotiatedTLSCipherSuite }
    /// The origin of the response.
    public var resourceFetchType: ResourceFetchType {
        metrics.resourceFetchType == .localCache ? .localCache : .networkLoad
    }
    /// Whether the connection existed before.
    public var isReusedConnection: Bool { metrics.isReusedConnection }
    /// Whether a proxy was used.
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
    /// Bytes of the response's head.
    public var countOfResponseHeaderBytesReceived: Int64 { metrics.countOfResponseHeaderBytesReceived }
    /// Bytes of the response's body.
    public var countOfResponseBodyBytesReceived: Int64 { metrics.countOfResponseBodyBytesReceived }

    /// The origin of a response, with Apple's numbers.
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
