import Base
import Core
import TestSupport
import Testing

/// The heads of responses: O-37 to O-46.
extension Misdeed {
    private static let ok = "HTTP/1.1 200 OK"
    private static let many = 400_000

    private static func unparsable(_ id: String, _ does: String, _ bytes: [UInt8]) -> Misdeed {
        Misdeed(
            id, does, always: [.raw(bytes, .silence)],
            owed: .failed(-1017) {
                try require($0.requests.count == 1, "asked again")
                try require(!"\($0.task["error"])".contains("memory"), "\($0.task["error"])")
            })
    }

    static let heads: [Misdeed] = [
        Misdeed(
            "O-37", "speaks HTTP/0.9", always: [.raw(Array("hello\n".utf8))], owed: .failed(-1017)),
        unparsable("O-37", "has a status that is no number", message("HTTP/1.1 abc OK")),
        Misdeed(
            "O-38", "says status 999",
            always: [.raw(message("HTTP/1.1 999 Odd", "Content-Length: 3", body: [1, 2, 3]))],
            owed: .status(999, page: [1, 2, 3])),
        unparsable(
            "O-39", "has NUL in a header", message(ok, "X-One: a\u{0}b", "Content-Length: 2", body: [1, 2])),
        unparsable(
            "O-40", "sends header lines without end",
            Array("\(ok)\r\n".utf8)
                + (0..<many / 100).flatMap { Array("X-\($0): \(String(repeating: "a", count: 100))\r\n".utf8) }
        ),
        Misdeed(
            "O-40", "ends within its head", turns: [[.raw(Array("\(ok)\r\nContent-Len".utf8))]],
            owed: .content(bytes(0..<200), attempts: 2, faults: ["networkConnectionLost", ""])),
        unparsable(
            "O-41", "sends one header line without end",
            Array("\(ok)\r\nX-One: ".utf8) + [UInt8](repeating: 0x61, count: many)),
        unparsable(
            "O-42", "sends 103 without end",
            Array((0..<many / 40).map { _ in "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" }.joined().utf8)),
        unparsable(
            "O-42", "sends 100 without end",
            Array((0..<many / 25).map { _ in "HTTP/1.1 100 Continue\r\n\r\n" }.joined().utf8)),
        Misdeed(
            "O-42", "sends a thousand 103", of: Resource(.bytes([7])),
            always: Array(repeating: .informational(103, [("Link", "</x>")]), count: 1000),
            owed: .content([7], attempts: 1)),
        Misdeed(id: "O-43", does: "sets cookies for public suffixes and for others", needsNames: true) { scene in
            let set = [
                "a=1; Domain=co.uk", "b=1; Domain=other.co.uk", "c=1; Domain=shop.co.uk", "d=1", "e=1; Domain=uk",
            ]
            let fields = set.map { Misbehaviour.header("Set-Cookie", $0 + "; Path=/") }
            scene.origin.serve("/set", .text("x"), always: fields)
            scene.origin.serve("/get", .text("x"))
            func run(_ host: String, _ path: String) async throws -> JSON {
                let request: JSON = ["url": .string("http://\(host):\(scene.origin.port)\(path)")]
                return try await scene.completed(try await scene.download(path, ["request": request]))
            }
            let setting = try await run("www.shop.co.uk", "/set")
            try require(setting["outcome"] == "succeeded", "\(setting)")
            try require(
                !"\(setting["response"]["headers"])".asciiLowercased.contains("cookie"), "\(setting["response"])")
            for host in ["www.shop.co.uk", "img.shop.co.uk", "other.co.uk"] { _ = try await run(host, "/get") }
            let sent = scene.origin.requests("/get").map { request in
                Set((request.fields["Cookie"] ?? "").split(separator: "; ").map(String.init))
            }
            try require(sent == [["c=1", "d=1"], ["c=1"], []], "\(sent)")
        },
        wait("5", atLeast: 5, atMost: 6), wait("99999999999999999999", atLeast: 86_399, atMost: 86_401),
        wait("Fri, 01 Jan 2100 00:00:00 GMT", atLeast: 86_399, atMost: 86_401),
        wait("Fri, 01 Jan 1999 00:00:00 GMT", atLeast: 1, atMost: 2), wait("0", atLeast: 1, atMost: 2),
        wait("-5", atLeast: 0, atMost: 0.05), wait("soon", atLeast: 0, atMost: 0.05),
        wait("1.5", atLeast: 0, atMost: 0.05),
        name("climbs out of its folder", "attachment; filename=\"../../etc/passwd\"") { $0 == "passwd" },
        name("climbs out of its folder, percent-encoded", "attachment; filename*=UTF-8''..%2F..%2Fx%00y") {
            $0 == "xy"
        },
        name("names nothing but a folder", "attachment; filename=\"..\"") { $0 == "a" },
        name("names 10 KB", "attachment; filename=\"\(String(repeating: "n", count: 10_240)).bin\"") {
            $0.utf8.count <= 255 && $0.hasSuffix(".bin") && $0.hasPrefix("nnn")
        },
        unparsable(
            "O-45", "has NUL in a file name",
            message(ok, "Content-Disposition: attachment; filename=\"a\u{0}b\"", "Content-Length: 2", body: [1, 2])),
        Misdeed(id: "O-46", does: "offers another service (Alt-Svc)") { scene in
            let other = try OriginServer()
            scene.origin.serve(
                "/a", .generated(seed: 1, length: 200),
                always: [.header("Alt-Svc", "h2=\":\(other.port)\"; ma=3600, http/1.1=\":\(other.port)\"; ma=3600")])
            for _ in 0..<2 {
                try await Owed.content(bytes(0..<200)).holds(of: try await scene.download("/a"), on: scene)
            }
            try require(scene.origin.requests.count == 2 && other.openConnections == 0, "gone elsewhere")
        },
        Misdeed(id: "O-46", does: "demands TLS from now on (HSTS)", needsNames: true) { scene in
            scene.origin.serve(
                "/a", .generated(seed: 1, length: 200),
                always: [.header("Strict-Transport-Security", "max-age=31536000; includeSubDomains")])
            let host = "strict.shop.co.uk"
            let authority = try await Stage.shared().authority
            let front = try SecureFront(
                before: scene.origin.port, [.init(as: try await authority.identity("DNS:\(host)"))])
            for url in [front.url("/a", host: host), "http://\(host):\(scene.origin.port)/a"] {
                let number = try await scene.download("/a", ["request": ["url": .string(url)]])
                let ended = try await Owed.content(bytes(0..<200)).holds(of: number, on: scene)
                try require(ended.task["response"]["url"].string == url, "\(ended.task["response"])")
            }
        },
    ]

