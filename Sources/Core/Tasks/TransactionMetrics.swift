/// One request and its answer, in the shape of `URLSessionTaskTransactionMetrics`.
package struct TransactionMetrics: Hashable, Sendable, Codable {
    package var url: String
    package var statusCode: Int?
    package var error: String?
    package var offset: Int64 = 0
    package var fetchStartDate: Timestamp
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

    package init(url: String, fetchStartDate: Timestamp) {
        self.url = url
        self.fetchStartDate = fetchStartDate
    }
}
