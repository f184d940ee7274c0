import Formats

/// The `Content-Disposition` header field (RFC 6266), its file name reduced to a safe base name.
package struct ContentDisposition: Hashable, Sendable {
    /// `attachment`, `inline`, …, in lower case.
    package var type: String
    /// `nil` if there is none or nothing safe remains of it.
    package var filename: String?

    package init(type: String = "attachment", filename: String?) {
        self.type = type
        self.filename = filename
    }

    /// Parses the field; `filename*` (RFC 8187) takes precedence over `filename`.
    package init?(_ text: String) {
        var scanner = ByteScanner(trimming: text)
        guard let type = scanner.token() else { return nil }
        self.type = type.asciiLowercased
        let parameters = scanner.parameters()
        let extended = parameters["filename*"].flatMap(Self.decodeExtended)
        let plain = parameters["filename"].map { String(decoding: $0, as: UTF8.self) }
        filename = extended.flatMap(FileName.safe) ?? plain.flatMap(FileName.safe)
    }

    /// The field as the service sends it: an ASCII name for all clients, and the exact name for clients with RFC 8187.
    package var headerValue: String {
        guard let filename else { return type }
        let isPlain = { (byte: UInt8) in (0x20...0x7E).contains(byte) && byte != 0x22 && byte != 0x5C && byte != 0x25 }
        let plain = String(decoding: filename.utf8.map { isPlain($0) ? $0 : 0x5F }, as: UTF8.self)
        guard !filename.utf8.allSatisfy(isPlain) else { return "\(type); filename=\"\(plain)\"" }
        let extended = PercentCoding.encode(filename) { $0.isAttributeCharacter }
        return "\(type); filename=\"\(plain)\"; filename*=UTF-8''\(extended)"
    }

    /// `charset'language'percent-encoded`, in UTF-8 or ISO-8859-1 (RFC 8187 section 3.2).
    private static func decodeExtended(_ value: [UInt8]) -> String? {
        let parts = value.split(separator: 0x27, maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        let bytes = PercentCoding.decode(parts[2]).bytes
        switch String(decoding: parts[0], as: UTF8.self).asciiLowercased {
        case "utf-8": return String(validating: bytes, as: UTF8.self)
        case "iso-8859-1": return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        default: return nil
        }
    }
}

extension UInt8 {
    /// `attr-char` of RFC 8187 section 3.2.1.
    fileprivate var isAttributeCharacter: Bool {
        isTokenCharacter && self != 0x25 && self != 0x27 && self != 0x2A
    }
}
