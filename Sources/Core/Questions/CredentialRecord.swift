/// A stored credential with its secret, for the one place that it may be sent to.
package struct KnownCredential: Sendable, Hashable {
    package var credentialId: String
    package var space: ProtectionSpace
    package var credential: Credential
    /// When it was stored.
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
    /// Whether it stands for a scheme of HTTP, and not for the connection below.
    package var isHTTP: Bool { authenticationMethod != .serverTrust && authenticationMethod != .clientCertificate }

    /// Whether it is the server at that place, and no proxy.
    package func isAt(scheme: String, host: String, port: Int) -> Bool {
        !isProxy && self.port == port && self.scheme == scheme && self.host.equalsIgnoringASCIICase(host)
    }

    /// Whether it is that proxy. Only proxies that speak HTTP ask.
    package func isAt(_ proxy: SessionConfiguration.Proxy) -> Bool {
        isProxy && port == proxy.port && scheme == proxy.challengeScheme && host.equalsIgnoringASCIICase(proxy.host)
    }

    /// Whether both stand for the same server, or the same proxy, whatever it asks for.
    package func isSamePlace(as other: ProtectionSpace) -> Bool {
        isProxy == other.isProxy && port == other.port && scheme == other.scheme
            && host.equalsIgnoringASCIICase(other.host)
    }

    /// Whether the same place asks for the same.
    package func asksSame(as other: ProtectionSpace) -> Bool {
        isSamePlace(as: other) && authenticationMethod == other.authenticationMethod && realm == other.realm
    }
}

extension SessionConfiguration.Proxy {
    /// The scheme of its protection space; nil for one that does not speak HTTP.
    package var challengeScheme: String? {
        switch kind {
        case .http: "http"
        case .https: "https"
        case .socks5, .socks5h: nil
        }
    }
}

extension Credential {
    /// Takes over what another credential says, and keeps what it does not speak of: a server's key may have to be
    /// trusted, a certificate shown, and a password sent, all for one request.
    package mutating func adopt(_ other: Credential) {
        if let key = other.trustPublicKey { trustPublicKey = key }
        if let certificate = other.certificate { (self.certificate, key) = (certificate, other.key) }
        guard other.user != nil || other.token != nil else { return }
        (user, password, token, usesDigest) = (other.user, other.password, other.token, other.usesDigest)
    }

    /// Whether it says nothing at all.
    package var isEmpty: Bool { user == nil && token == nil && certificate == nil && trustPublicKey == nil }

    /// Whether both send the same in the header of a request.
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
