/// The addresses that transfers and webhooks may reach.
///
/// A pure check of one binary address: for every result of the resolver, again at the socket, and again before each
/// request on a reused connection. Text is never checked, because it has too many spellings.
///
/// Sources: the IANA special-purpose address registries for IPv4 and IPv6 (RFC 6890), multicast (RFC 5771), and the
/// credential addresses of clouds.
package struct EgressPolicy: Sendable {
    /// Non-public ranges that the operator allows (`--allow-egress`).
    package var allowed: [CIDR]
    /// The addresses on which this service listens. An unspecified address stands for every address of the machine.
    package var ownListeners: [(IPAddress, UInt16)]
    /// The current addresses of the machine's interfaces, `nil` if the system does not report them. Read only if the
    /// port is that of a listener on an unspecified address.
    package var machineAddresses: @Sendable () -> Set<IPAddress>?
    /// Whether the public internet may be reached; if not, only the allowed ranges.
    package var allowsPublic = true

    package init(
        allowed: [CIDR] = [], ownListeners: [(IPAddress, UInt16)] = [],
        machineAddresses: @escaping @Sendable () -> Set<IPAddress>? = { [] }
    ) {
        self.allowed = allowed
        self.ownListeners = ownListeners
        self.machineAddresses = machineAddresses
    }

    /// Whether a connection to `address` and `port` is permitted.
    ///
    /// An IPv4-mapped IPv6 address is checked as its IPv4 address. Metadata addresses and the service's own listeners
    /// need an allowed range of exactly that address. NAT64 (`64:ff9b::/96`) is permitted if the operator allows the
    /// prefix *and* the embedded IPv4 address is permitted by itself.
    package func permits(_ address: IPAddress, port: UInt16) -> Bool {
        let address = address.unmapped
        if allowed.contains(where: { $0.isSingleAddress && $0.contains(address) }) { return true }
        if isOwnListener(address, port) || Self.metadata.contains(address) { return false }
        if allowed.contains(where: { $0.contains(address) }) {
            guard Self.translated.contains(address), case .v6(let value) = address else { return true }
            return permits(.v4(UInt32(truncatingIfNeeded: value)), port: port)
        }
        return allowsPublic && Self.isPublic(address)
    }

    private func isOwnListener(_ address: IPAddress, _ port: UInt16) -> Bool {
        ownListeners.contains { listener, listenerPort in
            guard listenerPort == port else { return false }
            return listener.isUnspecified ? isOfMachine(address) : listener.unmapped == address
        }
    }

    /// Whether a connection to the address ends at this machine. True if the system does not report its addresses.
    private func isOfMachine(_ address: IPAddress) -> Bool {
        if address.isLoopback || address.isUnspecified { return true }
        return machineAddresses()?.contains(address) ?? true
    }

    /// Whether an address is public according to the registries.
    package static func isPublic(_ address: IPAddress) -> Bool {
        switch address.unmapped {
        case .v4: !deniedV4.contains { $0.contains(address.unmapped) }
        case .v6: globalUnicast.contains(address) && !deniedV6.contains { $0.contains(address) }
        }
    }
}

extension EgressPolicy {
    /// IPv4 ranges that are never public.
    package static let deniedV4: [CIDR] = [
        v4(0, 0, 0, 0, 8),  // "this network"; 0.0.0.0 reaches the own machine on Linux
        v4(10, 0, 0, 0, 8),  // private (RFC 1918)
        v4(100, 64, 0, 0, 10),  // carrier-grade NAT (RFC 6598)
        v4(127, 0, 0, 0, 8),  // loopback
        v4(168, 63, 129, 16, 32),  // Azure's platform address: looks public, is not
        v4(169, 254, 0, 0, 16),  // link-local; credentials of clouds and containers
        v4(172, 16, 0, 0, 12),  // private (RFC 1918)
        v4(192, 0, 0, 0, 24),  // IETF protocol assignments
        v4(192, 0, 2, 0, 24),  // documentation
        v4(192, 31, 196, 0, 24),  // AS112
        v4(192, 52, 193, 0, 24),  // automatic multicast tunneling
        v4(192, 88, 99, 0, 24),  // retired 6to4 anycast
        v4(192, 168, 0, 0, 16),  // private (RFC 1918)
        v4(192, 175, 48, 0, 24),  // direct AS112
        v4(198, 18, 0, 0, 15),  // benchmarking
        v4(198, 51, 100, 0, 24),  // documentation
        v4(203, 0, 113, 0, 24),  // documentation
        v4(224, 0, 0, 0, 4),  // multicast
        v4(240, 0, 0, 0, 4),  // reserved, the broadcast address included
    ]

    /// The only IPv6 range with public unicast addresses. It excludes loopback, mapped and compatible IPv4, SIIT,
    /// ISATAP, NAT64, discard, unique-local, link-local, site-local and multicast addresses.
    package static let globalUnicast = v6(0x2000, 0, 0, 3)

    /// IPv6 ranges inside `2000::/3` that are never public.
    package static let deniedV6: [CIDR] = [
        v6(0x2001, 0, 0, 23),  // IETF assignments: Teredo, benchmarking, ORCHID, anycast
        v6(0x2001, 0xDB8, 0, 32),  // documentation
        v6(0x2002, 0, 0, 16),  // 6to4: carries any IPv4 address
        v6(0x2620, 0x4F, 0x8000, 48),  // direct AS112
        v6(0x3FFE, 0, 0, 16),  // returned 6bone space
        v6(0x3FFF, 0, 0, 20),  // documentation
    ]

    /// Addresses at which clouds provide credentials: a wide allowed range does not permit them.
    package static let metadata: Set<IPAddress> = [
        v4(169, 254, 169, 254, 32).base,  // most clouds
        v4(169, 254, 170, 2, 32).base, v4(169, 254, 170, 23, 32).base,  // container credentials of AWS
        v4(100, 100, 100, 200, 32).base,  // Alibaba
        v4(168, 63, 129, 16, 32).base,  // Azure
        .v6(0xFD00_0EC2 << 96 | 0x254),  // AWS
        .v6(0xFD20_00CE << 96 | 0x254),  // Google
        .v6(0xFD00_00C1 << 96 | 0xA9FE_A9FE),  // Oracle
    ]

    /// NAT64 with the well-known prefix (RFC 6052): the last 32 bits are an IPv4 address.
    private static let translated = CIDR(.v6(0x0064_FF9B << 96), 96)

    private static func v4(_ first: UInt32, _ second: UInt32, _ third: UInt32, _ fourth: UInt32, _ length: Int) -> CIDR
    {
        CIDR(.v4(first << 24 | second << 16 | third << 8 | fourth), length)
    }

    private static func v6(_ first: UInt128, _ second: UInt128, _ third: UInt128, _ length: Int) -> CIDR {
        CIDR(.v6(first << 112 | second << 96 | third << 80), length)
    }
}
