package import Formats

/// The key of a stored response of an app: the request, and the identity that it presents to the origin.
package struct CacheKey: Shape {
    /// Canonical, without fragment.
    package var url = ""
    /// The identity that the origin sees: own `Authorization` and `Cookie` fields, the session's cookies, and the
    /// stored credential.
    package var identity: [String] = []
    package var proxy: String?
    /// The hosts that must show a public key, each with the keys: a redirect may lead to any of them.
    package var pins: [String] = []

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("url", &url)
        members.member("identity", &identity)
        members.optional("proxy", &proxy)
        members.member("pins", &pins)
    }

    /// - Parameters:
    ///   - headers: The header fields of the request, with those of the session.
    ///   - cookies: The cookies of the session that the request sends.
    ///   - credential: Names the credential that the request presents, if it does.
    package init(
        _ url: ParsedURL, _ headers: HTTPFields, cookies: [String], credential: String?,
        _ configuration: SessionConfiguration
    ) {
        self.url = url.text
        identity =
            headers.values("Authorization").map { "a\($0)" } + headers.values("Cookie").map { "c\($0)" }
            + cookies.map { "s\($0)" } + (credential.map { ["k\($0)"] } ?? [])
        proxy = configuration.proxy.map { "\($0.kind.rawValue)://\($0.user ?? "")@\($0.host):\($0.port)" }
        pins = configuration.pinnedPublicKeys.flatMap { host, keys in keys.map { "\(host) \($0)" } }.sorted()
    }
}
