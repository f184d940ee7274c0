import Base
import Core
import Formats
import TestSupport
import Testing

/// Responses to requests that resume: O-14 to O-30.
extension Misdeed {
    private static let whole = Resource.generated(seed: 1, length: 200000)
    private static let part = "HTTP/1.1 206 Partial Content"
    private static let tag = "ETag: \"v1\""

    /// The first 100000 of 200000 bytes, with these fields.
    private static func half(_ lines: String...) -> Misbehaviour {
        .raw(
            message(
                "HTTP/1.1 200 OK", "Content-Length: 200000", lines.joined(separator: "\r\n"), body: bytes(0..<100000)))
    }

    /// A download cut at 100000, whose second request meets `second`, and which must restart with a third.
    private static func distrusted(
        _ id: String, _ does: String, _ second: [UInt8], of resource: Resource = whole, seed: UInt64 = 1
    ) -> Misdeed {
        Misdeed(
            "\(id)", does, of: resource, turns: [[half(tag)], [.raw(second, .silence)]],
            owed: .content(bytes(0..<200000, seed: seed), ranges: ["", "bytes=100000-", ""]) {
                try require($0.resumptions == [0], "\($0.resumptions)")
            })
    }

    /// A download cut at 100000 whose validators permit no range.
    private static func unresumable(_ id: String, _ does: String, _ lines: String...) -> Misdeed {
        Misdeed(
            id, does, of: whole, turns: [[half(lines.joined(separator: "\r\n"))]],
            owed: .content(bytes(0..<200000), attempts: 2, ranges: ["", ""]) {
                try require(!$0.requests[1].fields.contains("If-Range"), "\($0.requests[1].fields)")
                try require($0.resumptions == [0], "\($0.resumptions)")
            })
    }

    /// A file that a 416 completes and that differs from the expected digest: it is fetched again, once.
    ///
    /// - Parameter again: Whether it is wrong again.
    private static func wholeButWrong(_ algorithm: DigestAlgorithm, again: Bool = false) -> Misdeed {
        let digest = Digest(algorithm)
        digest.update(bytes(0..<200000, seed: 2))
        let name = algorithm.rawValue
        let ranges = ["", "bytes=200000-", ""]
        return Misdeed(
            "O-24", "says 416 when all is there, which \(name) says is something else\(again ? ", twice" : "")",
            of: Resource(.generated(seed: again ? 1 : 2, length: 200000), etag: "\"v1\""),
            turns: [
                [
                    .raw(
                        message(
                            "HTTP/1.1 200 OK", "Transfer-Encoding: chunked", tag,
                            body: Array("30d40\r\n".utf8) + bytes(0..<200000)))
                ],
                [.raw(message("HTTP/1.1 416 No", "Content-Range: bytes */200000", tag, "Content-Length: 0"))],
            ],
            task: [
                "expectedDigest": ["algorithm": .string(name), "value": .string(Content.hex(digest.finish()))]
            ],
            owed: again
                ? .failed(-1011, attempts: 3, ranges: ranges) {
                    try require($0.task["error"]["underlying"]["code"] == "digest-mismatch", "\($0.task)")
                }
                : .content(bytes(0..<200000, seed: 2), attempts: 3, ranges: ranges) {
                    try require($0.resumptions == [0], "\($0.resumptions)")
                })
    }

    private static let multipart: [UInt8] = {
        let start = Array("--x\r\nContent-Range: bytes 100000-199999/200000\r\n\r\n".utf8)
        let body = start + bytes(100000..<200000) + Array("\r\n--x--\r\n".utf8)
        return message(
            part, "Content-Type: multipart/byteranges; boundary=x", "Content-Length: \(body.count)", tag, body: body)
    }()

    /// Half of the content, broken off, without an announced length.
    private static let halfOfUnknownLength = Misbehaviour.raw(
        message(
            "HTTP/1.1 200 OK", "Transfer-Encoding: chunked", tag,
            body: Array("186a0\r\n".utf8) + bytes(0..<100000)))

