package import Core

/// The egress rules of webhooks, checked when a webhook is set and again when it is sent.
extension LaunchSettings {
    /// Plain http may reach only the ranges that the operator allowed, if any.
    func egress(for url: ParsedURL) -> EgressPolicy {
        var egress = egress
        guard !url.isSecure else { return egress }
        egress.allowsPublic = false
        if !allowsHTTP { egress.allowed = [] }
        return egress
    }

    /// The reason for which nothing could ever be sent to a URL, and its remedy; `nil` if sending may be possible.
    ///
    /// The addresses of a name are known only after a look-up, so they are checked when sending.
    package func fault(of url: ParsedURL) -> String? {
        guard url.isSecure || allowsHTTP else {
            return "A webhook must be https, unless the operator allows http with --allow-http-webhooks."
        }
        let policy = egress(for: url)
        let addresses = url.knownAddresses
        guard let address = addresses.first, !addresses.contains(where: { policy.permits($0, port: url.port) }) else {
            return nil
        }
        let isPublic = egress.permits(address, port: url.port)
        return isPublic
            ? "Plain http is only for addresses that the operator allows: use https, \(Self.orAllow(address))."
            : "The service does not send to \(url.host): use a public address, \(Self.orAllow(address))."
    }

    private static func orAllow(_ address: IPAddress) -> String {
        "or have the operator allow this one with --allow-egress \(CIDR(address.unmapped, address.unmapped.bitWidth))"
    }
}

extension ParsedURL {
    /// The addresses known without a look-up: the host itself, or loopback for the names reserved for it (RFC 6761
    /// section 6.3).
    fileprivate var knownAddresses: [IPAddress] {
        if let address { return [address] }
        return host == "localhost" || host.hasSuffix(".localhost") ? [.v4(0x7F00_0001), .v6(1)] : []
    }
}
