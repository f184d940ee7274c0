/// Why an exchange failed. Says what happened, not what to do about it.
package enum TransferFault: Error, Hashable, Sendable {
    /// The URL, or a method or header field that cannot be sent.
    case badRequest
    /// The resolver says with authority that there is no such name, or no address for it.
    case nameDoesNotExist
    case couldNotResolve
    /// The name's turn to be looked up did not come in time: no server was asked, and the origin is not to blame.
    case nameNotAsked
    case connectFailed
    case connectTimedOut
    /// No route to the network or the host (`ENETUNREACH`, `EHOSTUNREACH`).
    case noConnectivity
    case idleTimeout
    case totalTimeout
    /// `interrupted` where the connection broke; otherwise the two have no version or cipher in common.
    case tlsHandshake(interrupted: Bool)
    case certificateUntrusted
    case certificateExpired
    case certificateNotYetValid
    case certificateWrongHost
    case clientCertificateRequired
    /// Our own certificate or key cannot be used.
    case clientCertificateInvalid
    case pinMismatch
    case reset
    /// The body ended before its announced or framed end.
    case shortBody
    /// The connection was closed without an answer.
    case emptyReply
    case unparsableResponse
    case headersTooLarge
    /// More than one `Content-Length`, and not the same.
    case twoLengths
    /// GOAWAY or REFUSED_STREAM: this request was not processed.
    case http2Refused
    /// ENHANCE_YOUR_CALM: there was too much of something.
    case http2Calm
    case http2Stream
    case egressDenied
    case tooLarge
    /// A file to resume is missing, or shorter than `resumeOffset`.
    case prefixMissing
    /// Writing what came; `ENOSPC` among them.
    case disk(errno: Int32)
    /// Reading what should be sent.
    case bodySource(errno: Int32)
    /// What should be sent is not what was stored: its digest is another.
    case bodyDamaged
    case proxyNotResolved
    case proxyFailed
    case proxyAuthenticationRequired
    case other(curlCode: UInt32)

    /// Whether the server's identity is what failed.
    package var isTrustFailure: Bool {
        switch self {
        case .certificateUntrusted, .certificateExpired, .certificateNotYetValid, .certificateWrongHost, .pinMismatch:
            true
        default: false
        }
    }
}
