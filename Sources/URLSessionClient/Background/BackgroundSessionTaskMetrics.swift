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
    public let statusCode: Int?
    /// Why it ended early, in words.
    public let error: String?
    /// From which byte of the content on.
    public let offset: Int64

    /// When it began.
    public let fetchStartDate: Date?
    /// When the look-up of the name began.
    public let domainLookupStartDate: Date?
    /// When the look-up of the name ended.
    public let domainLookupEndDate: Date?
    /// When the connection was begun.
    public let connectStartDate: Date?
    /// When TLS began.
    public let secureConnectionStartDate: Date?
    /// When TLS was ready.
    public let secureConnectionEndDate: Date?
    /// When the connection was ready.
    public let connectEndDate: Date?
    /// When the first byte was sent.
    public let requestStartDate: Date?
    /// When the last byte was sent.
    public let requestEndDate: Date?
    /// When the first byte came.
    public let responseStartDate: Date?
    /// When the last byte came.
    public let responseEndDate: Date?

    /// `http/1.1` or `h2`.
    public let networkProtocolName: String?
    /// `TLSv1.2` or `TLSv1.3`.
    public let negotiatedTLSProtocolVersion: String?
    /// As OpenSSL names it, `TLS_AES_256_GCM_SHA384`.
    public let negotiatedTLSCipherSuite: String?
    /// Where the response came from.
    public let resourceFetchType: ResourceFetchType
    /// Whether the connection was there before.
    public let isReusedConnection: Bool
    /// Whether it went through a proxy.
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
    /// Bytes of the answer's head.
    public let countOfResponseHeaderBytesReceived: Int64
    /// Bytes of the answer's body.
    public let countOfResponseBodyBytesReceived: Int64

    /// Where a response comes from, as Apple numbers it.
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
        resourceFetchType = metrics.resourceFetchType == .localCache ? .localCache : .networkLoad
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
