import CCurl
import Core

extension Exchange.Running {
    /// Asks libcurl what happened, before the handle is given back: what is known of the result before the disk is done.
    func result(_ outcome: ExchangeOutcome, _ code: CURLcode, _ message: String) -> ExchangeResult {
        let answer = receiving.answer
        let metrics = metrics()
        var result = ExchangeResult(
            outcome: outcome, head: answer?.head, side: receiving.side, sideTruncated: receiving.isSideTruncated,
            lengthVerified: answer?.isLengthVerified ?? false, bytesSent: metrics.requestBodyBytesSent,
            bytesReceived: receiving.count, metrics: metrics, curlCode: code.rawValue, curlMessage: message,
            cookies: exchange.request.cookies == nil ? [] : lateCookies + easy.cookies,
            judgement: answer?.judgement, asksForCertificate: asksForCertificate)
        if outcome == .complete, answer == nil { (result.head, result.isOfProxy) = (tunnelHead, true) }
        return result
    }

    private func metrics() -> ExchangeMetrics {
        var metrics = exchange.metrics
        // libcurl's times are microseconds since the handle was added.
        func moment(_ info: CURLINFO) -> Int64? {
            let elapsed = easy.offset(info)
            return elapsed > 0 ? launched + elapsed / 1000 : nil
        }
        metrics.isReusedConnection = isRequestSent && easy.number(CURLINFO_NUM_CONNECTS) == 0
        metrics.isProxyConnection = exchange.request.proxy != nil
        if !metrics.isReusedConnection {
            metrics.connectStart = moment(CURLINFO_NAMELOOKUP_TIME_T)
            metrics.connectEnd = moment(CURLINFO_CONNECT_TIME_T)
            if let end = moment(CURLINFO_APPCONNECT_TIME_T) {
                metrics.secureConnectionStart = metrics.connectEnd
                metrics.secureConnectionEnd = end
                metrics.connectEnd = end
            }
        }
        if isRequestSent {
            metrics.requestStart = moment(CURLINFO_PRETRANSFER_TIME_T)
            metrics.responseStart = moment(CURLINFO_STARTTRANSFER_TIME_T)
            metrics.requestEnd = requestEnd(metrics)
        }
        if receiving.answer != nil { metrics.responseEnd = moment(CURLINFO_TOTAL_TIME_T) }
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
        metrics.requestHeaderBytesSent = Int64(easy.number(CURLINFO_REQUEST_SIZE))
        metrics.requestBodyBytesSent = easy.offset(CURLINFO_SIZE_UPLOAD_T)
        metrics.responseHeaderBytesReceived = Int64(easy.number(CURLINFO_HEADER_SIZE))
        metrics.responseBodyBytesReceived = receiving.count
        return metrics
    }

    /// When the last byte of the request was sent; nil for a body that was not sent whole. Two clocks meet here, which a
    /// millisecond may part.
    private func requestEnd(_ metrics: ExchangeMetrics) -> Int64? {
        guard let body = sending.body, body.length > 0 else { return metrics.requestStart }
        guard let endedAt = sending.endedAt, let start = metrics.requestStart else { return nil }
        let end = metrics.fetchStart + endedAt - exchange.started
        return min(max(end, start), max(metrics.responseStart ?? .max, start))
    }
}
