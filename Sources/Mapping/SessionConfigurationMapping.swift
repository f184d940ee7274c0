package import Core
package import Wire

extension Core.SessionConfiguration {
    /// What an app asked for, with the default of every member that it left out.
    ///
    /// Words have been checked when the request was read; one that is not known stands for the default.
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
            CookieAcceptPolicy(rawValue: wire.httpCookieAcceptPolicy.rawValue) ?? .onlyFromMainDocumentDomain
        allowsCellularAccess = wire.allowsCellularAccess
        allowsExpensiveNetworkAccess = wire.allowsExpensiveNetworkAccess
        allowsConstrainedNetworkAccess = wire.allowsConstrainedNetworkAccess
        waitsForConnectivity = wire.waitsForConnectivity
        tlsMinimumSupportedProtocolVersion =
            TLSVersion(rawValue: wire.tlsMinimumSupportedProtocolVersion.rawValue) ?? .tls12
        requiresSecureTransport = wire.requiresSecureTransport
        // Hosts are compared as the URL parser writes them.
        for host in wire.pinnedPublicKeys { pinnedPublicKeys[host.host.asciiLowercased, default: []] += host.pins }
        proxy = wire.proxy.map(Proxy.init)
        authenticationChallenges = ChallengeHandling(rawValue: wire.authenticationChallenges.rawValue) ?? .ask
        networkServiceType = NetworkServiceType(rawValue: wire.networkServiceType.rawValue) ?? .default
        retryPolicy = Core.RetryPolicy(wire.retryPolicy)
        bandwidthLimit = wire.bandwidthLimit
        resumableUploads = ResumableUploads(rawValue: wire.resumableUploads.rawValue) ?? .auto
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
        httpCookieAcceptPolicy = CookieAcceptPolicy(rawValue: core.httpCookieAcceptPolicy.rawValue)
        allowsCellularAccess = core.allowsCellularAccess
        allowsExpensiveNetworkAccess = core.allowsExpensiveNetworkAccess
        allowsConstrainedNetworkAccess = core.allowsConstrainedNetworkAccess
        waitsForConnectivity = core.waitsForConnectivity
        tlsMinimumSupportedProtocolVersion = TLSVersion(rawValue: core.tlsMinimumSupportedProtocolVersion.rawValue)
        requiresSecureTransport = core.requiresSecureTransport
        pinnedPublicKeys =
            core.pinnedPublicKeys.sorted { $0.key < $1.key }.map { HostPins(host: $0.key, pins: $0.value) }
        proxy = core.proxy.map(Proxy.init)
        authenticationChallenges = ChallengeHandling(rawValue: core.authenticationChallenges.rawValue)
        networkServiceType = NetworkServiceType(rawValue: core.networkServiceType.rawValue)
        retryPolicy = Wire.RetryPolicy(core.retryPolicy)
        bandwidthLimit = core.bandwidthLimit
        resumableUploads = ResumableUploads(rawValue: core.resumableUploads.rawValue)
        self = redacted()
    }
}

extension Core.SessionConfiguration.Proxy {
    package init(_ wire: Wire.Proxy) {
        self.init(
            kind: Kind(rawValue: wire.type.rawValue) ?? .http, host: wire.host, port: Int(clamping: wire.port),
            user: wire.user, password: wire.password)
    }
}

extension Wire.Proxy {
    package init(_ core: Core.SessionConfiguration.Proxy) {
        self.init(
            type: Kind(rawValue: core.kind.rawValue), host: core.host, port: Int64(core.port), user: core.user,
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
                    initialDelay: settings.initialDelay, maximumDelay: settings.maximumDelay))
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
                Settings(
                    statusCodes: settings.statusCodes.sorted().map(Int64.init),
                    maximumAttempts: settings.maximumAttempts.map(Int64.init), initialDelay: settings.initialDelay,
                    maximumDelay: settings.maximumDelay))
        }
    }
}
