/// The parsers of bytes from outside: from clients, origins, receivers, buckets and the app's users.
///
/// A check calls a parser, and throws ``Broken`` if the parser breaks one of its rules. A parser has the name of its
/// corpus in `Tests/Fuzz`.
let parsers: [(name: String, check: @Sendable ([UInt8]) throws -> Void)] = [
    ("json", checkJSON), ("document", checkDocument), ("shape", checkShape), ("creation", checkCreation),
    ("configuration", checkConfiguration), ("xml", checkXML), ("metalink", checkMetalink), ("s3", checkS3),
    ("request", checkRequest), ("accept", checkAccept), ("lines", checkLines), ("response", checkResponse),
    ("range", checkRange), ("cache", checkCache), ("date", checkDate), ("time", checkTime), ("amount", checkAmount),
    ("cookie", checkCookie), ("disposition", checkDisposition), ("challenge", checkChallenge), ("digest", checkDigest),
    ("base64", checkBase64), ("percent", checkPercent), ("url", checkURL), ("address", checkAddress),
    ("sse", checkServerSentEvents), ("webhook", checkWebhook), ("launch", checkLaunch), ("resume", checkResumeData),
    ("expansion", checkExpansion), ("glob", checkGlob),
]

/// A rule that a parser broke.
struct Broken: Error {
    let rule: String
}

func hold(_ condition: Bool, _ rule: @autoclosure () -> String) throws {
    if !condition { throw Broken(rule: rule()) }
}

/// The text of a header field, with invalid UTF-8 repaired, because the parsers receive text.
func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

/// The lines of an input, without their ends.
func lines(_ bytes: [UInt8]) -> [[UInt8]] {
    bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map(Array.init)
}

/// The first byte of an input chooses an element, `A` the first one; the rest is for the parser.
func choose<Element>(_ elements: [Element], by bytes: [UInt8]) -> (Element, [UInt8])? {
    guard let first = bytes.first, let index = Int(exactly: Int(first) - 0x41), elements.indices.contains(index) else {
        return nil
    }
    return (elements[index], Array(bytes.dropFirst()))
}
