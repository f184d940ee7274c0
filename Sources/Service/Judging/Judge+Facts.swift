import Core
import TransferEngine

extension Judge {
    /// The exchange in the shape that apps read.
    func metrics() -> TransactionMetrics {
        let facts = result.metrics
        func time(_ milliseconds: Int64?) -> Timestamp? { milliseconds.map(Timestamp.init(milliseconds:)) }
        var metrics = TransactionMetrics(
            url: transfer.requestURL.text, fetchStartDate: Timestamp(milliseconds: facts.fetchStart))
        metrics.statusCode = result.head?.status
        if case .failed(let fault) = result.outcome {
            metrics.error =
                FaultMeaning.of(fault, curlCode: result.curlCode, message: "", url: "").error.code.name
        }
        metrics.offset = transfer.resuming?.offset ?? transfer.uploadOffset
        metrics.domainLookupStartDate = time(facts.domainLookupStart)
        metrics.domainLookupEndDate = time(facts.domainLookupEnd)
        metrics.connectStartDate = time(facts.connectStart)
        metrics.secureConnectionStartDate = time(facts.secureConnectionStart)
        metrics.secureConnectionEndDate = time(facts.secureConnectionEnd)
        metrics.connectEndDate = time(facts.connectEnd)
        metrics.requestStartDate = time(facts.requestStart)
        metrics.requestEndDate = time(facts.requestEnd)
        metrics.responseStartDate = time(facts.responseStart)
        metrics.responseEndDate = time(facts.responseEnd)
        metrics.networkProtocolName = facts.networkProtocolName
        metrics.negotiatedTLSProtocolVersion = facts.tlsVersion
        metrics.negotiatedTLSCipherSuite = facts.tlsCipher
        metrics.isReusedConnection = facts.isReusedConnection
        metrics.isProxyConnection = facts.isProxyConnection
        metrics.localAddress = facts.localAddress
        metrics.localPort = facts.localPort
        metrics.remoteAddress = facts.remoteAddress
        metrics.remotePort = facts.remotePort
        metrics.countOfRequestHeaderBytesSent = facts.requestHeaderBytesSent
        metrics.countOfRequestBodyBytesSent = facts.requestBodyBytesSent
        metrics.countOfResponseHeaderBytesReceived = facts.responseHeaderBytesReceived
        metrics.countOfResponseBodyBytesReceived = facts.responseBodyBytesReceived
        return metrics
    }
}

extension TaskResponse {
    init(_ head: ResponseHead, url: ParsedURL) {
        // Cookies are secrets, and kept in the session's store alone.
        var headers = head.fields
        headers.remove("Set-Cookie")
        headers.remove("Set-Cookie2")
        let kept = headers.kept
        let mediaType = kept.fields["Content-Type"].flatMap { MediaType($0)?.essence }
        self.init(
            statusCode: head.status, headers: kept.fields,
            droppedHeaders: kept.droppedNames.isEmpty ? nil : kept.droppedNames, mimeType: mediaType,
            expectedContentLength: ContentLength.parse(head.fields).value,
            suggestedFilename: FileName.suggested(url: url.text, fields: head.fields), url: url.text)
    }
}
