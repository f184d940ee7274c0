/// What an app fixes about a session when it creates it. The members and defaults are those of the service.
///
/// Written with all its members. Read, an absent member has its default, so that what is read is effective.
public struct SessionConfiguration: Sendable, Hashable {
    /// Which cookies are kept.
    public struct CookieAcceptPolicy: WireName {
        /// The word.
        public let rawValue: String
        /// Makes a policy of its word.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// Those of the task's own domain; the default.
        public static let onlyFromMainDocumentDomain: Self = "onlyFromMainDocumentDomain"
        /// All.
        public static let always: Self = "always"
        /// None.
        public static let never: Self = "never"
        /// All policies.
        public static let known: [Self] = [.onlyFromMainDocumentDomain, .always, .never]
    }

    /// A version of TLS.
    public struct TLSVersion: WireName {
        /// The version's number.
        public let rawValue: String
        /// Makes a version of its number.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// TLS 1.2, the default.
        public static let tls12: Self = "1.2"
        /// TLS 1.3.
        public static let tls13: Self = "1.3"
        /// All versions.
        public static let known: [Self] = [.tls12, .tls13]
    }

    /// Who answers authentication challenges.
    public struct ChallengeHandling: WireName {
        /// The word.
        public let rawValue: String
        /// Makes a handling of its word.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// The app is asked; the default.
        public static let ask: Self = "ask"
        /// Stored credentials, else the answer stands.
        public static let performDefaultHandling: Self = "performDefaultHandling"
        /// All handlings.
        public static let known: [Self] = [.ask, .performDefaultHandling]
    }

    /// How urgent the session's transfers are.
    public struct NetworkServiceType: WireName {
        /// The word.
        public let rawValue: String
        /// Makes a type of its word.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// A full share; the default.
        public static let `default`: Self = "default"
        /// A smaller share.
        public static let background: Self = "background"
        /// All types.
        public static let known: [Self] = [.default, .background]
    }

    /// Whether uploads try to be resumable.
    public struct ResumableUploads: WireName {
        /// The word.
        public let rawValue: String
        /// Makes a value of its word.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// Where the server can; the default.
        public static let auto: Self = "auto"
        /// Never.
        public static let off: Self = "off"
        /// Both.
        public static let known: [Self] = [.auto, .off]
    }

    /// The public keys of which a host must show one.
    public struct HostPins: Sendable, Hashable {
        /// The host's name.
        public var host: String
        /// `sha256/BASE64` each.
        public var pins: [String]

        /// Makes the pins of a host.
        public init(host: String, pins: [String]) {
            self.host = host
            self.pins = pins
        }
    }

    /// Wait for good conditions.
    public var isDiscretionary = false
    /// False: events queue, and no webhook is sent.
    public var sessionSendsLaunchEvents = true
    /// Seconds with no bytes either way, after which an attempt ends, never the task.
    public var timeoutIntervalForRequest = 60.0
    /// Seconds after which the task ends with -1001.
    public var timeoutIntervalForResource = 604_800.0
    /// Concurrent transfers per session and host.
    public var httpMaximumConnectionsPerHost: Int64 = 6
    /// Sent with every request that has no such header of its own.
    public var httpAdditionalHeaders = StringMap()
    /// Whether stored cookies are sent.
    public var httpShouldSetCookies = true
    /// Which cookies are stored.
    public var httpCookieAcceptPolicy = CookieAcceptPolicy.onlyFromMainDocumentDomain
    /// Whether transfers run while the declared network is cellular.
    public var allowsCellularAccess = true
    /// Whether transfers run while the declared network is expensive.
    public var allowsExpensiveNetworkAccess = true
    /// Whether transfers run while the declared network is constrained.
    public var allowsConstrainedNetworkAccess = true
    /// Accepted; background sessions always wait.
    public var waitsForConnectivity = true
    /// The lowest version of TLS that may be spoken.
    public var tlsMinimumSupportedProtocolVersion = TLSVersion.tls12
    /// True: plain http ends with -1022.
    public var requiresSecureTransport = false
    /// One of a host's pins must match, on top of the system's trust.
    public var pinnedPublicKeys: [HostPins] = []
    /// What stands between the service and all servers.
    public var proxy: Proxy?
    /// Who answers authentication challenges.
    public var authenticationChallenges = ChallengeHandling.ask
    /// How urgent the session's transfers are.
    public var networkServiceType = NetworkServiceType.default
    /// When a broken attempt is followed by another.
    public var retryPolicy = RetryPolicy.robust
    /// Bytes per second over all transfers; `nil` for no limit.
    public var bandwidthLimit: Int64?
    /// Whether uploads try to be resumable.
    public var resumableUploads = ResumableUploads.auto

