import Notation

/// What an app fixes about a session when it creates it.
///
/// The members are those of Apple's `URLSessionConfiguration` where it has them; intervals are seconds.
/// Frozen at creation, but for ``bandwidthLimit``.
package struct SessionConfiguration: Hashable, Sendable, Codable {
    package enum CookieAcceptPolicy: String, Sendable, Codable, CaseIterable {
        case always, never, onlyFromMainDocumentDomain
    }
    package enum TLSVersion: String, Sendable, Codable, CaseIterable {
        case tls12 = "1.2"
        case tls13 = "1.3"
    }
    package enum ChallengeHandling: String, Sendable, Codable, CaseIterable { case ask, performDefaultHandling }
    package enum NetworkServiceType: String, Sendable, Codable, CaseIterable { case `default`, background }
    package enum ResumableUploads: String, Sendable, Codable, CaseIterable { case auto, off }

    package struct Proxy: Hashable, Sendable, Codable {
        package enum Kind: String, Sendable, Codable, CaseIterable { case http, https, socks5, socks5h }
        package var kind: Kind
        package var host: String
        package var port: Int
        package var user: String?
        package var password: String?

        package init(kind: Kind, host: String, port: Int, user: String? = nil, password: String? = nil) {
            self.kind = kind
            self.host = host
            self.port = port
            self.user = user
            self.password = password
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

    package init() {}

    /// Whether it must be sealed at rest: a proxy's credential or a header that carries one.
    package var holdsSecrets: Bool {
        proxy?.password != nil || httpAdditionalHeaders.fields.contains { SecretHeaders.isSecret($0.name, besides: []) }
    }

    /// The names of the members in which two configurations differ, in the order of the documentation.
    ///
    /// ``bandwidthLimit`` is left out, since it may have been changed since.
    package func differences(from other: SessionConfiguration) -> [String] {
        var names: [String] = []
        func compare<Value: Equatable>(_ name: String, _ path: KeyPath<SessionConfiguration, Value>) {
            if self[keyPath: path] != other[keyPath: path] { names.append(name) }
        }
        compare("isDiscretionary", \.isDiscretionary)
        compare("sessionSendsLaunchEvents", \.sessionSendsLaunchEvents)
        compare("timeoutIntervalForRequest", \.timeoutIntervalForRequest)
        compare("timeoutIntervalForResource", \.timeoutIntervalForResource)
        compare("httpMaximumConnectionsPerHost", \.httpMaximumConnectionsPerHost)
        compare("httpAdditionalHeaders", \.httpAdditionalHeaders.sortedByName)
        compare("httpShouldSetCookies", \.httpShouldSetCookies)
        compare("httpCookieAcceptPolicy", \.httpCookieAcceptPolicy)
        compare("allowsCellularAccess", \.allowsCellularAccess)
        compare("allowsExpensiveNetworkAccess", \.allowsExpensiveNetworkAccess)
        compare("allowsConstrainedNetworkAccess", \.allowsConstrainedNetworkAccess)
        compare("waitsForConnectivity", \.waitsForConnectivity)
        compare("tlsMinimumSupportedProtocolVersion", \.tlsMinimumSupportedProtocolVersion)
        compare("requiresSecureTransport", \.requiresSecureTransport)
        compare("pinnedPublicKeys", \.pinnedPublicKeys)
        compare("proxy", \.proxy)
        compare("authenticationChallenges", \.authenticationChallenges)
        compare("networkServiceType", \.networkServiceType)
        compare("retryPolicy", \.retryPolicy)
        compare("resumableUploads", \.resumableUploads)
        return names
    }
}

extension HTTPFields {
    /// The fields in an order that does not depend on how they were given.
    package var sortedByName: [HTTPField] {
        fields.map { HTTPField(name: $0.name.asciiLowercased, value: $0.value) }.sorted {
            ($0.name, $0.value) < ($1.name, $1.value)
        }
    }
}
