package import Core

/// The public suffix list of the libpsl that libcurl loaded for its cookies.
package enum PublicSuffixes {
    // The signatures are libpsl's since 0.5.
    private typealias BuiltIn = @convention(c) () -> OpaquePointer?
    private typealias RegistrableDomain =
        @convention(c) (OpaquePointer?, UnsafePointer<CChar>) -> UnsafePointer<CChar>?

    private static let builtIn = symbol("psl_builtin", BuiltIn.self)
    private static let domain = symbol("psl_registrable_domain", RegistrableDomain.self)

    /// The registered domain of a host name: `example.co.uk` for `www.example.co.uk`.
    ///
    /// `nil` for a public suffix itself and for a single label. Not for addresses.
    ///
    /// - Parameter host: Lower case, ASCII.
    package static func registrableDomain(of host: String) -> String? {
        guard let domain, let list = builtIn?() else { return nil }
        return host.withCString { host in domain(list, host).map { String(cString: $0) } }
    }

    /// Whether two hosts have one owner. Addresses, and names without a registered domain, match only themselves.
    package static func areRelated(_ one: ParsedURL, _ other: ParsedURL) -> Bool {
        if one.host == other.host { return true }
        guard one.address == nil, other.address == nil, let domain = registrableDomain(of: one.host) else {
            return false
        }
        return domain == registrableDomain(of: other.host)
    }
}
