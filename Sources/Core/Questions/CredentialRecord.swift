/// A stored credential with its secret, for the protection space that it may be sent to.
package struct KnownCredential: Sendable, Hashable {
    package var credentialId: String
    package var space: ProtectionSpace
    package var credential: Credential
    package var createdAt: Timestamp

    package init(
        credentialId: String, space: ProtectionSpace, credential: Credential,
        createdAt: Timestamp = Timestamp(milliseconds: 0)
    ) {
        self.credentialId = credentialId
        self.space = space
        self.credential = credential
        self.createdAt = createdAt
    }
}

extension ProtectionSpace {
    /// Whether the method is an HTTP scheme, not one of the TLS connection.
    package var isHTTP: Bool { authenticationMethod != .serverTrust && authenticationMethod != .clientCertificate }

    /// Whether the space is the server at that place, not a proxy.
    package func isAt(scheme: String, host: String, port: Int) -> Bool {
        !isProxy && self.port == port && self.scheme == scheme && self.host.equalsIgnoringASCIICase(host)
    }

    /// Whether the space is that proxy. Only HTTP proxies send challenges.
    package func isAt(_ proxy: SessionConfiguration.Proxy) -> Bool {
        isProxy && port == proxy.port && scheme == proxy.challengeScheme && host.equalsIgnoringASCIICase(proxy.host)
    }

    /// Whether both spaces are at the same server or proxy, whatever their method and realm.
    package func isSamePlace(as other: ProtectionSpace) -> Bool {
        isProxy == other.isProxy && port == other.port && scheme == other.scheme
            && host.equalsIgnoringASCIICase(other.host)
    }

    /// Whether both spaces have the same place, method and realm.
    package func asksSame(as other: ProtectionSpace) -> Bool {
        isSamePlace(as: other) && authenticationMethod == other.authenticationMethod && realm == other.realm
    }
}

extension SessionConfiguration.Proxy {
    /// The scheme of the proxy's protection space; `nil` for a proxy without HTTP.
    package var challengeScheme: String? {
        switch kind {
        case .http: "http"
        case .https: "https"
        case .socks5, .socks5h: nil
        }
    }
}

extension Credential {
    /// Adopts the parts of another credential and keeps the rest: one request may need a trusted server key, a client
    /// certificate, and a password.
    package mutating func adopt(_ other: Credential) {
        if let key = other.trustPublicKey { trustPublicKey = key }
        if let certificate = other.certificate { (self.certificate, key) = (certificate, other.key) }
        guard other.user != nil || other.token != nil else { return }
        (user, password, token, usesDigest) = (other.user, other.password, other.token, other.usesDigest)
    }

    /// Whether the credential has no part.
    package var isEmpty: Bool { user == nil && token == nil && certificate == nil && trustPublicKey == nil }

    /// Whether both credentials send the same in a request's header.
    package func sendsSame(as other: Credential) -> Bool {
        user == other.user && password == other.password && token == other.token
    }
}

/// A stored credential without its secret.
package struct CredentialRecord: Sendable, Hashable {
    package var credentialId: String
    package var space: ProtectionSpace
    package var user: String?
    package var session: SessionID?
    package var createdAt: Timestamp

    package init(
        credentialId: String, space: ProtectionSpace, user: String?, session: SessionID?, createdAt: Timestamp
    ) {
        self.credentialId = credentialId
        self.space = space
        self.user = user
        self.session = session
        self.createdAt = createdAt
    }
}
