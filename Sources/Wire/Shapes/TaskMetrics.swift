/// The metrics of a task, as in `URLSessionTaskMetrics`: the data of `task.didFinishCollectingMetrics`.
public struct TaskMetrics: Shape {
    /// From creation to completion.
    public var taskInterval = TaskInterval()
    /// The number of followed redirects.
    public var redirectCount: Int64 = 0
    /// The requests and their responses; the latest ones if there were many.
    public var transactionMetrics: [TransactionMetrics] = []

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("taskInterval", &taskInterval)
        members.member("redirectCount", &redirectCount)
        members.member("transactionMetrics", &transactionMetrics)
    }
}

/// A period of time.
public struct TaskInterval: Shape {
    /// The beginning.
    public var start = ""
    /// The duration in seconds.
    public var duration = 0.0

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("start", &start)
        members.member("duration", &duration)
    }
}

/// One request and its response, as in `URLSessionTaskTransactionMetrics`.
public struct TransactionMetrics: Shape {
    /// The URL of the request.
    public var url = ""
    /// The status of the response.
    public var statusCode: Int64?
    /// The error that ended it early, in words.
    public var error: String?
    /// The offset of the first requested byte of the content.
    public var offset: Int64 = 0
    /// The beginning of the exchange.
    public var fetchStartDate = ""
    /// The beginning of the host look-up.
    public var domainLookupStartDate: String?
    /// The end of the host look-up.
    public var domainLookupEndDate: String?
    /// The beginning of the connection attempt.
    public var connectStartDate: String?
    /// The beginning of the TLS handshake.
    public var secureConnectionStartDate: String?
    /// The end of the TLS handshake.
    public var secureConnectionEndDate: String?
    /// The end of the connection attempt.
    public var connectEndDate: String?
    /// The time of the first sent byte.
    public var requestStartDate: String?
    /// The time of the last sent byte.
    public var requestEndDate: String?
    /// The time of the first received byte.
    public var responseStartDate: String?
    /// The time of the last received byte.
    public var responseEndDate: String?
    /// `http/1.1` or `h2`.
    public var networkProtocolName: String?
    /// `TLSv1.2` or `TLSv1.3`.
    public var negotiatedTLSProtocolVersion: String?
    /// OpenSSL's name of the cipher suite, such as `TLS_AES_256_GCM_SHA384`.
    public var negotiatedTLSCipherSuite: String?
    /// The origin of the response.
    public var resourceFetchType = ResourceFetchType.networkLoad
    /// Whether the connection existed before.
    public var isReusedConnection = false
    /// Whether a proxy was used.
    public var isProxyConnection = false
    /// The service's address.
    public var localAddress: String?
    /// The service's port.
    public var localPort: Int64?
    /// The server's address, or the proxy's.
    public var remoteAddress: String?
    /// The server's port, or the proxy's.
    public var remotePort: Int64?
    /// Bytes.
    public var countOfRequestHeaderBytesSent: Int64 = 0
    /// Bytes.
    public var countOfRequestBodyBytesSent: Int64 = 0
    /// Bytes.
    public var countOfResponseHeaderBytesReceived: Int64 = 0
    /// Bytes.
    public var countOfResponseBodyBytesReceived: Int64 = 0

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("url", &url)
        members.nullable("statusCode", &statusCode)
        members.nullable("error", &error)
        members.defaulted("offset", &offset)
        members.member("fetchStartDate", &fetchStartDate)
        members.nullable("domainLookupStartDate", &domainLookupStartDate)
        members.nullable("domainLookupEndDate", &domainLookupEndDate)
        members.nullable("connectStartDate", &connectStartDate)
        members.nullable("secureConnectionStartDate", &secureConnectionStartDate)
        members.nullable("secureConnectionEndDate", &secureConnectionEndDate)
        members.nullable("connectEndDate", &connectEndDate)
        members.nullable("requestStartDate", &requestStartDate)
        members.nullable("requestEndDate", &requestEndDate)
        members.nullable("responseStartDate", &responseStartDate)
        members.nullable("responseEndDate", &responseEndDate)
        members.nullable("networkProtocolName", &networkProtocolName)
        members.nullable("negotiatedTLSProtocolVersion", &negotiatedTLSProtocolVersion)
        members.nullable("negotiatedTLSCipherSuite", &negotiatedTLSCipherSuite)
        members.sparse("resourceFetchType", &resourceFetchType, unless: .networkLoad)
        members.defaulted("isReusedConnection", &isReusedConnection)
        members.defaulted("isProxyConnection", &isProxyConnection)
        members.nullable("localAddress", &localAddress)
        members.nullable("localPort", &localPort)
        members.nullable("remoteAddress", &remoteAddress)
        members.nullable("remotePort", &remotePort)
        members.defaulted("countOfRequestHeaderBytesSent", &countOfRequestHeaderBytesSent)
        members.defaulted("countOfRequestBodyBytesSent", &countOfRequestBodyBytesSent)
        members.defaulted("countOfResponseHeaderBytesReceived", &countOfResponseHeaderBytesReceived)
        members.defaulted("countOfResponseBodyBytesReceived", &countOfResponseBodyBytesReceived)
    }
}
