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
    public let statusCode: Int?
    /// The error that ended it early, in words.
    public let error: String?
    /// The offset of the first requested byte of the content.
    public let offset: Int64

    /// The beginning of the exchange.
    public let fetchStartDate: Date?
    /// The beginning of the host look-up.
    public let domainLookupStartDate: Date?
    /// The end of the host look-up.
    public let domainLookupEndDate: Date?
    /// The beginning of the connection attempt.
    public let connectStartDate: Date?
    /// The beginning of the TLS handshake.
    public let secureConnectionStartDate: Date?
    /// The end of the TLS handshake.
    public let secureConnectionEndDate: Date?
    /// The end of the connection attempt.
    public let connectEndDate: Date?
    /// The time of the first sent byte.
    public let requestStartDate: Date?
    /// The time of the last sent byte.
    public let requestEndDate: Date?
    /// The time of the first received byte.
    public let responseStartDate: Date?
    /// The time of the last received byte.
    public let responseEndDate: Date?

    /// `http/1.1` or `h2`.
    public let networkProtocolName: String?
    /// `TLSv1.2` or `TLSv1.3`.
    public let negotiatedTLSProtocolVersion: String?
    /// OpenSSL's name of the cipher suite, such as `TLS_AES_256_GCM_SHA384`.
    public let negotiatedTLSCipherSuite: String?
    /// The origin of the response. The service has no cache.
    public var resourceFetchType: ResourceFetchType { .networkLoad }
    /// Whether the connection existed before.
    public let isReusedConnection: Bool
    /// Whether a proxy was used.
    public let isProxyConnection: Bool
    /// The service's address.
    public let localAddress: String?
    /// The service's port.
    public let localPort: Int?
    /// The server's address, or the proxy's.
    public let remoteAddress: String?
    /// The server's port, or the proxy's.
    public let remotePort: Int?

    /// Bytes of the request's head.
    public let countOfRequestHeaderBytesSent: Int64
    /// Bytes of the request's body.
    public let countOfRequestBodyBytesSent: Int64
    /// Bytes of the response's head.
    public let countOfResponseHeaderBytesReceived: Int64
    /// Bytes of the response's body.
    public let countOfResponseBodyBytesReceived: Int64

    /// The origin of a response, with Apple's numbers.
    public enum ResourceFetchType: Int, Sendable {
        case unknown, networkLoad, serverPush, localCache
    }

    init(_ metrics: TransactionMetrics, method: String?, response: HTTPURLResponse?) {
        func date(_ text: String?) -> Date? { text.flatMap { Date(rfc3339: $0) } }
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
        statusCode = metrics.statusCode.map { Int($0) }
        error = metrics.error
        offset = metrics.offset
        fetchStartDate = date(metrics.fetchStartDate)
        domainLookupStartDate = date(metrics.domainLookupStartDate)
        domainLookupEndDate = date(metrics.domainLookupEndDate)
        connectStartDate = date(metrics.connectStartDate)
        secureConnectionStartDate = date(metrics.secureConnectionStartDate)
        secureConnectionEndDate = date(metrics.secureConnectionEndDate)
        connectEndDate = date(metrics.connectEndDate)
        requestStartDate = date(metrics.requestStartDate)
        requestEndDate = date(metrics.requestEndDate)
        responseStartDate = date(metrics.responseStartDate)
        responseEndDate = date(metrics.responseEndDate)
        networkProtocolName = metrics.networkProtocolName
        negotiatedTLSProtocolVersion = metrics.negotiatedTLSProtocolVersion
        negotiatedTLSCipherSuite = metrics.negotiatedTLSCipherSuite
        isReusedConnection = metrics.isReusedConnection
        isProxyConnection = metrics.isProxyConnection
        localAddress = metrics.localAddress
        localPort = metrics.localPort.map { Int($0) }
        remoteAddress = metrics.remoteAddress
        remotePort = metrics.remotePort.map { Int($0) }
        countOfRequestHeaderBytesSent = metrics.countOfRequestHeaderBytesSent
        countOfRequestBodyBytesSent = metrics.countOfRequestBodyBytesSent
        countOfResponseHeaderBytesReceived = metrics.countOfResponseHeaderBytesReceived
        countOfResponseBodyBytesReceived = metrics.countOfResponseBodyBytesReceived
    }
}
