import Core

/// The credentials that a request may present to its server and to the session's proxy.
struct Access: Sendable {
    /// The credentials stored for a server, and the app's answers to challenges.
    struct Found: Sendable {
        struct Given: Sendable {
            let space: ProtectionSpace
            let credential: Credential
            let at: Timestamp
        }

        /// Stored for the request's server, the best first.
        var stored: [KnownCredential] = []
        /// Stored for the session's proxy, the best first.
        var storedForProxy: [KnownCredential] = []
        var given: [Given] = []
        var bucket: Bucket?
    }

    /// The signature of a request to the bucket of its object, and the egress policy for that bucket.
    struct Bucket: Sendable {
        let fields: HTTPFields
        let egress: EgressPolicy
    }

    var stored: [KnownCredential] = []
    var storedForProxy: [KnownCredential] = []
    /// The credential that the server is sent or shown, or trusted for.
    var credential: Credential?
    var proxyCredential: Credential?
    var bucket: Bucket?
}

extension Transfer {
    /// Adopts the credentials for the next request's server, and no others.
    mutating func adopt(_ found: Access.Found) {
        var access = Access(stored: found.stored, storedForProxy: found.storedForProxy, bucket: found.bucket)
        // A credential stored for the same protection space after an answer overrides the answer.
        let given = found.given.filter { !prefersStored(for: $0.space, since: $0.at, access) }
        let proxy = configuration.proxy
        var credential = storedCredential(access)
        access.proxyCredential = chosen(of: access.storedForProxy, unasked: proxy?.user == nil)
        for answer in given {
            if let proxy, answer.space.isAt(proxy) { access.proxyCredential = answer.credential }
            if isAt(answer.space) { credential.adopt(answer.credential) }
        }
        access.credential = credential.isEmpty ? nil : credential
        attempt.access = access
        attempt.accesses[request.url.origin] = access
    }

    /// The credentials that this attempt could choose from.
    var credentialsKnown: Set<String> {
        Set((attempt.access.stored + attempt.access.storedForProxy).map(\.credentialId) + progress.credentialsTried)
    }

    /// Whether the current request goes to the protection space's server.
    func isAt(_ space: ProtectionSpace) -> Bool {
        space.isAt(scheme: request.url.scheme, host: request.url.host, port: Int(request.url.port))
    }

    /// Chooses the credential that was stored for the same protection space after a time, if there is one.
    private mutating func prefersStored(for space: ProtectionSpace, since time: Timestamp, _ access: Access) -> Bool {
        let stored = space.isProxy ? access.storedForProxy : access.stored
        guard let newer = stored.first(where: { $0.createdAt > time && $0.space.asksSame(as: space) }) else {
            return false
        }
        if !progress.credentialsTried.contains(newer.credentialId) {
            progress.credentialsTried.append(newer.credentialId)
        }
        return true
    }

    /// The stored credentials for the next request: those of the connection, and one for HTTP if a challenge named it
    /// or if it is the only one.
    private func storedCredential(_ access: Access) -> Credential {
        var credential = Credential()
        for known in access.stored.reversed() where !known.space.isHTTP { credential.adopt(known.credential) }
        // Without a challenge, the request's own field takes precedence.
        let mayChoose = !request.headers.contains("Authorization")
        if let chosen = chosen(of: access.stored, unasked: mayChoose) { credential.adopt(chosen) }
        return credential
    }

    /// The credential that a challenge led to or, if it may be sent preemptively, the only one for HTTP.
    private func chosen(of known: [KnownCredential], unasked: Bool) -> Credential? {
        let forHTTP = known.filter(\.space.isHTTP)
        let named = progress.credentialsTried.reversed().lazy
            .compactMap { id in forHTTP.first { $0.credentialId == id } }.first
        let realms = Set(forHTTP.map { [$0.space.realm, $0.space.authenticationMethod.rawValue] })
        return (named ?? (unasked && realms.count == 1 ? forHTTP.first : nil))?.credential
    }

    /// The credential that a server may be sent or shown; never the credential of another server.
    func credential(for url: ParsedURL) -> Credential? {
        attempt.accesses[url.origin]?.credential
    }

    /// The signature for the bucket of the task's object; nil if the current request goes to another server.
    var bucketAccess: Access.Bucket? { isAtBucket ? attempt.access.bucket : nil }
}
