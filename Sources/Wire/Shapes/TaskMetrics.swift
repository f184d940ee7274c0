/// How a task went, as `URLSessionTaskMetrics` tells it: the data of `task.didFinishCollectingMetrics`.
public struct TaskMetrics: Sendable, Hashable, JSONWritable, JSONReadable {
    /// From creation to completion.
    public var taskInterval: TaskInterval
    /// How many redirects were followed.
    public var redirectCount: Int64
    /// The requests and their answers, the latest if there were many.
    public var transactionMetrics: [TransactionMetrics]

    /// Makes one.
    public init(taskInterval: TaskInterval, redirectCount: Int64, transactionMetrics: [TransactionMetrics]) {
        self.taskInterval = taskInterval
        self.redirectCount = redirectCount
        self.transactionMetrics = transactionMetrics
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        taskInterval = reader.object("taskInterval")
        redirectCount = reader.integer("redirectCount")
        transactionMetrics = reader.objects("transactionMetrics")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("taskInterval", taskInterval)
            writer.member("redirectCount", redirectCount)
            writer.member("transactionMetrics", transactionMetrics)
        }
    }
}

/// A stretch of time.
public struct TaskInterval: Sendable, Hashable, JSONWritable, JSONReadable {
    /// When it began.
    public var start: String
    /// How many seconds it lasted.
    public var duration: Double

    /// Makes one.
    public init(start: String, duration: Double) {
        self.start = start
        self.duration = duration
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        start = reader.string("start")
        duration = reader.number("duration")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("start", start)
            writer.member("duration", duration)
        }
    }
}

