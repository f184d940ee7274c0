package import Formats

/// The metrics of one request and its response, like `URLSessionTaskTransactionMetrics`.
package struct TransactionMetrics: Shape {
    package var url = ""
    package var statusCode: Int?
    package var error: String?
    package var offset: Int64 = 0
    package var fetchStartDate = Timestamp()
    package var domainLookupStartDate: Timestamp?
    package var domainLookupEndDate: Timestamp?
    package var connectStartDate: Timestamp?
    package var secureConnectionStartDate: Timestamp?
    package var secureConnectionEndDate: Timestamp?
    package var connectEndDate: Timestamp?
    package var requestStartDate: Timestamp?
    package var requestEndDate: Timestamp?
    package var responseStartDate: Timestamp?
    package var responseEndDate: Timestamp?
    package var networkProtocolName: String?
    package var negotiatedTLSProtocolVersion: String?
    package var negotiatedTLSCipherSuite: String?
    package var resourceFetchType = ResourceFetchType.networkLoad
    package var isReusedConnection = false
    package var isProxyConnection = false
    package var localAddress: String?
    package var localPort: Int?
    package var remoteAddress: String?
    package var remotePort: Int?
    package var countOfRequestHeaderBytesSent: Int64 = 0
    package var countOfRequestBodyBytesSent: Int64 = 0
    package var countOfResponseHeaderBytesReceived: Int64 = 0
    package var countOfResponseBodyBytesReceived: Int64 = 0

    package enum ResourceFetchType: String, Word, CaseIterable { case networkLoad, localCache }

    package init() {}

    package init(url: String, fetchStartDate: Timestamp) {
        self.url = url
        self.fetchStartDate = fetchStartDate
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("url", &url)
        members.nullable("statusCode", &statusCode)
        members.nullable("error", &error)
        members.member("offset", &offset)
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
        members.member("isReusedConnection", &isReusedConnection)
        members.member("isProxyConnection", &isProxyConnection)
        members.nullable("localAddress", &localAddress)
        members.nullable("localPort", &localPort)
        members.nullable("remoteAddress", &remoteAddress)
        members.nullable("remotePort", &remotePort)
        members.member("countOfRequestHeaderBytesSent", &countOfRequestHeaderBytesSent)
        members.member("countOfRequestBodyBytesSent", &countOfRequestBodyBytesSent)
        members.member("countOfResponseHeaderBytesReceived", &countOfResponseHeaderBytesReceived)
        members.member("countOfResponseBodyBytesReceived", &countOfResponseBodyBytesReceived)
    }
}
