package import Formats

/// `Repr-Digest` and `Content-Digest`: a structured dictionary of digests (RFC 9530, RFC 8941 section 3.2).
package enum DigestField {
    /// The algorithms that RFC 9530 calls active.
    private static let algorithms: [DigestAlgorithm] = [.sha256, .sha512]

    /// The supported digests of the field; other algorithms are ignored.
    ///
    /// - Parameter values: All lines of the field, in order.
    /// - Returns: `nil` if the field is malformed, or the value of a known algorithm has the wrong length.
    package static func parse(_ values: [String]) -> [DigestAlgorithm: [UInt8]]? {
        var digests: [DigestAlgorithm: [UInt8]] = [:]
        var scanner = ByteScanner(values.joined(separator: ","))
        scanner.skipBlanks()
        while !scanner.isAtEnd {
            guard let key = scanner.dictionaryKey(), let value = scanner.dictionaryValue() else { return nil }
            if let algorithm = algorithms.first(where: { $0.rawValue == key }) {
                guard case .bytes(let bytes) = value, bytes.count == algorithm.length else { return nil }
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
    package static func format(_ digests: [DigestAlgorithm: [UInt8]]) -> String {
        algorithms.compactMap { name in digests[name].map { "\(name.rawValue)=:\(Base64.encode($0)):" } }
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

    /// A byte sequence, or anything else up to the next comma; parameters are ignored.
    fileprivate mutating func dictionaryValue() -> DictionaryValue? {
        guard skip("=") else { return skipMember() ? .other : nil }
        guard skip(":") else { return skipMember() ? .other : nil }
        let text = take { $0 != 0x3A }
        guard skip(":"), let bytes = Base64.decodeFromField(text) else { return nil }
        // Only parameters may follow (RFC 8941 section 3.2).
        guard peek != 0x3B else { return skipMember() ? .bytes(bytes) : nil }
        skipBlanks()
        return isAtEnd || peek == 0x2C ? .bytes(bytes) : nil
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
