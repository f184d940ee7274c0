package import Formats

/// The configuration that an app chooses for a session when it creates it.
///
/// The members are those of Apple's `URLSessionConfiguration` where it has them; intervals are in seconds. Frozen at
/// creation, except for ``bandwidthLimit``.
package struct SessionConfiguration: Shape {
    package enum CookieAcceptPolicy: String, Word, CaseIterable {
        case always, never, onlyFromMainDocumentDomain
    }
    package enum TLSVersion: String, Word, CaseIterable {
        case tls12 = "1.2"
        case tls13 = "1.3"
    }
    package enum ChallengeHandling: String, Word, CaseIterable { case ask, performDefaultHandling }
    package enum NetworkServiceType: String, Word, CaseIterable { case `default`, background }
    package enum ResumableUploads: String, Word, CaseIterable { case auto, off }

    package struct Proxy: Shape {
        package enum Kind: String, Word, CaseIterable { case http, https, socks5, socks5h }
        package var kind = Kind.http
        package var host = ""
        package var port = 0
        package var user: String?
        package var password: String?

        package init() {}

        package init(kind: Kind, host: String, port: Int, user: String? = nil, password: String? = nil) {
            self.kind = kind
            self.host = host
            self.port = port
            self.user = user
            self.password = password
        }

        package mutating func visit(_ members: inout some MemberVisitor) {
            members.member("kind", &kind)
            members.member("host", &host)
            members.member("port", &port)
            members.optional("user", &user)
            members.optional("password", &password)
        }
    }

    package var isDiscretionary = false
    package var sessionSendsLaunchEvents = true
    package var timeoutIntervalForRequest: Double = 60
    package var timeoutIntervalForResource: Double = 604_800
    package var httpMaximumConnectionsPerHost = 6
    package var httpAdditionalHeaders = HTTPFields()
    package var httpShouldSetCookies = true
    package var httpCookieAcceptPolicy = CookieAcceptPolicy.onlyFromMainDocumentDomain
    package var allowsCellularAccess = true
    package var allowsExpensiveNetworkAccess = true
    package var allowsConstrainedNetworkAccess = true
    package var waitsForConnectivity = true
    package var tlsMinimumSupportedProtocolVersion = TLSVersion.tls12
    package var requiresSecureTransport = false
    package var pinnedPublicKeys: [String: [String]] = [:]
    package var proxy: Proxy?
    package var authenticationChallenges = ChallengeHandling.ask
    package var networkServiceType = NetworkServiceType.default
    package var retryPolicy = RetryPolicy.robust
    package var bandwidthLimit: Int64?
    package var resumableUploads = ResumableUploads.auto
    /// The time without progress of any running task after which a stall is reported, in seconds; `nil` for never.
    package var stallInterval: Double? = 3600
    package var requestCachePolicy = CachePolicy.reloadIgnoringLocalCacheData

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("isDiscretionary", &isDiscretionary)
        members.member("sessionSendsLaunchEvents", &sessionSendsLaunchEvents)
        members.member("timeoutIntervalForRequest", &timeoutIntervalForRequest)
        members.member("timeoutIntervalForResource", &timeoutIntervalForResource)
        members.member("httpMaximumConnectionsPerHost", &httpMaximumConnectionsPerHost)
        members.member("httpAdditionalHeaders", &httpAdditionalHeaders)
        members.member("httpShouldSetCookies", &httpShouldSetCookies)
        members.member("httpCookieAcceptPolicy", &httpCookieAcceptPolicy)
        members.member("allowsCellularAccess", &allowsCellularAccess)
        members.member("allowsExpensiveNetworkAccess", &allowsExpensiveNetworkAccess)
        members.member("allowsConstrainedNetworkAccess", &allowsConstrainedNetworkAccess)
        members.member("waitsForConnectivity", &waitsForConnectivity)
        members.member("tlsMinimumSupportedProtocolVersion", &tlsMinimumSupportedProtocolVersion)
        members.member("requiresSecureTransport", &requiresSecureTransport)
        members.member("pinnedPublicKeys", &pinnedPublicKeys)
        members.nullable("proxy", &proxy)
        members.member("authenticationChallenges", &authenticationChallenges)
        members.member("networkServiceType", &networkServiceType)
        members.member("retryPolicy", &retryPolicy)
        members.nullable("bandwidthLimit", &bandwidthLimit)
        members.member("resumableUploads", &resumableUploads)
        // At rest, a missing member has its default, so 0 stands for never.
        var stallInterval = stallInterval ?? 0
        members.defaulted("stallInterval", &stallInterval)
        self.stallInterval = stallInterval > 0 ? stallInterval : nil
        members.defaulted("requestCachePolicy", &requestCachePolicy)
    }

    /// Whether the configuration must be sealed: it has a proxy's password or a secret header field.
    package var holdsSecrets: Bool {
        proxy?.password != nil || httpAdditionalHeaders.fields.contains { SecretHeaders.isSecret($0.name, besides: []) }
    }

    /// The names of the members in which two configurations differ, in the order of the documentation.
    ///
    /// The limits are compared only if this configuration has a ``bandwidthLimit``, which may change later.
    package func differences(from other: SessionConfiguration) throws(JSONError) -> [String] {
        var other = other
        if bandwidthLimit == nil { other.bandwidthLimit = nil }
        return zip(try comparableMembers(), try other.comparableMembers()).filter { $0 != $1 }.map(\.0.name)
    }

    private func comparableMembers() throws(JSONError) -> [JSON.Member] {
        var comparable = self
        comparable.httpAdditionalHeaders = HTTPFields(httpAdditionalHeaders.sortedByName)
        return try JSON.parse(comparable.jsonBytes).members ?? []
    }
}

extension HTTPFields {
    /// The fields in a canonical order.
    package var sortedByName: [HTTPField] {
        fields.map { HTTPField(name: $0.name.asciiLowercased, value: $0.value) }.sorted {
            ($0.name, $0.value) < ($1.name, $1.value)
        }
    }
}
