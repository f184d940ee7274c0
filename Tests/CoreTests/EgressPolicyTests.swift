import Core
import Testing

@Suite struct IPAddressTests {
    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1"), ("255.255.255.255", "255.255.255.255"), ("0.0.0.0", "0.0.0.0"),
        ("::", "::"), ("::1", "::1"), ("1::", "1::"), ("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("fe80:0:0:0:1:2:3:4", "fe80::1:2:3:4"), ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
        ("::ffff:10.1.2.3", "::ffff:10.1.2.3"), ("::FFFF:a01:203", "::ffff:10.1.2.3"),
        ("64:ff9b::1.2.3.4", "64:ff9b::102:304"), ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
    ])
    func `Addresses are parsed strictly and written canonically`(text: String, canonical: String) throws {
        let address = try #require(IPAddress(text))
        #expect(address.description == canonical)
    }

    @Test func `Addresses are read from bytes in network order`() {
        #expect(IPAddress(bytes: [1, 2, 3, 4]) == IPAddress("1.2.3.4"))
        #expect(
            IPAddress(bytes: [0, 0x64, 0xFF, 0x9B] + [UInt8](repeating: 0, count: 8) + [1, 2, 3, 4])
                == IPAddress("64:ff9b::1.2.3.4"))
        #expect(IPAddress(bytes: [1, 2, 3]) == nil)
    }

    @Test(arguments: [
        "", "1", "127.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "256.1.1.1", "1.2.3.4 ", " 1.2.3.4", "1..2.3", "0x7f.0.0.1",
        "+1.2.3.4", ":", ":::", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "12345::", "g::", "::1%lo", "[::1]",
        "1.2.3.4::", "::1.2.3.4:5", "1:", ":1", "::1:", "1:2:3:4:5:6:7:1.2.3.4", "١.2.3.4",
    ])
    func `Other spellings are refused`(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test func `A range contains the addresses with its prefix`() throws {
        let loopback = try #require(CIDR("127.0.0.0/8"))
        #expect(loopback.contains(.v4(0x7FFF_FFFF)))
        #expect(!loopback.contains(.v4(0x8000_0000)))
        #expect(try #require(CIDR("0.0.0.0/0")).contains(.v4(.max)))
        #expect(try !#require(CIDR("::/0")).contains(.v4(1)))
        #expect(try #require(CIDR("::1/128")).isSingleAddress)
        #expect(try #require(CIDR("10.0.0.1")).description == "10.0.0.1/32")
    }

    @Test(arguments: [
        "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8", "::/129", "x/8", "::1/+8",
    ])
    func `Ranges with bits beyond their prefix are refused`(text: String) {
        #expect(CIDR(text) == nil)
    }
}

@Suite struct EgressPolicyTests {
    private let policy = EgressPolicy()

