/// The two alphabets of RFC 4648: section 4 (padded) and section 5 (for URLs, here without padding).
private struct Alphabet {
    let digits: [UInt8]
    let isPadded: Bool
    /// The value of each byte as a digit, 255 for what is none.
    let values: [UInt8]

    init(_ digits: String, isPadded: Bool) {
        self.digits = Array(digits.utf8)
        self.isPadded = isPadded
        var values = [UInt8](repeating: 255, count: 256)
        for (value, digit) in self.digits.enumerated() { values[Int(digit)] = UInt8(value) }
        self.values = values
    }

    static let standard = Alphabet(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", isPadded: true)
    static let url = Alphabet(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", isPadded: false)

    func encode(_ bytes: [UInt8]) -> String {
        var result: [UInt8] = []
        result.reserveCapacity((bytes.count + 2) / 3 * 4)
        var index = 0
        while index < bytes.count {
            let left = min(3, bytes.count - index)
            var group: UInt32 = 0
            for offset in 0..<3 { group = group << 8 | (offset < left ? UInt32(bytes[index + offset]) : 0) }
            for place in 0...left { result.append(digits[Int(group >> UInt32(18 - 6 * place)) & 63]) }
            if isPadded { for _ in left..<3 { result.append(0x3D) } }
            index += 3
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Strict: no other characters, no white space, exact padding, unused bits zero, so that each value has one text.
    func decode(_ text: String) -> [UInt8]? {
        var digits = Array(text.utf8)
        if isPadded {
            guard digits.count.isMultiple(of: 4) else { return nil }
            for _ in 0..<2 where digits.last == 0x3D { digits.removeLast() }
        }
        guard digits.count % 4 != 1 else { return nil }
        var result: [UInt8] = []
        result.reserveCapacity(digits.count * 3 / 4)
        var bits: UInt32 = 0
        var count = 0
        for digit in digits {
            let value = values[Int(digit)]
            guard value != 255 else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 6
            if count >= 8 {
                count -= 8
                result.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        guard bits & (1 << UInt32(count) - 1) == 0 else { return nil }
        return result
    }
}

extension [UInt8] {
    /// The bytes in base64 with padding (RFC 4648 section 4).
    package var base64: String { Alphabet.standard.encode(self) }

    /// The bytes in base64url without padding (RFC 4648 section 5).
    package var base64URL: String { Alphabet.url.encode(self) }

    /// Reads padded base64; `nil` for anything that ``base64`` would not write.
    package init?(base64 text: String) {
        guard let bytes = Alphabet.standard.decode(text) else { return nil }
        self = bytes
    }

    /// Reads unpadded base64url; `nil` for anything that ``base64URL`` would not write.
    package init?(base64URL text: String) {
        guard let bytes = Alphabet.url.decode(text) else { return nil }
        self = bytes
    }
}