/// One request and its answer, as `URLSessionTaskTransactionMetrics` tells it.
public struct TransactionMetrics: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Where it went.
    public var url: String
    /// The server's status.
    public var statusCode: Int64?
    /// Why it ended early, in words.
    public var error: String?
    /// From which byte of the content on.
    public var offset: Int64
    /// When it began.
    public var fetchStartDate: String
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
    /// Whether the connection was there before.
    public var isReusedConnection: Bool
    /// Whether it went through a proxy.
    public var isProxyConnection: Bool
    /// The service's address.
    public var localAddress: String?
    /// The service's port.
    public var localPort: Int64?
    /// The server's address, or the proxy's.
    public var remoteAddress: String?
    /// The server's port, or the proxy's.
    public var remotePort: Int64?
    /// Bytes.
    public var countOfRequestHeaderBytesSent: Int64
    /// Bytes.
    public var countOfRequestBodyBytesSent: Int64
    /// Bytes.
    public var countOfResponseHeaderBytesReceived: Int64
    /// Bytes.
    public var countOfResponseBodyBytesReceived: Int64

    /// Makes one.
    public init(
        url: String, statusCode: Int64? = nil, error: String? = nil, offset: Int64 = 0, fetchStartDate: String,
        domainLookupStartDate: String? = nil, domainLookupEndDate: String? = nil, connectStartDate: String? = nil,
        secureConnectionStartDate: String? = nil, secureConnectionEndDate: String? = nil, connectEndDate: String? = nil,
        requestStartDate: String? = nil, requestEndDate: String? = nil, responseStartDate: String? = nil,
        responseEndDate: String? = nil, networkProtocolName: String? = nil, negotiatedTLSProtocolVersion: String? = nil,
        negotiatedTLSCipherSuite: String? = nil, isReusedConnection: Bool = false,
        isProxyConnection: Bool = false, localAddress: String? = nil, localPort: Int64? = nil,
        remoteAddress: String? = nil, remotePort: Int64? = nil, countOfRequestHeaderBytesSent: Int64 = 0,
        countOfRequestBodyBytesSent: Int64 = 0, countOfResponseHeaderBytesReceived: Int64 = 0,
        countOfResponseBodyBytesReceived: Int64 = 0
    ) {
        self.url = url
        self.statusCode = statusCode
        self.error = error
        self.offset = offset
        self.fetchStartDate = fetchStartDate
        self.domainLookupStartDate = domainLookupStartDate
        self.domainLookupEndDate = domainLookupEndDate
        self.connectStartDate = connectStartDate
        self.secureConnectionStartDate = secureConnectionStartDate
        self.secureConnectionEndDate = secureConnectionEndDate
        self.connectEndDate = connectEndDate
        self.requestStartDate = requestStartDate
        self.requestEndDate = requestEndDate
        self.responseStartDate = responseStartDate
        self.responseEndDate = responseEndDate
        self.networkProtocolName = networkProtocolName
        self.negotiatedTLSProtocolVersion = negotiatedTLSProtocolVersion
        self.negotiatedTLSCipherSuite = negotiatedTLSCipherSuite
        self.isReusedConnection = isReusedConnection
        self.isProxyConnection = isProxyConnection
        self.localAddress = localAddress
        self.localPort = localPort
        self.remoteAddress = remoteAddress
        self.remotePort = remotePort
        self.countOfRequestHeaderBytesSent = countOfRequestHeaderBytesSent
        self.countOfRequestBodyBytesSent = countOfRequestBodyBytesSent
        self.countOfResponseHeaderBytesReceived = countOfResponseHeaderBytesReceived
        self.countOfResponseBodyBytesReceived = countOfResponseBodyBytesReceived
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        url = reader.string("url")
        statusCode = reader.optionalInteger("statusCode")
        error = reader.optionalString("error")
        offset = reader.integer("offset", default: 0)
        fetchStartDate = reader.string("fetchStartDate")
        domainLookupStartDate = reader.optionalString("domainLookupStartDate")
        domainLookupEndDate = reader.optionalString("domainLookupEndDate")
        connectStartDate = reader.optionalString("connectStartDate")
        secureConnectionStartDate = reader.optionalString("secureConnectionStartDate")
        secureConnectionEndDate = reader.optionalString("secureConnectionEndDate")
        connectEndDate = reader.optionalString("connectEndDate")
        requestStartDate = reader.optionalString("requestStartDate")
        requestEndDate = reader.optionalString("requestEndDate")
        responseStartDate = reader.optionalString("responseStartDate")
        responseEndDate = reader.optionalString("responseEndDate")
        networkProtocolName = reader.optionalString("networkProtocolName")
        negotiatedTLSProtocolVersion = reader.optionalString("negotiatedTLSProtocolVersion")
        negotiatedTLSCipherSuite = reader.optionalString("negotiatedTLSCipherSuite")
        isReusedConnection = reader.bool("isReusedConnection", default: false)
        isProxyConnection = reader.bool("isProxyConnection", default: false)
        localAddress = reader.optionalString("localAddress")
        localPort = reader.optionalInteger("localPort")
        remoteAddress = reader.optionalString("remoteAddress")
        remotePort = reader.optionalInteger("remotePort")
        countOfRequestHeaderBytesSent = reader.integer("countOfRequestHeaderBytesSent", default: 0)
        countOfRequestBodyBytesSent = reader.integer("countOfRequestBodyBytesSent", default: 0)
        countOfResponseHeaderBytesReceived = reader.integer("countOfResponseHeaderBytesReceived", default: 0)
        countOfResponseBodyBytesReceived = reader.integer("countOfResponseBodyBytesReceived", default: 0)
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("url", url)
            writer.member("statusCode", statusCode)
            writer.member("error", error)
            writer.member("offset", offset)
            writer.member("fetchStartDate", fetchStartDate)
            writer.member("domainLookupStartDate", domainLookupStartDate)
            writer.member("domainLookupEndDate", domainLookupEndDate)
            writer.member("connectStartDate", connectStartDate)
            writer.member("secureConnectionStartDate", secureConnectionStartDate)
            writer.member("secureConnectionEndDate", secureConnectionEndDate)
            writer.member("connectEndDate", connectEndDate)
            writer.member("requestStartDate", requestStartDate)
            writer.member("requestEndDate", requestEndDate)
            writer.member("responseStartDate", responseStartDate)
            writer.member("responseEndDate", responseEndDate)
            writer.member("networkProtocolName", networkProtocolName)
            writer.member("negotiatedTLSProtocolVersion", negotiatedTLSProtocolVersion)
            writer.member("negotiatedTLSCipherSuite", negotiatedTLSCipherSuite)
            writer.member("isReusedConnection", isReusedConnection)
            writer.member("isProxyConnection", isProxyConnection)
            writer.member("localAddress", localAddress)
            writer.member("localPort", localPort)
            writer.member("remoteAddress", remoteAddress)
            writer.member("remotePort", remotePort)
            writer.member("countOfRequestHeaderBytesSent", countOfRequestHeaderBytesSent)
            writer.member("countOfRequestBodyBytesSent", countOfRequestBodyBytesSent)
            writer.member("countOfResponseHeaderBytesReceived", countOfResponseHeaderBytesReceived)
            writer.member("countOfResponseBodyBytesReceived", countOfResponseBodyBytesReceived)
        }
    }
}