    /// A 503 with a delay, in seconds from the end of the attempt.
    private static func wait(_ value: String, atLeast: Double, atMost: Double) -> Misdeed {
        Misdeed(id: "O-44", does: "says Retry-After: \(value)") { scene in
            scene.origin.serve("/a", .text("x"), turns: [[.status(503, [("Retry-After", value)])]])
            let number = try await scene.download("/a")
            if atLeast < 60 {
                try await Owed.content(Array("x".utf8), attempts: 2).holds(of: number, on: scene)
                let times = scene.origin.requests("/a").map(\.time)
                try require(
                    times[1] - times[0] >= .seconds(atLeast) - .milliseconds(20), "after \(times[1] - times[0])")
                return
            }
            let task = try await scene.waitFor("waits", task: number) { $0["phase"] == "retryWait" }
            let ended = task["attempts"]["last"]["endedAt"].string.flatMap { Timestamp(rfc3339: $0) }
            let next = task["attempts"]["nextAt"].string.flatMap { Timestamp(rfc3339: $0) }
            guard let ended, let next else { throw Wrong("no times: \(task["attempts"])") }
            let wait = next - ended
            try require(wait >= .seconds(atLeast) && wait <= .seconds(atMost), "\(wait): \(task["attempts"])")
        }
    }

    private static func name(
        _ does: String, _ disposition: String, _ isRight: @escaping @Sendable (String) -> Bool
    ) -> Misdeed {
        Misdeed(
            "O-45", does, always: [.header("Content-Disposition", disposition)],
            owed: .content(bytes(0..<200), attempts: 1) { ended in
                let name = ended.task["response"]["suggestedFilename"].string ?? ""
                try require(isRight(name), "named \(name)")
            })
    }
}