    private func permits(_ text: String, port: UInt16 = 443, _ policy: EgressPolicy) throws -> Bool {
        policy.permits(try #require(IPAddress(text)), port: port)
    }

    /// Both edges of every prefix, and the nearest addresses outside.
    @Test(
        arguments: [
            ("0.0.0.0", "0.255.255.255", nil, "1.0.0.0"),
            ("10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"),
            ("100.64.0.0", "100.127.255.255", "100.63.255.255", "100.128.0.0"),
            ("127.0.0.0", "127.255.255.255", "126.255.255.255", "128.0.0.0"),
            ("168.63.129.16", "168.63.129.16", "168.63.129.15", "168.63.129.17"),
            ("169.254.0.0", "169.254.255.255", "169.253.255.255", "169.255.0.0"),
            ("172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0"),
            ("192.0.0.0", "192.0.0.255", "191.255.255.255", "192.0.1.0"),
            ("192.0.2.0", "192.0.2.255", "192.0.1.255", "192.0.3.0"),
            ("192.31.196.0", "192.31.196.255", "192.31.195.255", "192.31.197.0"),
            ("192.52.193.0", "192.52.193.255", "192.52.192.255", "192.52.194.0"),
            ("192.88.99.0", "192.88.99.255", "192.88.98.255", "192.88.100.0"),
            ("192.168.0.0", "192.168.255.255", "192.167.255.255", "192.169.0.0"),
            ("192.175.48.0", "192.175.48.255", "192.175.47.255", "192.175.49.0"),
            ("198.18.0.0", "198.19.255.255", "198.17.255.255", "198.20.0.0"),
            ("198.51.100.0", "198.51.100.255", "198.51.99.255", "198.51.101.0"),
            ("203.0.113.0", "203.0.113.255", "203.0.112.255", "203.0.114.0"),
            ("224.0.0.0", "255.255.255.255", "223.255.255.255", nil),
            ("::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", nil, "2000::"),
            ("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::", nil),
            (
                "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                "2001:200::"
            ),
            ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db7:ffff::1", "2001:db9::"),
            ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:ffff::1", "2003::"),
            ("2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff", "2620:4f:7fff:ffff::1", "2620:4f:8001::"),
            ("3ffe::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "3ffd:ffff::1", "3fff:1000::"),
        ] as [(String, String, String?, String?)])
    func `Denied ranges end at their boundaries`(first: String, last: String, before: String?, after: String?) throws {
        #expect(try !permits(first, policy))
        #expect(try !permits(last, policy))
        if let before { #expect(try permits(before, policy)) }
        if let after { #expect(try permits(after, policy)) }
    }

    @Test(arguments: [
        "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b:1::1", "100::1",
        "fe80::1", "fec0::1", "fd00:ec2::254", "ff02::1", "5f00::1", "::ffff:169.254.169.254",
    ])
    func `No spelling of a private address is allowed`(text: String) throws {
        #expect(try !permits(text, policy))
    }

    @Test func `A mapped address is judged as its IPv4 address`() throws {
        #expect(try permits("::ffff:8.8.8.8", policy))
        let open = EgressPolicy(allowed: [try #require(CIDR("127.0.0.0/8"))])
        #expect(try permits("::ffff:127.0.0.1", open))
        #expect(try !permits("::1", open))
    }

    @Test func `A wide allowed range opens neither metadata addresses nor own listeners`() throws {
        let everything = EgressPolicy(
            allowed: [try #require(CIDR("0.0.0.0/0")), try #require(CIDR("::/0"))],
            ownListeners: [(.v4(0x7F00_0001), 8080), (.v6(0), 9090)])
        #expect(try permits("10.0.0.1", everything))
        #expect(try !permits("169.254.169.254", everything))
        #expect(try !permits("fd00:ec2::254", everything))
        #expect(try !permits("127.0.0.1", port: 8080, everything))
        #expect(try !permits("::ffff:127.0.0.1", port: 8080, everything))
        #expect(try permits("127.0.0.1", port: 8081, everything))
        #expect(try !permits("::1", port: 9090, everything))
        #expect(try !permits("127.5.5.5", port: 9090, everything))
    }

    @Test func `A listener on the wildcard address counts for every address of the machine`() throws {
        func policy(_ machine: Set<IPAddress>?) throws -> EgressPolicy {
            EgressPolicy(
                allowed: [try #require(CIDR("0.0.0.0/0")), try #require(CIDR("::/0"))],
                ownListeners: [(.v4(0), 8080), (.v4(0x7F00_0001), 9090)], machineAddresses: { machine })
        }
        let known = try policy([.v4(0x0A00_0001)])
        #expect(try !permits("10.0.0.1", port: 8080, known))
        #expect(try !permits("::ffff:10.0.0.1", port: 8080, known))
        #expect(try permits("10.0.0.1", port: 8081, known))
        #expect(try permits("10.0.0.1", port: 9090, known))
        #expect(try permits("10.0.0.2", port: 8080, known))
        #expect(try !permits("10.0.0.2", port: 8080, policy(nil)), "nobody knows whose address it is")
    }

    @Test func `A range of one address always allows it`() throws {
        let named = EgressPolicy(
            allowed: [try #require(CIDR("169.254.169.254/32")), try #require(CIDR("127.0.0.1"))],
            ownListeners: [(.v4(0x7F00_0001), 8080)])
        #expect(try permits("169.254.169.254", named))
        #expect(try permits("127.0.0.1", port: 8080, named))
        #expect(try !permits("169.254.169.253", named))
    }

    @Test func `An own listener on a public address is denied`() throws {
        let policy = EgressPolicy(ownListeners: [(.v4(0x0808_0808), 443)])
        #expect(try !permits("8.8.8.8", port: 443, policy))
        #expect(try permits("8.8.8.8", port: 80, policy))
    }

    @Test func `NAT64 is allowed only with a public address inside`() throws {
        let translating = EgressPolicy(allowed: [try #require(CIDR("64:ff9b::/96"))])
        #expect(try permits("64:ff9b::8.8.8.8", translating))
        #expect(try !permits("64:ff9b::10.0.0.1", translating))
        #expect(try !permits("64:ff9b::8.8.8.8", policy))
    }
}
