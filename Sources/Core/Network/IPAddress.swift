import Formats

/// An IPv4 or IPv6 address, without zone and without port.
package enum IPAddress: Hashable, Sendable {
    /// The four bytes in network order, the first the most significant.
    case v4(UInt32)
    /// The sixteen bytes in network order, the first the most significant.
    case v6(UInt128)

    /// Length in bits: 32 or 128.
    package var bitWidth: Int {
        switch self {
        case .v4: 32
        case .v6: 128
        }
    }

    /// Creates an address from four or sixteen bytes in network order, as in `sockaddr_in` and `sockaddr_in6`.
    package init?(bytes: some Collection<UInt8>) {
        switch bytes.count {
        case 4: self = .v4(bytes.reduce(0) { $0 << 8 | UInt32($1) })
        case 16: self = .v6(bytes.reduce(0) { $0 << 8 | UInt128($1) })
        default: return nil
        }
    }

    /// An IPv4-mapped IPv6 address (`::ffff:0:0/96`) as the IPv4 address to which packets would be sent.
    package var unmapped: IPAddress {
        guard case .v6(let value) = self, value >> 32 == 0xFFFF else { return self }
        return .v4(UInt32(truncatingIfNeeded: value))
    }

    package var isLoopback: Bool {
        switch unmapped {
        case .v4(let value): value >> 24 == 127
        case .v6(let value): value == 1
        }
    }

    package var isUnspecified: Bool {
        switch unmapped {
        case .v4(let value): value == 0
        case .v6(let value): value == 0
        }
    }
}

// MARK: - Text

extension IPAddress: CustomStringConvertible {
    /// Parses the strict forms only: four decimal numbers without leading zeros, or RFC 4291 section 2.2. No brackets,
    /// no zone, none of the old one- to three-part or octal spellings.
    package init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8)
        if bytes.contains(UInt8(ascii: ":")) {
            guard let value = Self.parseV6(bytes[...]) else { return nil }
            self = .v6(value)
        } else {
            guard let value = Self.parseV4(bytes[...]) else { return nil }
            self = .v4(value)
        }
    }

    /// Dotted decimal, or the canonical form of RFC 5952.
    package var description: String {
        switch self {
        case .v4(let value):
            return (0..<4).map { String(value >> (24 - 8 * UInt32($0)) & 0xFF) }.joined(separator: ".")
        case .v6(let value) where value >> 32 == 0xFFFF:
            return "::ffff:\(IPAddress.v4(UInt32(truncatingIfNeeded: value)))"
        case .v6(let value):
            return Self.format((0..<8).map { UInt16(truncatingIfNeeded: value >> (112 - 16 * UInt128($0))) })
        }
    }

    private static func parseV4(_ bytes: ArraySlice<UInt8>) -> UInt32? {
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var value: UInt32 = 0
        for part in parts {
            guard (1...3).contains(part.count), part.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            guard part.count == 1 || part.first != UInt8(ascii: "0") else { return nil }
            let number = part.reduce(0) { $0 * 10 + UInt32($1 - 0x30) }
            guard number <= 255 else { return nil }
            value = value << 8 | number
        }
        return value
    }

    private static func parseV6(_ bytes: ArraySlice<UInt8>) -> UInt128? {
        guard let gap = firstGap(in: bytes) else {
            guard let groups = groups(bytes), groups.count == 8 else { return nil }
            return join(groups)
        }
        let rest = bytes[(gap + 2)...]
        guard firstGap(in: rest) == nil, rest.first != UInt8(ascii: ":"),
            let front = groups(bytes[..<gap], last: false), let back = groups(rest), front.count + back.count <= 7
        else { return nil }
        return join(front + Array(repeating: 0, count: 8 - front.count - back.count) + back)
    }

    private static func firstGap(in bytes: ArraySlice<UInt8>) -> Int? {
        bytes.indices.dropLast().first { bytes[$0] == UInt8(ascii: ":") && bytes[$0 + 1] == UInt8(ascii: ":") }
    }

    /// The 16-bit groups of a text without `::`; the text may end with an IPv4 address.
    private static func groups(_ bytes: ArraySlice<UInt8>, last: Bool = true) -> [UInt16]? {
        guard !bytes.isEmpty else { return [] }
        let parts = bytes.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        var result: [UInt16] = []
        for (index, part) in parts.enumerated() {
            if part.contains(UInt8(ascii: ".")) {
                guard last, index == parts.count - 1, let value = parseV4(part) else { return nil }
                result += [UInt16(value >> 16), UInt16(value & 0xFFFF)]
            } else {
                guard (1...4).contains(part.count), let group = hexadecimal(part) else { return nil }
                result.append(group)
            }
        }
        return result
    }

    private static func hexadecimal(_ bytes: ArraySlice<UInt8>) -> UInt16? {
        var value: UInt16 = 0
        for byte in bytes {
            guard let digit = byte.hexadecimalValue else { return nil }
            value = value << 4 | UInt16(digit)
        }
        return value
    }

    private static func join(_ groups: [UInt16]) -> UInt128 { groups.reduce(0) { $0 << 16 | UInt128($1) } }

    private static func format(_ groups: [UInt16]) -> String {
        var best = 0..<0
        var start = 0
        while start < 8 {
            var end = start
            while end < 8 && groups[end] == 0 { end += 1 }
            if end - start > max(1, best.count) { best = start..<end }
            start = max(end, start + 1)
        }
        func text(_ range: Range<Int>) -> String {
            range.map { String(groups[$0], radix: 16) }.joined(separator: ":")
        }
        return best.isEmpty ? text(0..<8) : text(0..<best.lowerBound) + "::" + text(best.upperBound..<8)
    }
}

// MARK: - Ranges

/// All addresses that share their first bits (RFC 4632).
package struct CIDR: Hashable, Sendable, CustomStringConvertible {
    package let base: IPAddress
    package let prefixLength: Int

    /// The range that starts at `base` with the bits after the prefix cleared. An excessive length is reduced.
    package init(_ base: IPAddress, _ prefixLength: Int) {
        self.prefixLength = min(max(prefixLength, 0), base.bitWidth)
        self.base = Self.masked(base, self.prefixLength)
    }

    /// Parses `127.0.0.0/8`, `::1/128`, or a single address. Bits after the prefix must be zero, because other ranges
    /// are likely mistakes.
    package init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let address = IPAddress(first) else { return nil }
        var length = address.bitWidth
        if parts.count == 2 {
            let digits = parts[1].utf8
            guard (1...3).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }),
                let number = Int(parts[1]), number <= address.bitWidth
            else { return nil }
            length = number
        }
        self.init(address, length)
        guard base == address else { return nil }
    }

    package func contains(_ address: IPAddress) -> Bool {
        address.bitWidth == base.bitWidth && Self.masked(address, prefixLength) == base
    }

    /// Whether the range has only one address.
    package var isSingleAddress: Bool { prefixLength == base.bitWidth }

    package var description: String { "\(base)/\(prefixLength)" }

    private static func masked(_ address: IPAddress, _ length: Int) -> IPAddress {
        switch address {
        case .v4(let value): .v4(length == 0 ? 0 : value & (UInt32.max << UInt32(32 - length)))
        case .v6(let value): .v6(length == 0 ? 0 : value & (UInt128.max << UInt128(128 - length)))
        }
    }
}
