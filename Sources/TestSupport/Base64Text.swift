/// Base64 with the standard alphabet and padding (RFC 4648 section 4), independent of the product's implementation.
package enum Base64Text {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    package static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            var bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            bits <<= UInt32(8 * (3 - group.count))
            for position in 0..<4 {
                let digit = alphabet[Int(bits >> UInt32(18 - 6 * position) & 63)]
                text.append(position <= group.count ? digit : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes; `nil` if the text is not base64.
    package static func decode(_ text: String) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count % 4 == 0 else { return nil }
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: digits.count, by: 4) {
            let group = digits[start..<start + 4].prefix { $0 != UInt8(ascii: "=") }
            guard group.count >= 2, group.count == 4 || start + 4 == digits.count else { return nil }
            var bits: UInt32 = 0
            for digit in group {
                guard let value = alphabet.firstIndex(of: digit) else { return nil }
                bits = bits << 6 | UInt32(value)
            }
            bits <<= UInt32(6 * (4 - group.count))
            for position in 0..<group.count - 1 { bytes.append(UInt8(bits >> UInt32(16 - 8 * position) & 255)) }
        }
        return bytes
    }
}
