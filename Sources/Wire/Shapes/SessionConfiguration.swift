/// The configuration that an app fixes when it creates a session. Members and defaults are the service's.
///
/// All members are written. An absent member is read as its default, so that the result is the effective configuration.
public struct SessionConfiguration: Shape {
    /// The rule for storing cookies.
    public struct CookieAcceptPolicy: WireName {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        /// Cookies of the task's own domain; the default.
        public static let onlyFromMainDocumentDomain: Self = "onlyFromMainDocumentDomain"
        /// All cookies.
        public static let always: Self = "always"
        /// No cookies.
        public static let never: Self = "never"
        public static let known: [Self] = [.onlyFromMainDocumentDomain, .always, .never]
    }

    /// A version of TLS.
    public struct TLSVersion: WireName {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        /// TLS 1.2, the default.
        public static let tls12: Self = "1.2"
        public static let tls13: Self = "1.3"
        public static let known: [Self] = [.tls12, .tls13]
    }

    /// The handling of authentication challenges.
    public struct ChallengeHandling: WireName {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        /// The app answers a question; the default.
        public static let ask: Self = "ask"
        /// Stored credentials are used, else the response is final.
        public static let performDefaultHandling: Self = "performDefaultHandling"
        public static let known: [Self] = [.ask, .performDefaultHandling]
    }

    /// The urgency of the session's transfers.
    public struct NetworkServiceType: WireName {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        /// A full share; the default.
        public static let `default`: Self = "default"
        /// A smaller share.
        public static let background: Self = "background"
        public static let known: [Self] = [.default, .background]
    }

    /// Whether uploads are made resumable.
    public struct ResumableUploads: WireName {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        /// If the server supports it; the default.
        public static let auto: Self = "auto"
        /// Never.
        public static let off: Self = "off"
        public static let known: [Self] = [.auto, .off]
    }

    /// The pinned public keys of a host, one of which it must present.
    public struct HostPins: Sendable, Hashable {
        /// The host's name.
        public var host: String
        /// `sha256/BASE64` each.
        public var pins: [String]

        public init(host: String, pins: [String]) {
            self.host = host
            self.pins = pins
        }
    }

    /// Whether tasks wait for good conditions.
    public var isDiscretionary = false
    /// Whether launches are sent. Without them events are only stored.
    public var sessionSendsLaunchEvents = true
    /// Seconds without bytes in either direction, after which an attempt ends, but not the task.
    public var timeoutIntervalForRequest = 60.0
    /// Seconds after which the task ends with -1001.
    public var timeoutIntervalForResource = 604_800.0
    /// Concurrent transfers per session and host.
    public var httpMaximumConnectionsPerHost: Int64 = 6
    /// Header fields of every request that has no such field of its own.
    public var httpAdditionalHeaders = StringMap()
    /// Whether stored cookies are sent.
    public var httpShouldSetCookies = true
    public var httpCookieAcceptPolicy = CookieAcceptPolicy.onlyFromMainDocumentDomain
    /// Whether transfers run while the declared network is cellular.
    public var allowsCellularAccess = true
    /// Whether transfers run while the declared network is expensive.
    public var allowsExpensiveNetworkAccess = true
    /// Whether transfers run while the declared network is constrained.
    public var allowsConstrainedNetworkAccess = true
    /// Accepted; background sessions always wait.
    public var waitsForConnectivity = true
    /// The minimum version of TLS.
    public var tlsMinimumSupportedProtocolVersion = TLSVersion.tls12
    /// Whether plain http fails with -1022.
    public var requiresSecureTransport = false
    /// Keys of hosts, one of which must match besides the system's trust.
    public var pinnedPublicKeys: [HostPins] = []
    /// The proxy for all transfers.
    public var proxy: Proxy?
    public var authenticationChallenges = ChallengeHandling.ask
    public var networkServiceType = NetworkServiceType.default
    public var retryPolicy = RetryPolicy.robust
    /// Bytes per second over all transfers; `nil` for no limit.
    public var bandwidthLimit: Int64?
    public var resumableUploads = ResumableUploads.auto
    /// Seconds without progress of any running task until `session.didStall` is recorded; `nil` for never.
    public var stallInterval: Double? = 3600
    /// The cache policy of downloads by GET whose request has none.
    public var requestCachePolicy = CachePolicy.reloadIgnoringLocalCacheData

