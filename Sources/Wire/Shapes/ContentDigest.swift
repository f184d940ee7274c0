/// A digest and its algorithm. The value is in lower-case hex.
public struct ContentDigest: Shape {
    /// The algorithm of a digest.
    public struct Algorithm: WireName {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public static let sha256: Self = "sha-256"
        public static let sha512: Self = "sha-512"
        /// MD5. It detects accidents, not forgeries.
        public static let md5: Self = "md5"
        /// Git's name of a file, SHA-1 of `blob LENGTH`, a zero byte and the bytes. In the manifests of sets only.
        public static let gitBlobSHA1: Self = "git-blob-sha1"
        public static let known: [Self] = [.sha256, .sha512, .md5]

        /// The length of a digest in bytes; `nil` for an unknown algorithm.
        public var length: Int? {
            switch self {
            case .sha256: 32
            case .sha512: 64
            case .md5: 16
            default: nil
            }
        }
    }

    public var algorithm = Algorithm()
    /// Lower-case hex.
    public var value = ""

    public init() {}

    /// Creates a digest from its value in lower-case hex.
    public init(algorithm: Algorithm, value: String) {
        self.algorithm = algorithm
        self.value = value
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("algorithm", &algorithm)
        members.member("value", &value)
    }

    /// The value may be in hex of either case or in base64.
    public mutating func check(_ reader: inout ObjectReader) {
        if let hex = algorithm.hexadecimal(value) {
            value = hex
        } else if reader.presence(of: "value") == .present, let detail = algorithm.wanted {
            reader.report("value", detail)
        }
    }
}

extension ContentDigest.Algorithm {
    /// A description of valid values; `nil` for an unknown algorithm.
    var wanted: String? {
        length.map { "A \(self) digest has \(2 * $0) hex digits, or the same bytes in base64." }
    }

    /// The digest in lower-case hex, from hex or base64; `nil` if the text is invalid.
    func hexadecimal(_ text: String) -> String? {
        guard let length else { return nil }
        let isHex = text.utf8.allSatisfy { Bytes.isDigit($0) || (0x61...0x66).contains($0 | 0x20) }
        if text.utf8.count == 2 * length, isHex { return text.lowercased() }
        guard let bytes = Base64.decode(text), bytes.count == length else { return nil }
        return bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