    /// Makes a configuration of defaults.
    public init() {}

    /// The configuration with every secret hidden, for answers.
    public func redacted() -> SessionConfiguration {
        var copy = self
        copy.httpAdditionalHeaders = SecretHeaders.redacted(httpAdditionalHeaders, besides: [])
        copy.proxy?.password = nil
        return copy
    }
}

extension SessionConfiguration: JSONReadable {
    /// The shortest and longest interval in seconds: a millisecond and ten years.
    static let intervals = 0.001...315_360_000

    /// Reads a configuration.
    public init(reading reader: inout ObjectReader) {
        isDiscretionary = reader.bool("isDiscretionary", default: false)
        sessionSendsLaunchEvents = reader.bool("sessionSendsLaunchEvents", default: true)
        timeoutIntervalForRequest = reader.number("timeoutIntervalForRequest", default: 60, in: Self.intervals)
        timeoutIntervalForResource = reader.number("timeoutIntervalForResource", default: 604_800, in: Self.intervals)
        httpMaximumConnectionsPerHost = reader.integer("httpMaximumConnectionsPerHost", default: 6, in: 1...10_000)
        httpAdditionalHeaders = reader.headers("httpAdditionalHeaders", forDownload: true)
        httpShouldSetCookies = reader.bool("httpShouldSetCookies", default: true)
        httpCookieAcceptPolicy = reader.word("httpCookieAcceptPolicy", default: .onlyFromMainDocumentDomain)
        allowsCellularAccess = reader.bool("allowsCellularAccess", default: true)
        allowsExpensiveNetworkAccess = reader.bool("allowsExpensiveNetworkAccess", default: true)
        allowsConstrainedNetworkAccess = reader.bool("allowsConstrainedNetworkAccess", default: true)
        waitsForConnectivity = reader.bool("waitsForConnectivity", default: true)
        tlsMinimumSupportedProtocolVersion = reader.word("tlsMinimumSupportedProtocolVersion", default: .tls12)
        requiresSecureTransport = reader.bool("requiresSecureTransport", default: false)
        pinnedPublicKeys = reader.optionalObject("pinnedPublicKeys", Self.readPins) ?? []
        proxy = reader.optionalObject("proxy")
        authenticationChallenges = reader.word("authenticationChallenges", default: .ask)
        networkServiceType = reader.word("networkServiceType", default: .default)
        retryPolicy = reader.retryPolicy("retryPolicy")
        bandwidthLimit = reader.optionalInteger("bandwidthLimit", in: 1 ... .max)
        resumableUploads = reader.word("resumableUploads", default: .auto)
    }

    private static func readPins(_ reader: inout ObjectReader) -> [HostPins] {
        var result: [HostPins] = []
        for host in reader.names {
            if reader.isStrict, let detail = TextRule.host.fault(host) { reader.report(host, detail) }
            result.append(HostPins(host: host, pins: reader.strings(host, .publicKeyPin, count: 1...16)))
        }
        return result
    }
}

extension SessionConfiguration: JSONWritable {
    /// Writes an object with all members.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("isDiscretionary", isDiscretionary)
            writer.member("sessionSendsLaunchEvents", sessionSendsLaunchEvents)
            writer.member("timeoutIntervalForRequest", timeoutIntervalForRequest)
            writer.member("timeoutIntervalForResource", timeoutIntervalForResource)
            writer.member("httpMaximumConnectionsPerHost", httpMaximumConnectionsPerHost)
            writer.member("httpAdditionalHeaders", httpAdditionalHeaders)
            writer.member("httpShouldSetCookies", httpShouldSetCookies)
            writer.member("httpCookieAcceptPolicy", httpCookieAcceptPolicy)
            writer.member("allowsCellularAccess", allowsCellularAccess)
            writer.member("allowsExpensiveNetworkAccess", allowsExpensiveNetworkAccess)
            writer.member("allowsConstrainedNetworkAccess", allowsConstrainedNetworkAccess)
            writer.member("waitsForConnectivity", waitsForConnectivity)
            writer.member("tlsMinimumSupportedProtocolVersion", tlsMinimumSupportedProtocolVersion)
            writer.member("requiresSecureTransport", requiresSecureTransport)
            writer.object("pinnedPublicKeys") { writer in
                for host in pinnedPublicKeys { writer.member(host.host, host.pins) }
            }
            writer.member("proxy", proxy)
            writer.member("authenticationChallenges", authenticationChallenges)
            writer.member("networkServiceType", networkServiceType)
            writer.member("retryPolicy", retryPolicy)
            writer.member("bandwidthLimit", bandwidthLimit)
            writer.member("resumableUploads", resumableUploads)
        }
    }
}