    static let ranges: [Misdeed] = [
        Misdeed(
            "O-14", "knows no ranges and sends everything again", of: whole.with { $0.servesRanges = false },
            turns: [[half(tag)]],
            owed: .content(bytes(0..<200000), attempts: 2, ranges: ["", "bytes=100000-"]) {
                try require($0.resumptions == [0], "\($0.resumptions)")
            }),
        Misdeed(
            "O-15", "does not understand a tag in If-Range and sends everything again",
            turns: [
                [half(tag, "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT")],
                [
                    .raw(
                        message("HTTP/1.1 200 OK", "Content-Length: 200000", tag, body: bytes(0..<200000)))
                ],
            ],
            owed: .content(bytes(0..<200000), attempts: 2, ranges: ["", "bytes=100000-"]) {
                // With an entity tag the date must not be used (RFC 9110 section 13.1.5).
                try require($0.requests[1].fields["If-Range"] == "\"v1\"", "\($0.requests[1].fields)")
            }),
        Misdeed(
            "O-16", "gives the part from a lower offset",
            turns: [
                [half(tag)],
                [
                    .raw(
                        message(
                            part, "Content-Range: bytes 60000-199999/200000", "Content-Length: 140000", tag,
                            body: bytes(60000..<200000)))
                ],
            ],
            owed: .content(bytes(0..<200000), attempts: 2, ranges: ["", "bytes=100000-"]) {
                try require($0.resumptions == [60000], "\($0.resumptions)")
            }),
        Misdeed(
            "O-16", "gives the part from 0",
            turns: [
                [half(tag)],
                [
                    .raw(
                        message(
                            part, "Content-Range: bytes 0-199999/200000", "Content-Length: 200000", tag,
                            body: bytes(0..<200000)))
                ],
            ],
            owed: .content(bytes(0..<200000), attempts: 2, ranges: ["", "bytes=100000-"])),
        distrusted(
            "O-16", "gives the part from a higher offset",
            message(
                part, "Content-Range: bytes 120000-199999/200000", "Content-Length: 80000", tag,
                body: bytes(120000..<200000))),
        distrusted(
            "O-17", "gives a part without Content-Range",
            message(part, "Content-Length: 100000", tag, body: bytes(100000..<200000))),
        distrusted(
            "O-18", "gives a part whose length is not its range's",
            message(
                part, "Content-Range: bytes 100000-199999/200000", "Content-Length: 20000", tag,
                body: bytes(100000..<120000))),
        distrusted(
            "O-19", "gives a part of another total",
            message(
                part, "Content-Range: bytes 100000-199999/300000", "Content-Length: 100000", tag,
                body: bytes(100000..<200000))),
        distrusted(
            "O-19", "gives a part of a total that it does not know any more",
            message(
                part, "Content-Range: bytes 100000-199999/*", "Content-Length: 100000", tag,
                body: bytes(100000..<200000))),
        distrusted(
            "O-19", "gives a part in another unit",
            message(
                part, "Content-Range: items 100000-199999/200000", "Content-Length: 100000", tag,
                body: bytes(100000..<200000))),
        Misdeed(
            "O-19", "never knew the total",
            turns: [
                [halfOfUnknownLength],
                [
                    .raw(
                        message(
                            part, "Content-Range: bytes 100000-199999/*", "Content-Length: 100000", tag,
                            body: bytes(100000..<200000)))
                ],
            ],
            owed: .content(bytes(0..<200000), attempts: 2, ranges: ["", "bytes=100000-"]) {
                try require($0.resumptions == [100000], "\($0.resumptions)")
            }),
        Misdeed(
            "O-19", "never knew the total, and says that the part ends where numbers do",
            turns: [
                [halfOfUnknownLength],
                [
                    .raw(
                        message(
                            part, "Content-Range: bytes 0-9223372036854775807/*", "Content-Length: 100000", tag,
                            body: bytes(0..<100000)))
                ],
                [
                    .raw(
                        message("HTTP/1.1 200 OK", "Content-Length: 200000", tag, body: bytes(0..<200000)))
                ],
            ],
            owed: .content(bytes(0..<200000), ranges: ["", "bytes=100000-", ""])),
        distrusted(
            "O-20", "gives the part of a new version",
            message(
                part, "Content-Range: bytes 100000-199999/200000", "Content-Length: 100000", "ETag: \"v2\"",
                body: bytes(100000..<200000, seed: 2)),
            of: .generated(seed: 2, length: 200000), seed: 2),
        Misdeed(
            "O-21", "gives the part of a new version under the old tag, where a digest is expected",
            of: Resource(.generated(seed: 2, length: 200000), etag: "\"v1\""), turns: [[half(tag)]],
            task: [
                "expectedDigest": [
                    "algorithm": "sha-256", "value": .string(Content.sha256(of: bytes(0..<200000, seed: 2))),
                ]
            ],
            owed: .content(bytes(0..<200000, seed: 2), attempts: 3, ranges: ["", "bytes=100000-", ""])),
        Misdeed(
            "O-21", "gives the part of a new version under the old tag, and says its digest",
            of: Resource(.generated(seed: 2, length: 200000), etag: "\"v1\"").with {
                $0.fields.append(
                    "Repr-Digest",
                    DigestField.format([.sha256: Digest.of(bytes(0..<200000, seed: 2))]))
            },
            turns: [[half(tag)]],
            owed: .content(bytes(0..<200000, seed: 2), attempts: 3, ranges: ["", "bytes=100000-", ""])),
        unresumable("O-22", "has a weak tag", "ETag: W/\"v1\""),
        unresumable(
            "O-22", "has a weak tag beside a date", "ETag: W/\"v1\"", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"),
        distrusted(
            "O-22", "is a mirror whose tags have no quotes",
            message(
                part, "Content-Range: bytes 100000-199999/200000", "Content-Length: 100000", "ETag: v1",
                body: bytes(100000..<200000))),
        distrusted(
            "O-22", "is a mirror whose tags are weak",
            message(
                part, "Content-Range: bytes 100000-199999/200000", "Content-Length: 100000", "ETag: W/\"v1\"",
                body: bytes(100000..<200000))),
        distrusted(
            "O-23", "gives one part as multipart",
            multipart),
        Misdeed(
            "O-24", "says 416 with a page when all is there",
            turns: [
                [
                    .raw(
                        message(
                            "HTTP/1.1 200 OK", "Transfer-Encoding: chunked", tag,
                            body: Array("30d40\r\n".utf8) + bytes(0..<200000)))
                ],
                [
                    .raw(
                        message(
                            "HTTP/1.1 416 No", "Content-Range: bytes */200000", tag, "Content-Length: 9",
                            body: Array("no range\n".utf8)))
                ],
            ],
            owed: .content(bytes(0..<200000), attempts: 2, ranges: ["", "bytes=200000-"])),
        wholeButWrong(.md5), wholeButWrong(.sha512), wholeButWrong(.sha256), wholeButWrong(.sha512, again: true),
        distrusted(
            "O-24", "says 416 of a shorter resource, with a page",
            message(
                "HTTP/1.1 416 No", "Content-Range: bytes */100000", tag, "Content-Length: 9",
                body: Array("no range\n".utf8))),
        distrusted(
            "O-25", "says 416 without a total",
            message("HTTP/1.1 416 No", "Content-Length: 9", body: Array("no range\n".utf8))),
        Misdeed(id: "O-26", does: "redirects elsewhere when asked to go on, to the same") { scene in
            try await elsewhere(scene, whole, seed: 1, ranges: ["", "bytes=100000-"])
        },
        Misdeed(id: "O-26", does: "redirects elsewhere when asked to go on, to another version") { scene in
            try await elsewhere(scene, .generated(seed: 2, length: 200000), seed: 2, ranges: ["", "bytes=100000-"])
        },
        Misdeed(id: "O-26", does: "redirects elsewhere when asked to go on, to one that ignores If-Range") { scene in
            let other = Resource.generated(seed: 2, length: 200000).with { $0.honoursIfRange = false }
            try await elsewhere(scene, other, seed: 2, ranges: ["", "bytes=100000-"], there: ["bytes=100000-", ""])
        },
        unresumable("O-27", "was modified in the future", "Last-Modified: \(httpDate(secondsFromNow: 3600))"),
        unresumable(
            "O-27", "was modified this second", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
            "Date: Sun, 06 Nov 1994 08:49:37 GMT"),
        Misdeed(
            "O-28", "says 204 and sends a body", always: [.raw(message("HTTP/1.1 204 No Content", body: bytes(0..<9)))],
            owed: .content([], attempts: 1)),
        Misdeed(
            "O-28", "says 304 unasked, with a body",
            always: [.raw(message("HTTP/1.1 304 Not Modified", "Content-Length: 9", body: bytes(0..<9)))],
            owed: .status(304, page: [])),
        Misdeed(
            "O-28", "says 304 unasked, where a status may fail",
            always: [.raw(message("HTTP/1.1 304 Not Modified", "Content-Length: 9", body: bytes(0..<9)))],
            task: ["failOnHTTPError": true], owed: .failed(-1011)),
        Misdeed(
            "O-29", "says 200 with a Content-Range", of: whole,
            always: [.header("Content-Range", "bytes 50-99/1000")], owed: .content(bytes(0..<200000), attempts: 1)),
        Misdeed(
            "O-29", "says 200 with a Content-Range to a range",
            turns: [
                [half(tag)],
                [
                    .raw(
                        message(
                            "HTTP/1.1 200 OK", "Content-Range: bytes 100000-199999/200000", "Content-Length: 200000",
                            tag,
                            body: bytes(0..<200000)))
                ],
            ],
            owed: .content(bytes(0..<200000), attempts: 2, ranges: ["", "bytes=100000-"])),
        unresumable("O-30", "accepts no ranges", tag, "Accept-Ranges: none"),
    ]

    /// The path serves 100000 bytes, then redirects to another one.
    private static func elsewhere(
        _ scene: Scene, _ other: Resource, seed: UInt64, ranges: [String], there: [String] = ["bytes=100000-"]
    ) async throws {
        scene.origin.serve("/a", whole, turns: [[half(tag)]] + Array(repeating: [.redirect("/b")], count: 5))
        scene.origin.serve("/b", other)
        let owed = Owed.content(bytes(0..<200000, seed: seed), ranges: ranges)
        let ended = try await owed.holds(of: try await scene.download("/a"), on: scene)
        try require(ended.task["response"]["url"].string == scene.origin.url("/b"), "\(ended.task["response"])")
        let asked = scene.origin.requests("/b").map { $0.fields["Range"] ?? "" }
        try require(asked == there, "\(asked)")
    }
}
