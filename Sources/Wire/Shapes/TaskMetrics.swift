/// How a task went, as `URLSessionTaskMetrics` tells it: the data of `task.didFinishCollectingMetrics`.
public struct TaskMetrics: Shape {
    /// From creation to completion.
    public var taskInterval = TaskInterval()
    /// How many redirects were followed.
    public var redirectCount: Int64 = 0
    /// The requests and their answers, the latest if there were many.
    public var transactionMetrics: [TransactionMetrics] = []

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("taskInterval", &taskInterval)
        members.member("redirectCount", &redirectCount)
        members.member("transactionMetrics", &transactionMetrics)
    }
}

/// A stretch of time.
public struct TaskInterval: Shape {
    /// When it began.
    public var start = ""
    /// How many seconds it lasted.
    public var duration = 0.0

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("start", &start)
        members.member("duration", &duration)
    }
}

/// One request and its answer, as `URLSessionTaskTransactionMetrics` tells it.
public struct TransactionMetrics: Shape {
    /// Where it went.
    public var url = ""
    /// The server's status.
    public var statusCode: Int64?
    /// Why it ended early, in words.
    public var error: String?
    /// From which byte of the content on.
    public var offset: Int64 = 0
    /// When it began.
    public var fetchStartDate = ""
    /// When the look-up began.
    public var domainLookupStartDate: String?
    /// When the look-up ended.
    public var domainLookupEndDate: String?
    /// When the connection was begun.
    public var connectStartDate: String?
    /// When TLS began.
    public var secureConnectionStartDate: String?
    /// When TLS was ready.
    public var secureConnectionEndDate: String?
    /// When the connection was ready.
    public var connectEndDate: String?
    /// When the first byte was sent.
    public var requestStartDate: String?
    /// When the last byte was sent.
    public var requestEndDate: String?
    /// When the first byte came.
    public var responseStartDate: String?
    /// When the last byte came.
    public var responseEndDate: String?
    /// `http/1.1` or `h2`.
    public var networkProtocolName: String?
    /// `TLSv1.2` or `TLSv1.3`.
    public var negotiatedTLSProtocolVersion: String?
    /// As OpenSSL names it, `TLS_AES_256_GCM_SHA384`.
    public var negotiatedTLSCipherSuite: String?
    /// Where the response came from.
    public var resourceFetchType = ResourceFetchType.networkLoad
    /// Whether the connection was there before.
    public var isReusedConnection = false
    /// Whether it went through a proxy.
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
