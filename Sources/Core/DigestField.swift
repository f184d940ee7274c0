/// `Repr-Digest` and `Content-Digest`: a structured dictionary of digests (RFC 9530, RFC 8941 section 3.2).
package enum DigestField {
    /// The algorithms that RFC 9530 calls active.
    package enum Algorithm: String, Hashable, Sendable, CaseIterable {
        case sha256 = "sha-256"
        case sha512 = "sha-512"

        package var byteCount: Int { self == .sha256 ? 32 : 64 }
    }

    /// The digests given; other algorithms are passed over.
    ///
    /// - Parameter values: All lines of the field, in order.
    /// - Returns: Nil when the field is malformed, or a known algorithm's value is no digest of its length.
    package static func parse(_ values: [String]) -> [Algorithm: [UInt8]]? {
        var digests: [Algorithm: [UInt8]] = [:]
        var scanner = ByteScanner(values.joined(separator: ","))
        scanner.skipBlanks()
        while !scanner.isAtEnd {
            guard let key = scanner.dictionaryKey(), let value = scanner.dictionaryValue() else { return nil }
            if let algorithm = Algorithm(rawValue: key) {
                guard case .bytes(let bytes) = value, bytes.count == algorithm.byteCount else { return nil }
                digests[algorithm] = bytes
            }
            scanner.skipBlanks()
            guard !scanner.isAtEnd else { break }
            guard scanner.skip(",") else { return nil }
            scanner.skipBlanks()
            guard !scanner.isAtEnd else { return nil }
        }
        return digests
    }

    /// `sha-256=:…:`, algorithms in alphabetical order.
    package static func format(_ digests: [Algorithm: [UInt8]]) -> String {
        Algorithm.allCases.compactMap { name in digests[name].map { "\(name.rawValue)=:\(Base64Text.encode($0)):" } }
            .joined(separator: ", ")
    }
}

private enum DictionaryValue {
    case bytes([UInt8])
    case other
}

extension ByteScanner {
    /// `key` of RFC 8941 section 3.1.2.
    fileprivate mutating func dictionaryKey() -> String? {
        guard let first = peek, (0x61...0x7A).contains(first) || first == 0x2A else { return nil }
        let run = take {
            (0x61...0x7A).contains($0) || $0.isDigit || [0x5F, 0x2D, 0x2E, 0x2A].contains($0)
        }
        return String(decoding: run, as: UTF8.self)
    }

    /// A byte sequence, or anything else up to the next comma, parameters passed over.
    fileprivate mutating func dictionaryValue() -> DictionaryValue? {
        guard skip("=") else { return skipMember() ? .other : nil }
        guard skip(":") else { return skipMember() ? .other : nil }
        let text = take { $0 != 0x3A }
        guard skip(":"), let bytes = Base64Text.decode(text),
            peek == nil || peek == 0x2C || peek == 0x3B || peek == 0x20
        else { return nil }
        return skipMember() ? .bytes(bytes) : nil
    }

    private mutating func skipMember() -> Bool {
        while let byte = peek, byte != 0x2C {
            if byte == 0x22 {
                guard quotedBytes() != nil else { return false }
            } else {
                position += 1
            }
        }
        return true
    }
}

/// Base64 in header fields. Padding may be missing there (RFC 8941 section 4.2.7).
enum Base64Text {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
            for place in 0..<4 {
                text.append(place > group.count ? 0x3D : alphabet[Int(bits >> UInt32(18 - 6 * place) & 63)])
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        var digits = Array(text)
        for _ in 0..<2 where digits.last == 0x3D { digits.removeLast() }
        guard digits.count % 4 != 1, digits.count == text.count || text.count % 4 == 0 else { return nil }
        var bytes: [UInt8] = []
        var (bits, count): (UInt32, UInt32) = (0, 0)
        for digit in digits {
            guard let value = value(of: digit) else { return nil }
            bits = bits << 6 | value
            count += 6
            guard count >= 8 else { continue }
            count -= 8
            bytes.append(UInt8(truncatingIfNeeded: bits >> count))
        }
        return bytes
    }

    private static func value(of digit: UInt8) -> UInt32? {
        switch digit {
        case 0x41...0x5A: UInt32(digit - 0x41)
        case 0x61...0x7A: UInt32(digit - 0x61 + 26)
        case 0x30...0x39: UInt32(digit - 0x30 + 52)
        case 0x2B: 62
        case 0x2F: 63
        default: nil
        }
    }
}
