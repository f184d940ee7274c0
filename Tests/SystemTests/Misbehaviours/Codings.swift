import Core
import TestSupport
import Testing

/// Unrequested codings: O-31 to O-36. No coding is ever removed, so the received bytes are stored.
extension Misdeed {
    /// gzip of "hello\n".
    private static let hello: [UInt8] = [
        0x1F, 0x8B, 0x08, 0, 0, 0, 0, 0, 0, 0x03, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0xE7, 0x02, 0, 0x20, 0x30, 0x3A, 0x36,
        0x06, 0, 0, 0,
    ]

    /// Twenty megabytes of zeros as gzip: a literal, then one match after the other.
    private static let bomb: [UInt8] = {
        // A dynamic block would be smaller; fixed codes suffice: literal 0, then matches of 258 bytes at distance 1.
        var bits: [Bool] = [true, true, false]
        func code(_ value: Int, _ count: Int) {
            for bit in (0..<count).reversed() { bits.append(value >> bit & 1 == 1) }
        }
        code(0x30, 8)
        let matches = 77_520
        for _ in 0..<matches {
            code(0xC5, 8)  // length 258
            code(0, 5)  // distance 1
        }
        code(0, 7)
        var body: [UInt8] = []
        for start in stride(from: 0, to: bits.count, by: 8) {
            var byte: UInt8 = 0
            for place in 0..<min(8, bits.count - start) where bits[start + place] { byte |= 1 << UInt8(place) }
            body.append(byte)
        }
        let length = UInt32(1 + matches * 258)
        return [0x1F, 0x8B, 0x08, 0, 0, 0, 0, 0, 0, 0x03] + body + [0, 0, 0, 0]
            + (0..<4).map { UInt8(truncatingIfNeeded: length >> UInt32(8 * $0)) }
    }()

    /// Stored unchanged, with the coding in the response's fields.
    private static func kept(
        _ id: String, _ does: String, _ body: [UInt8], coding: String = "gzip", isAnnounced: Bool = true,
        task: [String: JSON] = [:]
    ) -> Misdeed {
        let length = isAnnounced ? "Content-Length: \(body.count)" : "Connection: close"
        let head = message("HTTP/1.1 200 OK", "Content-Encoding: \(coding)", "ETag: \"v1\"", length)
        return Misdeed(
            id, does, always: [.raw(head + body)], task: task,
            owed: .content(body, attempts: 1) {
                try require($0.requests[0].fields["Accept-Encoding"] == "identity", "\($0.requests[0].fields)")
                try require(
                    $0.requests[0].fields["User-Agent"]?.hasPrefix("urlsessiond/") == true, "\($0.requests[0].fields)")
                try require($0.field("Content-Encoding") == coding, "\($0.task["response"])")
            })
    }

    /// Refused: a transfer coding hides the end of the content.
    private static func refused(_ id: String, _ does: String, _ coding: String, _ body: [UInt8]) -> Misdeed {
        let chunk = Array((String(body.count, radix: 16) + "\r\n").utf8) + body + Array("\r\n0\r\n\r\n".utf8)
        return Misdeed(
            id, does, always: [.raw(message("HTTP/1.1 200 OK", "Transfer-Encoding: \(coding)", body: chunk))],
            owed: .failed(-1017))
    }

    static let codings: [Misdeed] = [
        kept("O-31", "sends gzip to whom it should not", hello),
        Misdeed(
            "O-31", "sends gzip and is cut",
            of: Resource(.bytes(hello), etag: "\"v1\"").with {
                $0.fields.append("Content-Encoding", "gzip")
            },
            turns: [[.cut(after: 10)]], owed: .content(hello, attempts: 2, ranges: ["", ""])),
        kept("O-32", "sends gzip that is cut, without a length", Array(hello.dropLast(9)), isAnnounced: false),
        Misdeed(
            "O-32", "sends gzip that is cut, without a length, where a digest is expected",
            of: Resource(.bytes(hello)),
            turns: [
                [.raw(message("HTTP/1.1 200 OK", "Content-Encoding: gzip", body: Array(hello.dropLast(9))))]
            ],
            task: ["expectedDigest": ["algorithm": "sha-256", "value": .string(Content.sha256(of: hello))]],
            owed: .content(hello, attempts: 2, ranges: ["", ""])),
        kept("O-33", "sends gzip with a wrong checksum", hello.dropLast(8) + [1, 2, 3, 4] + hello.suffix(4)),
        kept("O-34", "says gzip of what is not", bytes(0..<200)),
        refused("O-34", "says gzip of the connection, of what is not", "gzip, chunked", bytes(0..<200)),
        kept(
            "O-35", "stacks twenty codings", hello, coding: Array(repeating: "gzip", count: 20).joined(separator: ", ")),
        refused(
            "O-35", "stacks twenty codings of the connection",
            (Array(repeating: "gzip", count: 20) + ["chunked"]).joined(separator: ", "), hello),
        kept("O-36", "sends a bomb", bomb, task: ["maximumContentLength": .integer(bomb.count)]),
        refused("O-36", "sends a bomb as a coding of the connection", "gzip, chunked", bomb),
    ]
}
