import Foundation

@testable import Base
@testable import Core
@testable import Formats
@testable import Wire

/// A moment means the same when it is written again, has the form of RFC 3339 and is the one that glibc computes.
func checkTime(_ bytes: [UInt8]) throws {
    let text = text(bytes)
    let milliseconds = TimeText.parse(text)
    try hold((milliseconds == nil) == (TextRule.timestamp.violation(in: text) != nil), "Wire and Core disagree")
    if TextRule.timeOfDay.violation(in: text) == nil { try hold(text.utf8.count == 5, "the time of day \(text)") }
    guard let milliseconds else { return }
    let form = #/[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt]([0-9]{2}:){2}[0-9]{2}(\.[0-9]+)?([Zz]|[+\-][0-9]{2}:[0-9]{2})/#
    try hold(text.wholeMatch(of: form) != nil, "\(text) is no moment of RFC 3339")
    let written = Timestamp(milliseconds: milliseconds).rfc3339
    try hold(TimeText.parse(written) == milliseconds && written.utf8.count == 24, "\(written) is another moment")
    var parts = tm()
    let numbers = written.split { !$0.isNumber }.compactMap { Int32($0) }
    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (numbers[0] - 1900, numbers[1] - 1, numbers[2])
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[3], numbers[4], numbers[5])
    try hold(timegm(&parts) * 1000 + Int(numbers[6]) == milliseconds, "\(written) is not \(milliseconds)")
}

/// What is decoded is what would be encoded, and Foundation agrees.
func checkBase64(_ bytes: [UInt8]) throws {
    let text = text(bytes)
    if let decoded = Base64.decode(text) {
        try hold(Base64.encode(decoded) == text, "\(text) is not what would be written")
        try hold(Data(base64Encoded: text) == Data(decoded), "Foundation reads something else")
    }
    if let decoded = Base64.decodeFromURL(text) { try hold(Base64.encodeForURL(decoded) == text, "\(text) in a URL") }
    if let decoded = Base64.decodeFromField(bytes[...]) {
        try hold(Base64.decode(Base64.encode(decoded)) == decoded, "\(text) in a field")
    }
    try hold(Base64.decode(Base64.encode(bytes)) == bytes, "bytes change")
    try hold(Base64.decodeFromURL(Base64.encodeForURL(bytes)) == bytes, "bytes change in a URL")
    try hold(Base64.decodeFromField(Array(Base64.encode(bytes).utf8)[...]) == bytes, "bytes change in a field")
    try hold([UInt8](hexadecimal: bytes.hexadecimal) == bytes, "bytes change as digits")
    if let decoded = [UInt8](hexadecimal: text) { try hold(decoded.hexadecimal == text.lowercased(), "\(text)") }
}

func checkPercent(_ bytes: [UInt8]) throws {
    let (decoded, isWellFormed) = PercentCoding.decode(bytes)
    try hold(decoded.count <= bytes.count, "decoding adds bytes")
    if !bytes.contains(UInt8(ascii: "%")) { try hold(isWellFormed && decoded == bytes, "a plain text changes") }
    let text = text(bytes)
    let encoded = PercentCoding.encode(text, keeping: PercentCoding.isUnreserved)
    let again = PercentCoding.decode(encoded.utf8)
    try hold(again.isWellFormed && again.bytes == Array(text.utf8), "\(encoded) is another text")
}

/// glibc is the reference: `inet_pton` accepts the same addresses.
func checkAddress(_ bytes: [UInt8]) throws {
    let text = text(bytes)
    let address = IPAddress(text)
    if !bytes.contains(0) {
        var (four, six) = (in_addr(), in6_addr())
        let reference =
            if inet_pton(AF_INET, text, &four) == 1 {
                withUnsafeBytes(of: four) { IPAddress(bytes: Array($0)) }
            } else if inet_pton(AF_INET6, text, &six) == 1 {
                withUnsafeBytes(of: six) { IPAddress(bytes: Array($0)) }
            } else { IPAddress?.none }
        try hold(address == reference, "\(text) is \(reference.map { "\($0)" } ?? "no address")")
    }
    if let address {
        try hold(IPAddress("\(address)") == address, "\(address) is another address")
        _ = EgressPolicy.isPublic(address)
    }
    if let range = CIDR(text) {
        try hold(CIDR("\(range)") == range && range.contains(range.base), "\(range) is another range")
    }
}
