package import Core
package import Files
package import Formats

/// Identifies one exchange. The caller chooses it and never reuses it.
package struct ExchangeID: Hashable, Sendable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// One HTTP exchange: a request, the destination of its response, and limits.
///
/// The engine sends exactly this request. It follows no redirects, retries nothing, and keeps only the given cookies.
package struct ExchangeRequest: Sendable {
    package var id: ExchangeID
    /// The app's id. Exchanges of one pool share connections, exchanges of different pools never do.
    package var pool: Int64
    package var method: String
    package var url: ParsedURL
    /// Sent unchanged. The engine adds only `Host`, `Content-Length`, `Connection` if HTTP requires it, and the lines
    /// of `httpAuthentication`. A given `Content-Length` is replaced by the body's length.
    package var headers = HTTPFields()
    package var body = ExchangeBody.none
    /// SHA-256 of the whole content whose last bytes `body` sends, checked before the last bytes are sent. For
    /// ``ExchangeBody/fetched(_:offset:length:)`` it is checked only if all bytes are sent.
    package var bodySHA256: [UInt8]?
    package var sink: SinkPlan
    /// Judges the final head before any byte of its body is kept. Called once, on the engine's thread; must be quick.
    package var judge: @Sendable (ResponseHead) -> HeadJudgement
    /// A longer content ends the exchange with ``TransferFault/tooLarge``, when announced or when counted.
    package var maximumBytes: Int64?
    /// The maximum time without a byte in either direction after the request may be sent.
    package var idleTimeout = Duration.seconds(60)
    /// The limit of the name look-up, and again of connecting with the TLS handshake.
    package var connectTimeout = Duration.seconds(30)
    /// The limit of the whole exchange, if any.
    package var totalTimeout: Duration?
    package var tls = TLSSettings()
    package var proxy: ProxySettings?
    package var httpAuthentication: HTTPAuthentication?
    /// Checked for each result of the resolver, for each socket, and before each request.
    package var egress: EgressPolicy
    /// The bandwidth limit of each direction in bytes per second, if any.
    package var bandwidthLimit: Int64?
    /// Initial lines of libcurl's cookie engine in Netscape's format; `nil` disables the engine.
    package var cookies: [String]?
    /// If false, the response's cookies are stored, but none are sent.
    package var sendsCookies = true
    /// Never reuses a connection: if a reused connection breaks before the first byte of the response, libcurl repeats
    /// the request by itself.
    package var usesFreshConnection = false
    /// The maximum of received content beyond the offset passed to ``TransferEngine/recorded(_:upTo:)``. At the limit
    /// the connection is not read. `nil` if no caller reports recorded offsets.
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

/// The body of a request. It may be read more than once, and must not change before the exchange has ended.
package enum ExchangeBody: Sendable {
    case none
    /// The bytes after the offset.
    case bytes([UInt8], offset: Int64 = 0)
    case file(path: String, offset: Int64, length: Int64)
    /// Bytes that are fetched from a bucket while they are sent.
    case fetched(Fetching, offset: Int64, length: Int64)
}

/// The destination of kept bytes.
package enum SinkPlan: Sendable {
    /// Memory. Reading stops after `limit` bytes: the exchange is complete and `receivedTruncated`.
    case memory(limit: Int)
    /// Memory up to `threshold` bytes, and the file at `path` for longer or larger announced content.
    ///
    /// With a `resumeOffset`, that many bytes are already in the file. Before the request is sent, they are digested
    /// and the rest is cut off. If their SHA-256 is not `resumeDigest`, the exchange fails with
    /// ``TransferFault/prefixMissing``.
    case content(
        path: String, resumeOffset: Int64 = 0, resumeDigest: [UInt8]? = nil, threshold: Int = 64 * 1024,
        digests: [DigestAlgorithm] = [.sha256])
    /// A stretch of the file at `path`, to which other exchanges write other stretches: from `offset` up to `end`,
    /// where reading stops and the exchange is complete. The file is neither cut nor digested. Reported offsets and
    /// lengths count from the start of the content. Exchanges with the same `sync` share their syncs.
    case stretch(path: String, from: Int64, to: Int64? = nil, sync: SharedSync = SharedSync())
    /// Memory, part by part. Each complete part is reported (``ExchangeReport/part(_:_:)``), the last one with the
    /// result. `after` parts of the plan are stored already. Without a plan, the response's length determines one.
    case parts(PartPlan? = nil, after: Int = 0)

    var isFile: Bool {
        switch self {
        case .memory, .parts: false
        case .content, .stretch: true
        }
    }
}

/// The judge's decision about a final head, returned with the report.
package struct HeadJudgement: Hashable, Sendable {
    package var body: BodyDisposition
    /// The meaning of a download's response for the received bytes, passed on unchanged.
    package var verdict: ResumeVerdict?

    package init(_ body: BodyDisposition, _ verdict: ResumeVerdict? = nil) {
        self.body = body
        self.verdict = verdict
    }
}

/// The treatment of a response's body.
package enum BodyDisposition: Hashable, Sendable {
    /// Kept from this offset of the content on: 0 restarts, a 206 continues at its first byte. At most `resumeOffset`.
    case keep(at: Int64)
    /// Read into the side buffer up to `limit` bytes, for error pages. Earlier content is kept.
    case discard(limit: Int)
    /// Dropped, for a response whose meaning is in its head. A short body is read, so that the connection can be
    /// reused; the exchange is complete however the body continues. Earlier content is kept.
    case skip
    /// The exchange ends now, as ``ExchangeOutcome/stopped``.
    case stop
}

package struct HTTPAuthentication: Sendable {
    package var user: String
    package var password: String
    /// Whether the engine answers a digest challenge and judges only the final response. Otherwise Basic is sent.
    package var isDigest: Bool

    package init(user: String, password: String, isDigest: Bool = false) {
        self.user = user
        self.password = password
        self.isDigest = isDigest
    }
}

package struct TLSSettings: Sendable {
    package var minimumVersion = SessionConfiguration.TLSVersion.tls12
    /// `sha256/BASE64` of public keys (SubjectPublicKeyInfo). If there are any, the server's key must be among them.
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
    /// With `socks5` this process resolves the name, with `socks5h` the proxy does.
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
