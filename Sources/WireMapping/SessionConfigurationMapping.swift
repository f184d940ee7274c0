package import Core
package import Wire

extension Core.SessionConfiguration {
    /// An app's configuration, with the defaults of omitted members.
    ///
    /// Words were checked when the request was read; an unknown one means the default.
    package init(_ wire: Wire.SessionConfiguration) {
        self.init()
        isDiscretionary = wire.isDiscretionary
        sessionSendsLaunchEvents = wire.sessionSendsLaunchEvents
        timeoutIntervalForRequest = wire.timeoutIntervalForRequest
        timeoutIntervalForResource = wire.timeoutIntervalForResource
        httpMaximumConnectionsPerHost = Int(clamping: wire.httpMaximumConnectionsPerHost)
        httpAdditionalHeaders = HTTPFields(wire.httpAdditionalHeaders)
        httpShouldSetCookies = wire.httpShouldSetCookies
        httpCookieAcceptPolicy =
            CookieAcceptPolicy(wire.httpCookieAcceptPolicy) ?? .onlyFromMainDocumentDomain
        allowsCellularAccess = wire.allowsCellularAccess
        allowsExpensiveNetworkAccess = wire.allowsExpensiveNetworkAccess
        allowsConstrainedNetworkAccess = wire.allowsConstrainedNetworkAccess
        waitsForConnectivity = wire.waitsForConnectivity
        tlsMinimumSupportedProtocolVersion =
            TLSVersion(wire.tlsMinimumSupportedProtocolVersion) ?? .tls12
        requiresSecureTransport = wire.requiresSecureTransport
        // Hosts are compared as the URL parser writes them.
        for host in wire.pinnedPublicKeys { pinnedPublicKeys[host.host.canonicalHost, default: []] += host.pins }
        proxy = wire.proxy.map(Proxy.init)
        authenticationChallenges = ChallengeHandling(wire.authenticationChallenges) ?? .ask
        networkServiceType = NetworkServiceType(wire.networkServiceType) ?? .default
        retryPolicy = Core.RetryPolicy(wire.retryPolicy)
        bandwidthLimit = wire.bandwidthLimit
        resumableUploads = ResumableUploads(wire.resumableUploads) ?? .auto
        stallInterval = wire.stallInterval
        requestCachePolicy = Core.CachePolicy(wire.requestCachePolicy) ?? .reloadIgnoringLocalCacheData
    }
}

extension Wire.SessionConfiguration {
    /// The effective values, without the secrets among them.
    package init(_ core: Core.SessionConfiguration) {
        self.init()
        isDiscretionary = core.isDiscretionary
        sessionSendsLaunchEvents = core.sessionSendsLaunchEvents
        timeoutIntervalForRequest = core.timeoutIntervalForRequest
        timeoutIntervalForResource = core.timeoutIntervalForResource
        httpMaximumConnectionsPerHost = Int64(core.httpMaximumConnectionsPerHost)
        httpAdditionalHeaders = StringMap(core.httpAdditionalHeaders)
        httpShouldSetCookies = core.httpShouldSetCookies
        httpCookieAcceptPolicy = CookieAcceptPolicy(core.httpCookieAcceptPolicy)
        allowsCellularAccess = core.allowsCellularAccess
        allowsExpensiveNetworkAccess = core.allowsExpensiveNetworkAccess
        allowsConstrainedNetworkAccess = core.allowsConstrainedNetworkAccess
        waitsForConnectivity = core.waitsForConnectivity
        tlsMinimumSupportedProtocolVersion = TLSVersion(core.tlsMinimumSupportedProtocolVersion)
        requiresSecureTransport = core.requiresSecureTransport
        pinnedPublicKeys =
            core.pinnedPublicKeys.sorted { $0.key < $1.key }.map { HostPins(host: $0.key, pins: $0.value) }
        proxy = core.proxy.map(Proxy.init)
        authenticationChallenges = ChallengeHandling(core.authenticationChallenges)
        networkServiceType = NetworkServiceType(core.networkServiceType)
        retryPolicy = Wire.RetryPolicy(core.retryPolicy)
        bandwidthLimit = core.bandwidthLimit
        resumableUploads = ResumableUploads(core.resumableUploads)
        stallInterval = core.stallInterval
        requestCachePolicy = Wire.CachePolicy(core.requestCachePolicy)
        self = redacted()
    }
}

extension Core.SessionConfiguration.Proxy {
    package init(_ wire: Wire.Proxy) {
        self.init(
            kind: Kind(wire.type) ?? .http, host: IPAddress(wire.host)?.description ?? wire.host,
            port: Int(clamping: wire.port), user: wire.user, password: wire.password)
    }
}

extension Wire.Proxy {
    package init(_ core: Core.SessionConfiguration.Proxy) {
        self.init(
            type: Kind(core.kind), host: core.host, port: Int64(core.port), user: core.user,
            password: core.password)
    }
}

extension Core.RetryPolicy {
    package init(_ wire: Wire.RetryPolicy) {
        switch wire {
        case .apple: self = .apple
        case .robust: self = .robust
        case .custom(let settings):
            self = .custom(
                Settings(
                    statusCodes: Set(settings.statusCodes.map { Int(clamping: $0) }),
                    maximumAttempts: settings.maximumAttempts.map { Int(clamping: $0) },
                    maximumElapsedTime: settings.maximumElapsedTime, initialDelay: settings.initialDelay,
                    maximumDelay: settings.maximumDelay))
        }
    }
}

extension Wire.RetryPolicy {
    package init(_ core: Core.RetryPolicy) {
        switch core {
        case .apple: self = .apple
        case .robust: self = .robust
        case .custom(let settings):
            self = .custom(
                Settings {
                    $0.statusCodes = settings.statusCodes.sorted().map(Int64.init)
                    $0.maximumAttempts = settings.maximumAttempts.map(Int64.init)
                    $0.maximumElapsedTime = settings.maximumElapsedTime
                    $0.initialDelay = settings.initialDelay
                    $0.maximumDelay = settings.maximumDelay
                })
        }
    }
}
