import Formats

extension [UInt8] {
    /// The bytes in base64 with padding (RFC 4648 section 4).
    package var base64: String { Base64.encode(self) }

    /// The bytes in base64url without padding (RFC 4648 section 5).
    package var base64URL: String { Base64.encodeForURL(self) }

    /// Reads padded base64; `nil` for anything that ``base64`` would not write.
    package init?(base64 text: String) {
        guard let bytes = Base64.decode(text) else { return nil }
        self = bytes
    }

    /// Reads unpadded base64url; `nil` for anything that ``base64URL`` would not write.
    package init?(base64URL text: String) {
        guard let bytes = Base64.decodeFromURL(text) else { return nil }
        self = bytes
    }
}
