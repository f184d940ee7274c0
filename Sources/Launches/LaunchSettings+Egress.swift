package import Core

/// Where webhooks may go, asked when one is set and again when it is sent.
extension LaunchSettings {
    /// Plain http reaches what the operator named, if anything.
    func egress(for url: ParsedURL) -> EgressPolicy {
        var egress = egress
        guard !url.isSecure else { return egress }
        egress.allowsPublic = false
        if !allowsHTTP { egress.allowed = [] }
        return egress
    }

    /// Why nothing could ever be sent to a URL, as far as it tells by itself, and what to do; nil where something could.
    ///
    /// A name has its addresses only when it is looked up, so it is judged when something is sent.
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
            ? "Plain http goes only where the operator allows it: use https, \(Self.orAllow(address))."
            : "The service does not send to \(url.host): use a public address, \(Self.orAllow(address))."
    }

    private static func orAllow(_ address: IPAddress) -> String {
        "or have the operator allow this one with --allow-egress \(CIDR(address.unmapped, address.unmapped.bitWidth))"
    }
}

extension ParsedURL {
    /// The addresses that are known without a look-up: the host itself, or those of the own machine for the names that
    /// always mean it (RFC 6761 section 6.3).
    fileprivate var knownAddresses: [IPAddress] {
        if let address { return [address] }
        return host == "localhost" || host.hasSuffix(".localhost") ? [.v4(0x7F00_0001), .v6(1)] : []
    }
}
