import CCurl
import Core

extension Exchange.Running {
    /// Queries libcurl before the handle is returned: the part of the result that does not depend on the disk.
    func result(_ outcome: ExchangeOutcome, _ code: CURLcode, _ message: String) -> ExchangeResult {
        let answer = receiving.answer
        var result = ExchangeResult(
            outcome: outcome, head: answer?.head, side: receiving.side, sideTruncated: receiving.isSideTruncated,
            lengthVerified: answer?.isLengthVerified ?? false, metrics: metrics(), curlCode: code.rawValue,
            curlMessage: message,
            cookies: exchange.request.cookies == nil ? [] : lateCookies + easy.cookies,
            judgement: answer?.judgement, asksForCertificate: asksForCertificate)
        if outcome == .complete, answer == nil { (result.head, result.isOfProxy) = (tunnelHead, true) }
        return result
    }

    private func metrics() -> TransactionMetrics {
        var metrics = exchange.metrics
        // libcurl's times are microseconds since the handle was added.
        func moment(_ info: CURLINFO) -> Timestamp? {
            let elapsed = easy.offset(info)
            return elapsed > 0 ? Timestamp(milliseconds: launched + elapsed / 1000) : nil
        }
        metrics.isReusedConnection = isRequestSent && easy.number(CURLINFO_NUM_CONNECTS) == 0
        metrics.isProxyConnection = exchange.request.proxy != nil
        if !metrics.isReusedConnection {
            metrics.connectStartDate = moment(CURLINFO_NAMELOOKUP_TIME_T)
            metrics.connectEndDate = moment(CURLINFO_CONNECT_TIME_T)
            if let end = moment(CURLINFO_APPCONNECT_TIME_T) {
                metrics.secureConnectionStartDate = metrics.connectEndDate
                metrics.secureConnectionEndDate = end
                metrics.connectEndDate = end
            }
        }
        if isRequestSent {
            metrics.requestStartDate = moment(CURLINFO_PRETRANSFER_TIME_T)
            metrics.responseStartDate = moment(CURLINFO_STARTTRANSFER_TIME_T)
            metrics.requestEndDate = requestEnd(metrics)
        }
        if receiving.answer != nil { metrics.responseEndDate = moment(CURLINFO_TOTAL_TIME_T) }
        metrics.networkProtocolName =
            switch receiving.answer?.head.httpVersion {
            case "2": "h2"
            case let version?: "http/\(version)"
            case nil: nil
            }
        metrics.remoteAddress = easy.string(CURLINFO_PRIMARY_IP)
        metrics.localAddress = easy.string(CURLINFO_LOCAL_IP)
        if metrics.remoteAddress != nil { metrics.remotePort = easy.number(CURLINFO_PRIMARY_PORT) }
        if metrics.localAddress != nil { metrics.localPort = easy.number(CURLINFO_LOCAL_PORT) }
        metrics.countOfRequestHeaderBytesSent = Int64(easy.number(CURLINFO_REQUEST_SIZE))
        metrics.countOfRequestBodyBytesSent = easy.offset(CURLINFO_SIZE_UPLOAD_T)
        metrics.countOfResponseHeaderBytesReceived = Int64(easy.number(CURLINFO_HEADER_SIZE))
        metrics.countOfResponseBodyBytesReceived = receiving.count
        return metrics
    }

    /// When the last byte of the request was sent; `nil` if the body was not sent completely. libcurl's clock may
    /// differ from the engine's by a millisecond.
    private func requestEnd(_ metrics: TransactionMetrics) -> Timestamp? {
        guard let body = sending.body, body.length > 0 else { return metrics.requestStartDate }
        guard let endedAt = sending.endedAt, let start = metrics.requestStartDate else { return nil }
        let end = max(metrics.fetchStartDate + .milliseconds(endedAt - exchange.started), start)
        return metrics.responseStartDate.map { min(end, max($0, start)) } ?? end
    }
}
