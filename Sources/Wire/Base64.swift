/// Base64 with padding (RFC 4648 section 4). Wire stands alone, and so has its own.
public enum Base64 {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// The text for these bytes.
    public static func encode(_ bytes: [UInt8]) -> String {
        var result: [UInt8] = []
        result.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0 as UInt32) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
            for place in 0...group.count { result.append(digits[Int(bits >> UInt32(18 - 6 * place)) & 63]) }
            for _ in group.count..<3 { result.append(UInt8(ascii: "=")) }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// The bytes of a text; `nil` for any text that ``encode(_:)`` would not write.
    public static func decode(_ text: String) -> [UInt8]? {
        var encoded = Array(text.utf8)
        guard encoded.count.isMultiple(of: 4) else { return nil }
        for _ in 0..<2 where encoded.last == UInt8(ascii: "=") { encoded.removeLast() }
        var result: [UInt8] = []
        result.reserveCapacity(encoded.count * 3 / 4)
        var bits: UInt32 = 0
        var count: UInt32 = 0
        for byte in encoded {
            guard let value = value(of: byte) else { return nil }
            bits = bits << 6 | value
            count += 6
            guard count >= 8 else { continue }
            count -= 8
            result.append(UInt8(truncatingIfNeeded: bits >> count))
        }
        return bits & (1 << count - 1) == 0 ? result : nil
    }

    private static func value(of digit: UInt8) -> UInt32? {
        switch digit {
        case 0x41...0x5A: UInt32(digit - 0x41)
        case 0x61...0x7A: UInt32(digit - 0x61 + 26)
        case 0x30...0x39: UInt32(digit - 0x30 + 52)
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
