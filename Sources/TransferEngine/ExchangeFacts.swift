import CCurl
import Core

extension Exchange {
    /// Asks libcurl what happened, before the handle is given back.
    func noteFacts(of easy: Easy) {
        if request.cookies != nil { cookies = lateCookies + easy.cookies }
        // libcurl's times are microseconds since the handle was added.
        func moment(_ info: CURLINFO) -> Int64? {
            let elapsed = easy.offset(info)
            return elapsed > 0 ? launched + elapsed / 1000 : nil
        }
        metrics.isReusedConnection = isRequestSent && easy.number(CURLINFO_NUM_CONNECTS) == 0
        metrics.isProxyConnection = request.proxy != nil
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
            metrics.requestEnd = requestEnd
        }
        if head != nil { metrics.responseEnd = moment(CURLINFO_TOTAL_TIME_T) }
        metrics.networkProtocolName =
            switch head?.httpVersion {
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
        metrics.responseBodyBytesReceived = bytesReceived
    }

    /// When the last byte of the request was sent; nil for a body that was not sent whole. Two clocks meet here, which a
    /// millisecond may part.
    private var requestEnd: Int64? {
        guard let body, body.length > 0 else { return metrics.requestStart }
        guard let bodySentAt, let start = metrics.requestStart else { return nil }
        return min(max(metrics.fetchStart + bodySentAt - started, start), max(metrics.responseStart ?? .max, start))
    }
}
