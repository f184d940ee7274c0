import Core
import Glibc

extension ExchangeResult {
    /// The cause of the failure, as in `Could not connect to 192.0.2.1:443: connection refused.`
    ///
    /// Contains the address and port, and nothing else of the URL.
    ///
    /// - Returns: `nil` if the fault is not a network fault, and for policy denials, which all have one text.
    package func explanation(of fault: TransferFault) -> String? {
        switch fault {
        case .nameDoesNotExist: "Could not resolve \(host): no such name."
        case .couldNotResolve: "Could not resolve \(host): no answer from the name servers."
        case .proxyNotResolved: "Could not resolve the name of the proxy."
        case .connectFailed: "Could not connect to \(peer): \(systemWords ?? "connection failed")."
        case .connectTimedOut: "Could not connect to \(peer): connection timed out."
        case .noConnectivity: "Could not connect to \(peer): \(systemWords ?? "no route to host")."
        case .proxyFailed: "Could not connect through \(peer): \(systemWords ?? "the proxy refused")."
        case .idleTimeout, .totalTimeout: "\(capitalized(peer)) did not respond in time: timed out."
        case .tlsHandshake(true): "TLS handshake with \(peer) interrupted: \(systemWords ?? "connection closed")."
        case .tlsHandshake(false): "TLS handshake with \(peer) failed: no common version or cipher."
        case .certificateUntrusted: "The certificate of \(peer) is not trusted."
        case .certificateExpired: "The certificate of \(peer) has expired."
        case .certificateNotYetValid: "The certificate of \(peer) is not valid yet."
        case .certificateWrongHost: "The certificate of \(peer) is for another host name."
        case .pinMismatch: "The public key of \(peer) is not one of the pinned keys."
        case .clientCertificateRequired: "\(capitalized(peer)) requires a client certificate."
        case .reset: "Connection to \(peer) lost: \(systemWords ?? "connection reset")."
        case .shortBody: "Connection to \(peer) closed before the end of the body."
        case .emptyReply: "Connection to \(peer) closed without a response."
        case .http2Refused, .http2Calm: "\(capitalized(peer)) refused the request (HTTP/2)."
        case .http2Stream: "Connection to \(peer) lost: HTTP/2 stream reset."
        case .unparsableResponse: "The response of \(peer) cannot be parsed."
        case .twoLengths: "The response of \(peer) has two lengths."
        case .headersTooLarge: "The header of the response of \(peer) is too large."
        case .proxyAuthenticationRequired: "\(capitalized(peer)) requires authentication."
        case .badRequest, .nameNotAsked, .clientCertificateInvalid, .egressDenied, .tooLarge, .prefixMissing, .disk,
            .bodySource, .bodyDamaged, .other:
            nil
        }
    }

    /// The status of the response with its reason and the peer: `127.0.0.1:80 responded with 503 Service Unavailable.`
    package func explanation(ofStatus status: Int) -> String {
        "\(capitalized(peer)) responded with \(StatusText.of(status))."
    }

    private func capitalized(_ text: String) -> String { text.prefix(1).uppercased() + text.dropFirst() }

    private var systemWords: String? {
        switch systemError {
        case ECONNREFUSED: "connection refused"
        case ECONNRESET: "connection reset"
        case EPIPE: "connection closed"
        case ETIMEDOUT: "connection timed out"
        case EHOSTUNREACH: "no route to host"
        case ENETUNREACH: "network is unreachable"
        case ENETDOWN: "network is down"
        case EADDRNOTAVAIL: "no local address"
        case EACCES, EPERM: "permission denied"
        default: nil
        }
    }
}
