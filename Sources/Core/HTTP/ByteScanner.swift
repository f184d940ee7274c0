import Formats

/// Scans a header value byte by byte, so that canonical equivalence of `String` never affects its meaning.
struct ByteScanner {
    let bytes: [UInt8]
    var position = 0

    init(_ text: String) { bytes = Array(text.utf8) }

    /// The value without the optional white space around it (RFC 9110 section 5.5).
    init(trimming text: String) {
        let all = Array(text.utf8)
        guard let first = all.firstIndex(where: { !$0.isBlank }), let last = all.lastIndex(where: { !$0.isBlank })
        else {
            bytes = []
            return
        }
        bytes = Array(all[first...last])
    }

    var isAtEnd: Bool { position == bytes.count }
    var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// Skips the given byte; false without a skip if another byte follows.
    mutating func skip(_ byte: Character) -> Bool {
        guard let peek, peek == byte.asciiValue else { return false }
        position += 1
        return true
    }

    /// Skips a literal, ignoring ASCII case.
    mutating func skip(word: String) -> Bool {
        let wanted = Array(word.utf8)
        guard bytes.count - position >= wanted.count else { return false }
        for (offset, byte) in wanted.enumerated()
        where bytes[position + offset].asciiLowercased != byte.asciiLowercased { return false }
        position += wanted.count
        return true
    }

    mutating func skipBlanks() {
        while let peek, peek.isBlank { position += 1 }
    }

    mutating func take(while belongs: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let start = position
        while let peek, belongs(peek) { position += 1 }
        return bytes[start..<position]
    }

    /// Exactly `count` decimal digits.
    mutating func digits(_ count: Int) -> Int? {
        guard bytes.count - position >= count else { return nil }
        var value = 0
        for byte in bytes[position..<position + count] {
            guard byte.isDigit else { return nil }
            value = value * 10 + Int(byte - 0x30)
        }
        position += count
        return value
    }

    /// One or more digits without a sign; `nil` if there is none or the number does not fit.
    mutating func integer() -> Int64? {
        let run = take(while: \.isDigit)
        guard !run.isEmpty else { return nil }
        var value: Int64 = 0
        for byte in run {
            let (tenfold, tooLarge) = value.multipliedReportingOverflow(by: 10)
            let (sum, overflow) = tenfold.addingReportingOverflow(Int64(byte - 0x30))
            guard !tooLarge, !overflow else { return nil }
            value = sum
        }
        return value
    }

    /// A token (RFC 9110 section 5.6.2); `nil` if none starts here.
    mutating func token() -> String? {
        let run = take(while: \.isTokenCharacter)
        return run.isEmpty ? nil : String(decoding: run, as: UTF8.self)
    }

    /// A quoted string's bytes without quotes and escapes (RFC 9110 section 5.6.4).
    mutating func quotedBytes() -> [UInt8]? {
        guard skip("\"") else { return nil }
        var value: [UInt8] = []
        while let byte = peek {
            position += 1
            switch byte {
            case 0x22: return value
            case 0x5C:
                guard let escaped = peek else { return nil }
                position += 1
                value.append(escaped)
            default: value.append(byte)
            }
        }
        return nil
    }
}

extension UInt8 {
    var isDigit: Bool { (0x30...0x39).contains(self) }
    var isBlank: Bool { self == 0x20 || self == 0x09 }
    var isControl: Bool { self < 0x20 || self == 0x7F }
    var isLetter: Bool { (0x61...0x7A).contains(asciiLowercased) }
    var isTokenCharacter: Bool { Bytes.isToken(self) }
}
