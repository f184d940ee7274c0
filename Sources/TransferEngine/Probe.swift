import CCurl
import Core

/// One request to a server of the operator, outside all transfers.
package enum Probe {
    /// The status of a HEAD request; `nil` without one in time. Blocks.
    ///
    /// libcurl handles names, IPv6 and TLS. The certificate is not verified: it is the service's own, issued for the
    /// name that clients use instead of the requested address, and nothing secret is sent.
    package static func status(of url: String, within limit: Duration) -> Int? {
        guard Curl.isReady, let easy = Easy() else { return nil }
        do {
            try easy.set(CURLOPT_URL, url)
            try easy.set(CURLOPT_PROTOCOLS_STR, "http,https")
            try easy.set(CURLOPT_NOPROXY, "*")
        } catch {
            return nil
        }
        easy.set(CURLOPT_NOBODY, 1)
        easy.set(CURLOPT_NOSIGNAL, 1)
        easy.set(CURLOPT_SSL_VERIFYPEER, 0)
        easy.set(CURLOPT_SSL_VERIFYHOST, 0)
        easy.set(CURLOPT_TIMEOUT_MS, Int(limit.milliseconds))
        guard curl_easy_perform(easy.raw) == CURLE_OK else { return nil }
        return easy.number(CURLINFO_RESPONSE_CODE)
    }
}
