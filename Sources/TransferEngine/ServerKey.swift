import Base

/// The fingerprint of a certificate's public key, as pins name it.
enum ServerKey {
    /// `sha256/BASE64` of the SubjectPublicKeyInfo in a PEM certificate; nil where it is none.
    static func pin(ofPEM text: String) -> String? {
        guard let begin = text.firstRange(of: "-----BEGIN CERTIFICATE-----"),
            let end = text.firstRange(of: "-----END CERTIFICATE-----"), begin.upperBound < end.lowerBound,
            let certificate = [UInt8](base64: text[begin.upperBound..<end.lowerBound].filter { !$0.isWhitespace }),
            let key = publicKey(inDER: certificate)
        else { return nil }
        return "sha256/" + Digest.of(Array(key)).base64
    }

    /// The SubjectPublicKeyInfo, its own tag and length included (RFC 5280 section 4.1).
    static func publicKey(inDER certificate: [UInt8]) -> ArraySlice<UInt8>? {
        var outer = DER(certificate[...])
        guard let whole = outer.next(), whole.tag == 0x30 else { return nil }
        var signed = DER(whole.content)
        guard let body = signed.next(), body.tag == 0x30 else { return nil }
        var fields = DER(body.content)
        guard var field = fields.next() else { return nil }
        if field.tag == 0xA0 {  // version
            guard let serial = fields.next() else { return nil }
            field = serial
        }
        // After the serial number: signature algorithm, issuer, validity, subject, then the key.
        for _ in 0..<4 where fields.next() == nil { return nil }
        guard let key = fields.next(), key.tag == 0x30 else { return nil }
        return key.whole
    }

    private struct DER {
        struct Element {
            let tag: UInt8
            let content: ArraySlice<UInt8>
            let whole: ArraySlice<UInt8>
        }

        private var rest: ArraySlice<UInt8>

        init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

        mutating func next() -> Element? {
            guard rest.count >= 2 else { return nil }
            let start = rest.startIndex
            let first = rest[start + 1]
            var header = 2
            var length = Int(first)
            if first >= 0x80 {
                let count = Int(first & 0x7F)
                guard (1...3).contains(count), rest.count >= 2 + count else { return nil }
                length = rest[(start + 2)..<(start + 2 + count)].reduce(0) { $0 << 8 | Int($1) }
                header += count
            }
            guard rest.count >= header + length else { return nil }
            let whole = rest[start..<(start + header + length)]
            rest = rest[whole.endIndex...]
            return Element(tag: whole[start], content: whole[(start + header)...], whole: whole)
        }
    }
}
