/// Base64 (RFC 4648), with padding (section 4) or in the alphabet for URLs and without (section 5).
public enum Base64 {
    /// The text for these bytes, with padding.
    public static func encode(_ bytes: [UInt8]) -> String { Alphabet.standard.encode(bytes, isPadded: true) }

    /// The bytes of a padded text; `nil` for any text that ``encode(_:)`` would not write.
    public static func decode(_ text: String) -> [UInt8]? {
        let (digits, padding) = unpadded(text.utf8)
        return (digits.count + padding).isMultiple(of: 4) ? Alphabet.standard.decode(digits, isStrict: true) : nil
    }

    /// Base64 for URLs, without padding.
    package static func encodeForURL(_ bytes: [UInt8]) -> String { Alphabet.url.encode(bytes, isPadded: false) }

    /// The bytes of a text; `nil` for any text that ``encodeForURL(_:)`` would not write.
    package static func decodeFromURL(_ text: String) -> [UInt8]? {
        Alphabet.url.decode(Array(text.utf8)[...], isStrict: true)
    }

    /// Base64 as in header fields: padding may be missing, unused bits may be set (RFC 8941 section 4.2.7).
    package static func decodeFromField(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        let (digits, padding) = unpadded(text)
        guard padding == 0 || (digits.count + padding).isMultiple(of: 4) else { return nil }
        return Alphabet.standard.decode(digits, isStrict: false)
    }

    private static func unpadded(_ text: some Sequence<UInt8>) -> (digits: ArraySlice<UInt8>, padding: Int) {
        let all = Array(text)
        let padding = all.reversed().prefix(2).prefix { $0 == UInt8(ascii: "=") }.count
        return (all.dropLast(padding), padding)
    }
}

private struct Alphabet {
    static let standard = Alphabet(end: "+/")
    static let url = Alphabet(end: "-_")

    private let digits: [UInt8]
    /// The value of each byte as a digit; 255 for a byte that is no digit.
    private let values: [UInt8]

    private init(end: String) {
        digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789\(end)".utf8)
        var values = [UInt8](repeating: 255, count: 256)
        for (value, digit) in digits.enumerated() { values[Int(digit)] = UInt8(value) }
        self.values = values
    }

    func encode(_ bytes: [UInt8], isPadded: Bool) -> String {
        var result: [UInt8] = []
        result.reserveCapacity((bytes.count + 2) / 3 * 4)
        for index in stride(from: 0, to: bytes.count, by: 3) {
            let left = min(3, bytes.count - index)
            var group: UInt32 = 0
            for offset in 0..<3 { group = group << 8 | (offset < left ? UInt32(bytes[index + offset]) : 0) }
            for place in 0...left { result.append(digits[Int(group >> UInt32(18 - 6 * place)) & 63]) }
            if isPadded { for _ in left..<3 { result.append(UInt8(ascii: "=")) } }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// - Parameter isStrict: Unused bits must be zero, so that each value has one text.
    func decode(_ text: ArraySlice<UInt8>, isStrict: Bool) -> [UInt8]? {
        guard text.count % 4 != 1 else { return nil }
        var result: [UInt8] = []
        result.reserveCapacity(text.count * 3 / 4)
        var bits: UInt32 = 0
        var count: UInt32 = 0
        for digit in text {
            let value = values[Int(digit)]
            guard value != 255 else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 6
            guard count >= 8 else { continue }
            count -= 8
            result.append(UInt8(truncatingIfNeeded: bits >> count))
        }
        return isStrict && bits & (1 << count - 1) != 0 ? nil : result
    }
}
