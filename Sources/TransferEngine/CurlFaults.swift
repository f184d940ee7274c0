import CCurl
import Glibc

extension TransferFault {
    /// Details that libcurl's code does not include.
    struct Facts {
        var message = ""
        var errno: Int32 = 0
        /// OpenSSL's `X509_V_ERR_…`.
        var verifyResult = 0
        var isRequestSent = false
        var hasHead = false
        var hasProxy = false
        var hasClientCertificate = false

        /// Whether the server rejected the client certificate (RFC 8446 section 6.2). In TLS 1.3 the alert arrives
        /// after the handshake, as an error of reading or sending.
        var isCertificateRefused: Bool {
            let alerts = [
                "unknown ca", "bad certificate", "certificate unknown", "certificate expired", "certificate revoked",
                "unsupported certificate", "access denied",
            ]
            return hasClientCertificate && message.contains("alert") && alerts.contains { message.contains($0) }
        }
    }

    /// The fault for a failed transfer's code. Codes as measured with libcurl 7.88.
    init(_ code: CURLcode, _ facts: Facts) {
        switch code {
        case CURLE_URL_MALFORMAT: self = .badRequest
        case CURLE_COULDNT_RESOLVE_HOST: self = .couldNotResolve
        case CURLE_COULDNT_RESOLVE_PROXY: self = .proxyNotResolved
        case CURLE_COULDNT_CONNECT: self = Self.connecting(facts)
        case CURLE_OPERATION_TIMEDOUT: self = facts.isRequestSent ? .idleTimeout : .connectTimedOut
        case CURLE_PROXY: self = .proxyFailed
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM,
            CURLE_SSL_CLIENTCERT, CURLE_SSL_PINNEDPUBKEYNOTMATCH:
            self = Self.security(code, facts)
        case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_BAD_CONTENT_ENCODING:
            self = .unparsableResponse
        // A header line without an end: libcurl's own buffer fails at 100 KiB.
        case CURLE_OUT_OF_MEMORY where facts.isRequestSent && !facts.hasHead: self = .headersTooLarge
        case CURLE_PARTIAL_FILE: self = .shortBody
        case CURLE_GOT_NOTHING: self = .emptyReply
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR: self = Self.broken(code, facts)
        case CURLE_HTTP2, CURLE_HTTP2_STREAM: self = Self.http2(facts)
        default: self = .other(curlCode: code.rawValue)
        }
    }

    private static func connecting(_ facts: Facts) -> TransferFault {
        switch facts.errno {
        case _ where facts.hasProxy: .proxyFailed
        case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EADDRNOTAVAIL, EAFNOSUPPORT: .noConnectivity
        case ETIMEDOUT: .connectTimedOut
        default: .connectFailed
        }
    }

    private static func security(_ code: CURLcode, _ facts: Facts) -> TransferFault {
        switch code {
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH: return .pinMismatch
        case CURLE_SSL_CLIENTCERT: return .clientCertificateRequired
        case CURLE_SSL_CERTPROBLEM: return .clientCertificateInvalid
        case CURLE_PEER_FAILED_VERIFICATION: return certificate(facts)
        default: break
        }
        if facts.message.contains("certificate required") { return .clientCertificateRequired }
        if facts.isCertificateRefused { return .clientCertificateInvalid }
        let broken = ["SSL_ERROR_SYSCALL", "unexpected eof", "Connection reset", "SSL_ERROR_ZERO_RETURN"]
        return .tlsHandshake(interrupted: facts.errno == ECONNRESET || broken.contains { facts.message.contains($0) })
    }

    /// The fault for OpenSSL's verification result (`x509_vfy.h`). The host name is checked by libcurl.
    private static func certificate(_ facts: Facts) -> TransferFault {
        switch facts.verifyResult {
        case _ where facts.message.contains("subject name") || facts.message.contains("subjectAltName"):
            .certificateWrongHost
        case 9: .certificateNotYetValid
        case 10: .certificateExpired
        case 62: .certificateWrongHost
        default: .certificateUntrusted
        }
    }

    private static func broken(_ code: CURLcode, _ facts: Facts) -> TransferFault {
        let message = facts.message
        if message.contains("certificate required") { return .clientCertificateRequired }
        if facts.isCertificateRefused { return .clientCertificateInvalid }
        if message.contains("response headers") { return .headersTooLarge }
        if message.contains("response 407") { return .proxyAuthenticationRequired }
        if message.contains("CONNECT") { return .proxyFailed }
        if message.contains("chunk") || message.contains("hexadecimal") { return .unparsableResponse }
        switch facts.errno {
        case ENETUNREACH, EHOSTUNREACH, ENETDOWN: return .noConnectivity
        case ETIMEDOUT: return .idleTimeout
        default: return .reset
        }
    }

    private static func http2(_ facts: Facts) -> TransferFault {
        if facts.message.contains("ENHANCE_YOUR_CALM") { return .http2Calm }
        return facts.message.contains("REFUSED_STREAM") || facts.message.contains("GOAWAY")
            ? .http2Refused : .http2Stream
    }
}
