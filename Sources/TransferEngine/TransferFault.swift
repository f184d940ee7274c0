/// The reason for which an exchange failed. Describes the fault, not its treatment.
package enum TransferFault: Error, Hashable, Sendable {
    /// The URL, or a method or header field that cannot be sent.
    case badRequest
    /// The resolver's authoritative result: the name does not exist or has no address.
    case nameDoesNotExist
    case couldNotResolve
    /// The look-up did not begin in time: no server was queried, and the origin is not at fault.
    case nameNotAsked
    case connectFailed
    case connectTimedOut
    /// No route to the network or the host (`ENETUNREACH`, `EHOSTUNREACH`).
    case noConnectivity
    case idleTimeout
    case totalTimeout
    /// `interrupted` if the connection broke. Otherwise the peers have no version or cipher in common.
    case tlsHandshake(interrupted: Bool)
    case certificateUntrusted
    case certificateExpired
    case certificateNotYetValid
    case certificateWrongHost
    case clientCertificateRequired
    /// The client certificate or its key cannot be used.
    case clientCertificateInvalid
    case pinMismatch
    case reset
    /// The body ended before its announced or framed end.
    case shortBody
    /// The connection was closed without a response.
    case emptyReply
    case unparsableResponse
    case headersTooLarge
    /// Several different values of `Content-Length`.
    case twoLengths
    /// GOAWAY or REFUSED_STREAM: this request was not processed.
    case http2Refused
    /// ENHANCE_YOUR_CALM: the server limits this client.
    case http2Calm
    case http2Stream
    case egressDenied
    case tooLarge
    /// A file to resume is missing, or shorter than `resumeOffset`.
    case prefixMissing
    /// Writing received bytes failed, for example with `ENOSPC`.
    case disk(errno: Int32)
    /// Reading the request's body failed.
    case bodySource(errno: Int32)
    /// The request's body does not match its stored digest.
    case bodyDamaged
    case proxyNotResolved
    case proxyFailed
    case proxyAuthenticationRequired
    case other(curlCode: UInt32)

    /// Whether the verification of the server's identity failed.
    package var isTrustFailure: Bool {
        switch self {
        case .certificateUntrusted, .certificateExpired, .certificateNotYetValid, .certificateWrongHost, .pinMismatch:
            true
        default: false
        }
    }
}
