import Core
import TestSupport
import Testing

/// The end of a body, and the origin's description of it: O-01 to O-13.
extension Misdeed {
    private static let ok = "HTTP/1.1 200 OK"
    private static let tag = "ETag: \"v1\""

    /// Contents below 64 KiB are not kept after a broken attempt.
    private static let (kept, length) = (100_000, 200_000)
    private static let whole = Resource.generated(seed: 1, length: length)

    /// The first bytes of the resource, announced as the whole.
    private static func cut(_ ending: Misbehaviour.Ending) -> Misbehaviour {
        .raw(message(ok, "Content-Length: \(length)", tag, body: bytes(0..<kept)), ending)
    }

    private static func chunked(_ rest: String, first: Int = kept) -> [UInt8] {
        message(ok, "Transfer-Encoding: chunked", tag, body: Array("\(String(first, radix: 16))\r\n".utf8))
            + bytes(0..<first) + Array(rest.utf8)
    }

    static let framing: [Misdeed] = [
        Misdeed(
            "O-01", "announces 200,000 bytes, sends 100,000 and closes", of: whole, turns: [[cut(.finish)]],
            owed: .content(
                bytes(0..<length), attempts: 2, ranges: ["", "bytes=\(kept)-"], faults: ["networkConnectionLost", ""]
            ) {
                try require($0.resumptions == [kept], "\($0.resumptions)")
                try require($0.requests[1].fields["If-Range"] == "\"v1\"", "\($0.requests[1].fields)")
            }),
        Misdeed(
            "O-01", "announces 200 bytes, sends 100 and closes",
            turns: [[.raw(message(ok, "Content-Length: 200", tag, body: bytes(0..<100)))]],
            owed: .content(bytes(0..<200), attempts: 2, ranges: ["", ""], faults: ["networkConnectionLost", ""])),
        Misdeed(id: "O-02", does: "announces 50 bytes and sends 100") { scene in
            scene.origin.serve(
                "/a", .text(""),
                turns: [[.raw(message(ok, "Content-Length: 50", tag, body: bytes(0..<100)), .silence)]])
            try await Owed.content(bytes(0..<50), attempts: 1).holds(of: try await scene.download("/a"), on: scene)
            // The 50 excess bytes belong to no response.
            scene.origin.serve("/b", .text("another"))
            let other = try await Owed.content(Array("another".utf8), attempts: 1)
                .holds(of: try await scene.download("/b"), path: "/b", on: scene)
            try require(other.requests[0].connection != 1, "the connection was used again")
        },
        Misdeed(
            "O-03", "ends within a chunk", of: whole, turns: [[.raw(chunked("", first: kept).dropLast(30).map { $0 })]],
            owed: .content(
                bytes(0..<length), attempts: 2, ranges: ["", "bytes=\(kept - 30)-"],
                faults: ["networkConnectionLost", ""])),
        Misdeed(
            "O-03", "ends without the last chunk", of: whole, turns: [[.raw(chunked("\r\n"))]],
            owed: .content(
                bytes(0..<length), attempts: 2, ranges: ["", "bytes=\(kept)-"], faults: ["networkConnectionLost", ""])),
        Misdeed(
            "O-04", "names no length and closes early", turns: [[.raw(message(ok, tag, body: bytes(0..<100)))]],
            owed: .content(bytes(0..<100), attempts: 1) {
                try require($0.task["response"]["expectedContentLength"].isNull, "\($0.task["response"])")
            }),
        Misdeed(
            "O-04", "names no length and closes early, where a digest is expected",
            turns: [[.raw(message(ok, tag, body: bytes(0..<100)))]],
            task: ["expectedDigest": ["algorithm": "sha-256", "value": .string(Content.sha256(of: bytes(0..<200)))]],
            owed: .content(bytes(0..<200), attempts: 2, ranges: ["", ""])),
        Misdeed(
            "O-06", "resets within the body", of: whole, turns: [[cut(.reset)]],
            owed: .content(bytes(0..<length), attempts: 2, faults: ["networkConnectionLost", ""]) {
                try require(["bytes=\(kept)-", ""].contains($0.ranges[1]), "\($0.ranges)")
            }),
        lengths("O-07", ["50", "100"]), lengths("O-07", ["50, 100"]), lengths("O-07", ["+100"]),
        lengths("O-08", ["-5"]), lengths("O-08", ["abc"]),
        lengths("O-09", ["99999999999999999999999"]),
        Misdeed(id: "O-10", does: "names a length and sends chunks") { scene in
            let body = Array("c8\r\n".utf8) + bytes(0..<200) + Array("\r\n0\r\n\r\n".utf8)
            scene.origin.serve(
                "/a", .text(""),
                turns: [[.raw(message(ok, "Content-Length: 20", "Transfer-Encoding: chunked", body: body), .silence)]])
            try await Owed.content(bytes(0..<200), attempts: 1).holds(of: try await scene.download("/a"), on: scene)
            scene.origin.serve("/b", .text("another"))
            let other = try await Owed.content(Array("another".utf8), attempts: 1)
                .holds(of: try await scene.download("/b"), path: "/b", on: scene)
            try require(other.requests[0].connection != 1, "the connection was used again")
        },
        Misdeed(
            "O-11", "sends a chunk size that is no number",
            always: [.raw(message(ok, "Transfer-Encoding: chunked", body: Array("xyz\r\nabc\r\n0\r\n\r\n".utf8)))],
            owed: .failed(-1017)),
        Misdeed(
            "O-11", "sends a chunk size of 20 digits",
            always: [
                .raw(
                    message(
                        ok, "Transfer-Encoding: chunked", body: Array("FFFFFFFFFFFFFFFFFFFF\r\nabc\r\n0\r\n\r\n".utf8)))
            ],
            owed: .failed(-1017)),
        Misdeed(
            "O-12", "sends a body without end", always: [.endless], task: ["maximumContentLength": 1_000_000],
            owed: .failed(-1103) { try require($0.requests.count == 1, "asked again") }),
        Misdeed(
            "O-13", "announces 10 TiB",
            always: [.raw(message(ok, "Content-Length: 10995116277760", tag), .silence)],
            owed: .failed(-1103) { try require($0.task["countOfBytesReceived"] == 0, "\($0.task)") }),
    ]

    private static func lengths(_ id: String, _ values: [String]) -> Misdeed {
        Misdeed(
            id, "says Content-Length: \(values.joined(separator: " and "))",
            always: [
                .raw(
                    Array("\(ok)\r\n\(tag)\r\n".utf8)
                        + message(
                            values.map { "Content-Length: \($0)" }.joined(separator: "\r\n"), body: bytes(0..<100)))
            ],
            owed: .failed(-1017) { try require($0.requests.count == 1, "asked again") })
    }
}
