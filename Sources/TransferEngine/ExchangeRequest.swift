package import Core
package import Notation

/// Names one exchange for its whole life. The caller chooses it and never uses it twice.
package struct ExchangeID: Hashable, Sendable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// One HTTP exchange: a request, where its answer goes, and the limits of both.
///
/// The engine sends what stands here and follows nothing: no redirects, no retries, and keeps no cookies but those given.
package struct ExchangeRequest: Sendable {
    package var id: ExchangeID
    /// Connections are shared among exchanges of one pool and never between pools: an app's id.
    package var pool: Int64
    package var method: String
    package var url: ParsedURL
    /// Sent as they are. Only `Host`, `Content-Length`, `Connection` where HTTP asks for it, and the lines of
    /// `httpAuthentication` are added; a `Content-Length` given here is left out in favour of the body's.
    package var headers: HTTPFields
    package var body: ExchangeBody
    package var sink: SinkPlan
    /// Judges the final head before any byte of its body is kept. Called once, on the engine's thread: be quick.
    package var judge: @Sendable (ResponseHead) -> HeadJudgement
    /// More content than this ends the exchange with ``TransferFault/tooLarge``, by announcement or by count.
    package var maximumBytes: Int64?
    /// The longest time without a byte in either direction once the request may be sent.
    package var idleTimeout: Duration
    /// For looking up the name, and again for connecting, the TLS handshake included.
    package var connectTimeout: Duration
    /// For the exchange as a whole, or no limit.
    package var totalTimeout: Duration?
    package var tls: TLSSettings
    package var proxy: ProxySettings?
    package var httpAuthentication: HTTPAuthentication
    /// Judged on each answer of the resolver, at the socket, and before each request.
    package var egress: EgressPolicy
    /// Bytes a second in each direction, or no limit.
    package var bandwidthLimit: Int64?
    /// Lines in the form of Netscape's cookie file that libcurl's cookie engine begins with; nil leaves the engine off.
    package var cookies: [String]?
    /// False: the answer's cookies are taken, but none are sent.
    package var sendsCookies = true
    /// Never on a connection that was used before: when such a one breaks before a byte of the answer, libcurl sends
    /// the request once more by itself.
    package var usesFreshConnection = false
    /// Bytes of content that may be on hand beyond those that ``TransferEngine/recorded(_:upTo:)`` told of: more are not
    /// read from the connection. Nil where nobody tells.
    package var maximumUnrecorded: Int64?

    package init(
        id: ExchangeID, pool: Int64, method: String = "GET", url: ParsedURL, headers: HTTPFields = HTTPFields(),
        body: ExchangeBody = .none, sink: SinkPlan, judge: @escaping @Sendable (ResponseHead) -> HeadJudgement,
        maximumBytes: Int64? = nil, idleTimeout: Duration = .seconds(60), connectTimeout: Duration = .seconds(30),
        totalTimeout: Duration? = nil, tls: TLSSettings = TLSSettings(), proxy: ProxySettings? = nil,
        httpAuthentication: HTTPAuthentication = .none, egress: EgressPolicy, bandwidthLimit: Int64? = nil
    ) {
        self.id = id
        self.pool = pool
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.sink = sink
        self.judge = judge
        self.maximumBytes = maximumBytes
        self.idleTimeout = idleTimeout
        self.connectTimeout = connectTimeout
        self.totalTimeout = totalTimeout
        self.tls = tls
        self.proxy = proxy
        self.httpAuthentication = httpAuthentication
        self.egress = egress
        self.bandwidthLimit = bandwidthLimit
    }
}

/// What is sent. A file must stay as it is until the exchange ended: it may be read more than once.
package enum ExchangeBody: Sendable {
    case none
    case bytes([UInt8])
    case file(path: String, offset: Int64, length: Int64)
}

/// Where kept bytes go.
package enum SinkPlan: Sendable {
    /// Into memory. Reading stops beyond `limit` bytes: the exchange is complete and `receivedTruncated`.
    case memory(limit: Int)
    /// Into memory up to `threshold` bytes, into the file at `path` beyond, or where more are announced.
    ///
    /// With a `resumeOffset` the first that many bytes are already in the file; they are digested, and what is behind
    /// them is cut off, before the request is sent. Where they do not have the SHA-256 `resumeDigest`, they are not what
    /// was received, and the exchange fails with ``TransferFault/prefixMissing``.
    case content(
        path: String, resumeOffset: Int64 = 0, resumeDigest: [UInt8]? = nil, threshold: Int = 64 * 1024,
        digests: [DigestAlgorithm] = [.sha256])
}

/// What the judge made of a final head. It comes back with the report.
package struct HeadJudgement: Hashable, Sendable {
    package var body: BodyDisposition
    /// What the answer is to the bytes at hand, where it was asked for them. Nothing to the engine.
    package var verdict: ResumeVerdict?

    package init(_ body: BodyDisposition, _ verdict: ResumeVerdict? = nil) {
        self.body = body
        self.verdict = verdict
    }
}

/// What happens to the body of an answer.
package enum BodyDisposition: Hashable, Sendable {
    /// Kept from this offset of the content on: 0 starts anew, a 206 goes on at its first byte. At most `resumeOffset`.
    case keep(at: Int64)
    /// Read into the side buffer up to `limit` bytes, for error pages and redirects. What was kept before stays.
    case discard(limit: Int)
    /// The exchange ends now, as ``ExchangeOutcome/stopped``.
    case stop
}

package enum HTTPAuthentication: Sendable {
    case none
    case basic(user: String, password: String)
    /// The engine answers the digest challenge itself; only the answer after it is judged.
    case digest(user: String, password: String)
}

package struct TLSSettings: Sendable {
    package enum Version: String, Sendable, Codable {
        case v12 = "1.2"
        case v13 = "1.3"
    }

    package var minimumVersion: Version
    /// `sha256/BASE64` of public keys (SubjectPublicKeyInfo); the server's own must be among them, where any are given.
    package var pinnedPublicKeys: [String]
    /// `sha256/BASE64` of the one public key that is trusted instead of certificates and host names.
    package var trustedServerKey: String?
    package var clientCertificate: ClientCertificate?
    /// Certificates to trust instead of the system's.
    package var caFile: String?

    package init(
        minimumVersion: Version = .v12, pinnedPublicKeys: [String] = [], trustedServerKey: String? = nil,
        clientCertificate: ClientCertificate? = nil, caFile: String? = nil
    ) {
        self.minimumVersion = minimumVersion
        self.pinnedPublicKeys = pinnedPublicKeys
        self.trustedServerKey = trustedServerKey
        self.clientCertificate = clientCertificate
        self.caFile = caFile
    }
}

/// A certificate chain and its key, both PEM.
package struct ClientCertificate: Sendable {
    package var certificates: [UInt8]
    package var key: [UInt8]

    package init(certificates: [UInt8], key: [UInt8]) {
        self.certificates = certificates
        self.key = key
    }
}

package struct ProxySettings: Sendable {
    package enum Kind: String, Sendable, Codable {
        case http, https
        /// The name is looked up here.
        case socks5
        /// The proxy looks the name up.
        case socks5h
    }

    package var kind: Kind
    package var host: String
    package var port: UInt16
    package var authentication: HTTPAuthentication

    package init(kind: Kind, host: String, port: UInt16, authentication: HTTPAuthentication = .none) {
        self.kind = kind
        self.host = host
        self.port = port
        self.authentication = authentication
    }
}
