/// Percent-encoding of bytes (RFC 3986 section 2.1).
package enum PercentCoding {
    /// The bytes with `%XX` decoded. A `%` without two digits is kept, and makes the text malformed.
    package static func decode(_ encoded: some Collection<UInt8>) -> (bytes: [UInt8], isWellFormed: Bool) {
        var (bytes, isWellFormed): ([UInt8], Bool) = ([], true)
        bytes.reserveCapacity(encoded.count)
        var rest = Array(encoded)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2).compactMap(\.hexadecimalValue)
            if digits.count == 2 {
                bytes.append(digits[0] << 4 | digits[1])
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
                isWellFormed = false
            }
        }
        return (bytes, isWellFormed)
    }

    /// The text with all other bytes encoded as `%XX`.
    package static func encode(_ text: String, keeping keeps: (UInt8) -> Bool) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var result: [UInt8] = []
        for byte in text.utf8 {
            if keeps(byte) {
                result.append(byte)
            } else {
                result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// A path with its parts encoded, and its slashes kept.
    package static func encode(path: String) -> String {
        encode(path) { isUnreserved($0) || $0 == UInt8(ascii: "/") }
    }

    /// Whether the byte has the same meaning anywhere in a URL (RFC 3986 section 2.3).
    package static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: true
        default: false
        }
    }
}

extension UInt8 {
    /// The value of a hexadecimal digit of either case; `nil` for any other byte.
    package var hexadecimalValue: UInt8? {
        switch self {
        case 0x30...0x39: self - 0x30
        case 0x41...0x46: self - 0x41 + 10
        case 0x61...0x66: self - 0x61 + 10
        default: nil
        }
    }
}