    public init() {}

    /// The configuration with every secret hidden, for responses.
    public func redacted() -> SessionConfiguration {
        var copy = self
        copy.httpAdditionalHeaders = SecretHeaders.redacted(httpAdditionalHeaders, besides: [])
        copy.proxy?.password = nil
        return copy
    }

    /// The shortest and longest interval in seconds: a millisecond and ten years.
    private static let intervals = 0.001...315_360_000

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.defaulted("isDiscretionary", &isDiscretionary)
        members.defaulted("sessionSendsLaunchEvents", &sessionSendsLaunchEvents)
        members.defaulted("timeoutIntervalForRequest", &timeoutIntervalForRequest, Self.intervals)
        members.defaulted("timeoutIntervalForResource", &timeoutIntervalForResource, Self.intervals)
        members.defaulted("httpMaximumConnectionsPerHost", &httpMaximumConnectionsPerHost, 1...10_000)
        members.defaulted("httpAdditionalHeaders", &httpAdditionalHeaders, .headers(forDownload: true))
        members.defaulted("httpShouldSetCookies", &httpShouldSetCookies)
        members.defaulted("httpCookieAcceptPolicy", &httpCookieAcceptPolicy)
        members.defaulted("allowsCellularAccess", &allowsCellularAccess)
        members.defaulted("allowsExpensiveNetworkAccess", &allowsExpensiveNetworkAccess)
        members.defaulted("allowsConstrainedNetworkAccess", &allowsConstrainedNetworkAccess)
        members.defaulted("waitsForConnectivity", &waitsForConnectivity)
        members.defaulted("tlsMinimumSupportedProtocolVersion", &tlsMinimumSupportedProtocolVersion)
        members.defaulted("requiresSecureTransport", &requiresSecureTransport)
        var pins: PinsByHost? = PinsByHost(hosts: pinnedPublicKeys)
        members.nullable("pinnedPublicKeys", &pins)
        pinnedPublicKeys = pins?.hosts ?? []
        members.nullable("proxy", &proxy)
        members.defaulted("authenticationChallenges", &authenticationChallenges)
        members.defaulted("networkServiceType", &networkServiceType)
        members.defaulted("retryPolicy", &retryPolicy)
        members.nullable("bandwidthLimit", &bandwidthLimit, 1 ... .max)
        members.defaulted("resumableUploads", &resumableUploads)
        var stalls = StallInterval(seconds: stallInterval)
        members.defaulted("stallInterval", &stalls)
        stallInterval = stalls.seconds
        members.defaulted("requestCachePolicy", &requestCachePolicy)
    }
}

/// An interval that is `null` for never, and has its default if it is absent.
private struct StallInterval: MemberValue {
    static var kind: String { "a number of seconds from 1 to 315360000, or null" }

    var seconds: Double?

    static func read(_ json: JSON, _ rule: Never?, _ position: JSONPosition) -> StallInterval? {
        if json.isNull { return StallInterval(seconds: nil) }
        return Double.read(json, 1...315_360_000, position).map { StallInterval(seconds: $0) }
    }

    func write(to writer: inout JSONWriter) { writer.value(seconds) }
}

/// Pins in JSON: an object with a member for each host.
private struct PinsByHost: JSONReadable, MemberValue {
    var hosts: [SessionConfiguration.HostPins] = []

    init(hosts: [SessionConfiguration.HostPins]) { self.hosts = hosts }

    init(reading reader: inout ObjectReader) {
        for host in reader.names {
            if reader.mode == .strict, let detail = TextRule.host.fault(host) { reader.report(host, detail) }
            let pins = reader.required(host, [String](), .each(.publicKeyPin, count: 1...16))
            hosts.append(SessionConfiguration.HostPins(host: host, pins: pins))
        }
    }

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            for host in hosts { writer.member(host.host, host.pins) }
        }
    }
}
