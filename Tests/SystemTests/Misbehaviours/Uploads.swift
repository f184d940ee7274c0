import Base
import Core
import TestSupport
import Testing

/// Faults of uploads: O-55 to O-61.
extension Misdeed {
    private static let small = bytes(0..<50_000)
    /// More than the kernels' buffers hold.
    private static let large = bytes(0..<16_000_000)

    /// An upload of stored bytes to `/up`.
    private static func upload(
        _ scene: Scene, _ bytes: [UInt8] = small, method: String = "PUT", to url: String? = nil
    ) async throws -> Int {
        let stored = try await scene.api.send("POST", "/v1/bodies", body: bytes)
        guard stored.status == 201 else { throw Wrong(stored.text) }
        let request: JSON = ["url": .string(url ?? scene.origin.url("/up")), "method": .string(method)]
        return try await scene.upload("/up", body: ["id": stored.json["id"]], ["request": request])
    }

    private static func sends(
        _ id: String, _ does: String, _ bytes: [UInt8] = small, method: String = "PUT", turns: [[Misbehaviour]] = [],
        always: [Misbehaviour]? = nil,
        configuration: JSON = quick, owed: Owed
    ) -> Misdeed {
        Misdeed(id: id, does: does, configuration: configuration) { scene in
            let resource = Resource.upload(status: 200, body: "thanks")
            if let always {
                scene.origin.serve("/up", resource, always: always)
            } else {
                scene.origin.serve("/up", resource, turns: turns)
            }
            try await owed.holds(of: try await upload(scene, bytes, method: method), path: "/up", on: scene)
        }
    }

    private static let thanks = Array("thanks".utf8)
    private static let early = message("HTTP/1.1 200 OK", "Content-Length: 5", body: Array("early".utf8))

    /// Whether the last request of a path had the whole body.
    @Sendable private static func isWhole(_ ended: Ended) throws {
        try require(ended.requests.last?.bodySHA256 == Content.sha256(of: small), "\(ended.requests)")
    }

    static let uploads: [Misdeed] = [
        // The close resets the connection. If that overtakes the response, another attempt receives it.
        sends(
            "O-55", "says 413 within our body and closes", large,
            always: [.earlyAnswer, .raw(message("HTTP/1.1 413 No", "Content-Length: 3", body: Array("big".utf8)))],
            owed: .status(413, page: Array("big".utf8), attempts: nil)),
        sends(
            "O-55", "says 401 within our body and closes", large,
            always: [
                .earlyAnswer,
                .raw(
                    message(
                        "HTTP/1.1 401 No", "WWW-Authenticate: Basic realm=\"r\"", "Content-Length: 2",
                        body: Array("no".utf8))),
            ],
            owed: .status(401, page: Array("no".utf8), attempts: nil)),
        sends(
            "O-56", "says 200 before our body is finished, and reads no more", large,
            turns: [[.earlyAnswer, .raw(early, .silence)]],
            configuration: retrying([:], ["timeoutIntervalForRequest": 5]),
            owed: .content(thanks, attempts: 2) { ended in
                try require(ended.requests.last?.bodySHA256 == Content.sha256(of: large), "not whole")
            }),
        // The close resets the connection, which may overtake the response.
        sends(
            "O-56", "says 200 before our body is finished, and closes, always", large,
            always: [.earlyAnswer, .raw(early)],
            owed: .failed(-1011, attempts: nil) { ended in
                try require(ended.task["error"]["underlying"]["code"] == "answered-early", "\(ended.task)")
            }),
        sends(
            "O-56", "says 200 before our POST is finished, and reads no more", large, method: "POST",
            always: [.earlyAnswer, .raw(early, .silence)],
            configuration: retrying([:], ["timeoutIntervalForRequest": 5]),
            owed: .failed(-1011) { ended in
                // The origin's use of the half is unknown, so it gets no other.
                try require(ended.requests.count == 1, "sent again")
            }),
        sends(
            "O-57", "reads all of a PUT and closes without an answer", turns: [[.noAnswer()]],
            owed: .content(thanks, attempts: 2, faults: ["networkConnectionLost", ""], also: isWhole)),
        sends(
            "O-57", "reads all of a POST and closes without an answer", method: "POST", turns: [[.noAnswer()]],
            owed: .content(thanks, attempts: 2, faults: ["networkConnectionLost", ""], also: isWhole)),
        sends(
            "O-57", "reads all of a POST that may be sent once, and closes without an answer", method: "POST",
            turns: [[.noAnswer()]], configuration: retrying(["maximumAttempts": 1]),
            owed: .failed(-1005) { try require($0.requests.count == 1, "sent again") }),
        Misdeed(id: "O-58", does: "has another offset than it said") { scene in
            let server = try DraftServer()
            // More than half is cut; the server first keeps less than it reports.
            server.take([.init { $0.cutBody = 30_000 }])
            server.answerOffsets([(204, [("Upload-Offset", "20000"), ("Upload-Complete", "?0")])])
            let number = try await upload(scene, to: server.url("/up"))
            let task = try await scene.completed(number)
            try require(task["outcome"] == "succeeded", "\(task)")
            try require(server.methods == ["PUT", "HEAD", "PATCH", "HEAD", "PATCH"], "\(server.methods)")
            try require(server.finished.map(\.sha256) == [Content.sha256(of: small)], "\(server.finished)")
        },
        redirected(307, "PUT", then: "PUT", again: true), redirected(308, "POST", then: "POST", again: true),
        redirected(307, "POST", then: "POST", again: true), redirected(301, "POST", then: "GET", again: false),
        redirected(302, "POST", then: "GET", again: false), redirected(303, "PUT", then: "GET", again: false),
        redirected(303, "POST", then: "GET", again: false), redirected(301, "PUT", then: "PUT", again: true),
        sends(
            "O-60", "never says 100", large, turns: [],
            owed: .content(thanks, attempts: 1) { ended in
                // Without the expectation there is no wait.
                try require(!ended.requests[0].fields.contains("Expect"), "\(ended.requests[0].fields)")
                try require(ended.requests[0].bodySHA256 == Content.sha256(of: large), "not whole")
            }),
        sends(
            "O-61", "takes our body by the byte", large, turns: [[.sip(pause: .seconds(1))]],
            configuration: retrying([:], ["timeoutIntervalForRequest": 10, "timeoutIntervalForResource": 4]),
            owed: .failed(-1001, attempts: nil)),
        sends(
            "O-61", "takes one byte of our body and no more", large, turns: [[.cutUpload(after: 1, .silence)]],
            configuration: retrying([:], ["timeoutIntervalForRequest": 4]),
            owed: .content(thanks, attempts: 2, faults: ["timedOut", ""])),
    ]

    private static func redirected(_ status: Int, _ method: String, then: String, again: Bool) -> Misdeed {
        Misdeed(id: "O-59", does: "redirects a \(method) with \(status)") { scene in
            scene.origin.serve("/up", .text("x"), always: [.redirect("/b", status: status)])
            scene.origin.serve("/b", .upload(status: 200, body: "thanks").with { $0.body = .bytes(thanks) })
            let number = try await upload(scene, method: method)
            let ended = try await Owed.content(thanks, attempts: 1).holds(of: number, path: "/b", on: scene)
            let request = ended.requests[0]
            try require(request.method == then, request.method)
            try require(request.bodyLength == (again ? small.count : 0), "\(request.bodyLength) bytes")
            try require(again || !request.fields.contains("Content-Type"), "\(request.fields)")
            try require(!again || request.bodySHA256 == Content.sha256(of: small), "other bytes")
        }
    }
}
