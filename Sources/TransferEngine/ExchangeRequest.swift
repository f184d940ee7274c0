package import Core
package import Files
package import Formats

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
    package var headers = HTTPFields()
    package var body = ExchangeBody.none
    /// SHA-256 of all bytes of which `body` sends the last ones. They are compared before the last of them is sent; those of
    /// ``ExchangeBody/fetched(_:offset:length:)`` only where all are sent.
    package var bodySHA256: [UInt8]?
    package var sink: SinkPlan
    /// Judges the final head before any byte of its body is kept. Called once, on the engine's thread: be quick.
    package var judge: @Sendable (ResponseHead) -> HeadJudgement
    /// More content than this ends the exchange with ``TransferFault/tooLarge``, by announcement or by count.
    package var maximumBytes: Int64?
    /// The longest time without a byte in either direction once the request may be sent.
    package var idleTimeout = Duration.seconds(60)
    /// For looking up the name, and again for connecting, the TLS handshake included.
    package var connectTimeout = Duration.seconds(30)
    /// For the exchange as a whole, or no limit.
    package var totalTimeout: Duration?
    package var tls = TLSSettings()
    package var proxy: ProxySettings?
    package var httpAuthentication: HTTPAuthentication?
    /// Judged on each answer of the resolver, at the socket, and before each request.
    package var egress: EgressPolicy
    /// Bytes a second in each direction, or no limit.
    package var bandwidthLimit: Int64?
    /// Lines in the form of Netscape's cookie file that libcurl's cookie engine begins with; nil leaves the engine off.
    package var cookies: [String]?
    /// False: the answer's cookies are taken, but none are sent.
    package var sendsCookies = true
    /// Never on a connection that was used before: if such a connection breaks before a byte of the answer, libcurl sends
    /// the request again by itself.
    package var usesFreshConnection = false
    /// Bytes of content that may be at hand beyond those that ``TransferEngine/recorded(_:upTo:)`` told of: until it tells
    /// of more, the connection is not read. Nil if nothing reports it.
    package var maximumUnrecorded: Int64?

    package init(
        id: ExchangeID, pool: Int64, method: String = "GET", url: ParsedURL, sink: SinkPlan, egress: EgressPolicy,
        judge: @escaping @Sendable (ResponseHead) -> HeadJudgement
    ) {
        self.id = id
        self.pool = pool
        self.method = method
        self.url = url
        self.sink = sink
        self.egress = egress
        self.judge = judge
    }
}

/// What is sent. It must stay as it is until the exchange ended: it may be read more than once.
package enum ExchangeBody: Sendable {
    case none
    /// What of them is behind the offset.
    case bytes([UInt8], offset: Int64 = 0)
    case file(path: String, offset: Int64, length: Int64)
    /// The bytes are fetched from a bucket while they are sent.
    case fetched(Fetching, offset: Int64, length: Int64)
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
    /// Into a stretch of the file at `path`, of which other exchanges write others: from `offset` on, up to `end`, where
    /// reading stops and the exchange is complete. Nothing of the file is cut or digested. Offsets and lengths that the
    /// engine tells count from the start of the content. Exchanges with the same `sync` hear of each other's.
    case stretch(path: String, from: Int64, to: Int64? = nil, sync: SharedSync = SharedSync())
    /// Into memory, part by part; each is told when it is full (``ExchangeReport/part(_:_:)``), the last one with the
    /// result. So many parts of a plan are elsewhere already. Without a plan the answer's length makes one.
    case parts(PartPlan? = nil, after: Int = 0)

    var isFile: Bool {
        switch self {
        case .memory, .parts: false
        case .content, .stretch: true
        }
    }
}

/// What the judge made of a final head. It comes back with the report.
package struct HeadJudgement: Hashable, Sendable {
    package var body: BodyDisposition
    /// What a download's answer means for the bytes at hand. The engine hands it on.
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

package struct HTTPAuthentication: Sendable {
    package var user: String
    package var password: String
    /// Whether the engine answers a digest challenge, so that only the answer after it is judged. Else Basic is sent.
    package var isDigest: Bool

    package init(user: String, password: String, isDigest: Bool = false) {
        self.user = user
        self.password = password
        self.isDigest = isDigest
    }
}

package struct TLSSettings: Sendable {
    package var minimumVersion = SessionConfiguration.TLSVersion.tls12
    /// `sha256/BASE64` of public keys (SubjectPublicKeyInfo); the server's own must be among them, where any are given.
    package var pinnedPublicKeys: [String] = []
    /// `sha256/BASE64` of the one public key that is trusted instead of certificates and host names.
    package var trustedServerKey: String?
    package var clientCertificate: ClientCertificate?
    /// Certificates to trust instead of the system's.
    package var caFile: String?

    package init() {}
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
    /// With `socks5` the name is looked up here, with `socks5h` by the proxy.
    package var kind: SessionConfiguration.Proxy.Kind
    package var host: String
    package var port: UInt16
    package var authentication: HTTPAuthentication?

    package init(
        kind: SessionConfiguration.Proxy.Kind, host: String, port: UInt16, authentication: HTTPAuthentication? = nil
    ) {
        self.kind = kind
        self.host = host
        self.port = port
        self.authentication = authentication
    }
}
