import Base
import Core
import Formats
import TestSupport
import Testing

/// Reading while a content arrives (docs/transfers.md): every byte that a reader receives is one of the final content.
@Suite(.enabled(if: TestStore.nodes == 1, "the bytes are at the node that transfers them"))
struct ArrivingTests {
    private static let size = 12 << 20
    private static let bytes = Content.bytes(seed: 1, length: size)
    private static let path = "/v1/sessions/s/tasks/1/content?arriving=1"
    private static let follow = "-9007199254740991"

    private let scene: Scene

    init() async throws {
        scene = try await Scene(configuration: [
            "httpMaximumConnectionsPerHost": 8,
            "retryPolicy": ["statusCodes": [503], "initialDelay": 0.1, "maximumDelay": 0.2],
        ])
    }

    /// Starts a reader.
    private func read(_ headers: (String, String)..., wait: Int = 60) async throws -> FollowedAnswer {
        try await scene.api.begin("GET", Self.path, headers: headers + [("Prefer", "wait=\(wait)")]).follow()
    }

    /// Waits until the task's content is complete.
    private func succeeds() async throws { #expect(try await scene.completed(1)["outcome"] == "succeeded") }

    @Test func `A reader beside a slow origin gets each byte as it becomes durable`() async throws {
        let gate = Gate()
        scene.origin.serve(
            "/a", .generated(seed: 1, length: Self.size).with { $0.contentType = "video/mp4" },
            always: [.holdBody(after: Self.size / 2, gate)])
        try await scene.download("/a")
        let reader = try await read()
        let begun = try await reader.bytes(Self.size / 3)
        #expect(begun.status == 200 && begun.fields["Content-Length"] == "\(Self.size)")
        #expect(begun.fields["Content-Type"] == "video/mp4" && begun.fields["Accept-Ranges"] == "bytes")
        #expect(begun.fields["Repr-Digest"] == nil)
        let tag = try #require(begun.fields["ETag"])
        let (part, late) = (try await read(("Range", "bytes=1000-1999")), try await read(("Range", "bytes=-1000")))
        let first = try await part.end()
        #expect(first.status == 206 && first.isWhole && first.body == Array(Self.bytes[1000..<2000]))
        #expect(first.fields["Content-Range"] == "bytes 1000-1999/\(Self.size)" && first.fields["ETag"] == tag)
        #expect(late.now.status == nil && !reader.now.isOver)
        gate.open()
        let (whole, end) = (try await reader.end(), try await late.end())
        #expect(whole.isWhole && whole.body == Self.bytes)
        #expect(end.status == 206 && end.isWhole && end.body == Array(Self.bytes.suffix(1000)))
        try await succeeds()
        let after = try await scene.api.get(Self.path, headers: [("Range", "bytes=5-9"), ("If-Range", tag)])
        #expect(after.status == 206 && after.body == Array(Self.bytes[5..<10]) && after.etag == tag)
        #expect(after.fields["Repr-Digest"]?.hasPrefix("sha-256=:") == true)
    }

    @Test func `The head waits for the first requested byte, at most for the client's time`() async throws {
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: Self.size), always: [.holdBody(after: 6 << 20, gate)])
        try await scene.download("/a", ["state": "suspended"])
        for preference in ["wait=0", "respond-async, wait=\"x\", Wait = 0 ;x=y", "wait=00"] {
            let early = try await scene.api.get(Self.path, headers: [("Prefer", preference)])
            expectProblem(early, 503, "content-not-ready")
            #expect(early.fields["Retry-After"] == "5" && early.fields["ETag"] == nil, "\(preference)")
        }
        let reader = try await read()
        expect(try await scene.api.post("/v1/sessions/s/tasks/1/resume"), 200)
        try await reader.bytes(1)
        let outside = try await scene.api.get(Self.path, headers: [("Range", "bytes=\(Self.size)-")])
        expectProblem(outside, 416, "range-not-satisfiable")
        #expect(outside.fields["Content-Range"] == "bytes */\(Self.size)")
        let last = [("Range", "bytes=\(Self.size - 1)-"), ("Prefer", "wait=0")]
        expectProblem(try await scene.api.get(Self.path, headers: last), 503, "content-not-ready")
        expectProblem(try await scene.api.get("/v1/sessions/s/tasks/1/content"), 404, "content-not-ready")
        gate.open()
        #expect(try await reader.end().body == Self.bytes)
    }

    @Test func `Conditions are evaluated by the version of the bytes, before and after the end`() async throws {
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: Self.size), always: [.holdBody(after: 6 << 20, gate)])
        try await scene.download("/a")
        let tag = try #require(try await read().bytes(1).fields["ETag"])
        for isComplete in [false, true] {
            if isComplete {
                gate.open()
                try await succeeds()
            }
            let known = try await scene.api.get(Self.path, headers: [("If-None-Match", tag)])
            #expect(known.status == 304 && known.etag == tag)
            let other = try await scene.api.get(Self.path, headers: [("If-Match", "\"other\"")])
            expectProblem(other, 412, "precondition-failed")
            let part = try await read(("If-Match", tag), ("If-Range", tag), ("Range", "bytes=0-9")).end()
            #expect(part.status == 206 && part.body == Array(Self.bytes[..<10]))
            let changed = try await read(("If-Range", "\"other\""), ("Range", "bytes=0-9")).bytes(11)
            #expect(changed.status == 200)
            let head = try await scene.api.send("HEAD", Self.path, headers: [("Range", "bytes=0-9")])
            #expect(head.status == 200 && head.fields["Content-Length"] == "\(Self.size)" && head.etag == tag)
        }
        let plain = try await scene.content(1)
        #expect(plain.etag != tag && plain.status == 200)
        expectProblem(try await scene.content(1, headers: [("If-Match", tag)]), 412, "precondition-failed")
    }

    @Test(arguments: [true, false])
    func `A reader of a content of unknown length receives all bytes, then the digest`(_ isResumable: Bool)
        async throws
    {
        let gate = Gate()
        let resource = Resource(.generated(seed: 1, length: Self.size), etag: isResumable ? "\"v\"" : nil)
        scene.origin.serve("/a", resource, always: [.chunked(size: 64 << 10), .holdBody(after: 6 << 20, gate)])
        try await scene.download("/a")
        let whole = try await read()
        let begun = try await whole.bytes(2 << 20)
        #expect(begun.status == 200 && begun.fields["Transfer-Encoding"] == "chunked")
        #expect(begun.fields["Trailer"] == "Repr-Digest" && begun.fields["Repr-Digest"] == nil)
        let refused = try await read(("Want-Repr-Digest", "sha-512=1, sha-256=0"))
        let rest = try await read(("Range", "bytes=1000000\(Self.follow)"))
        let (bounded, suffix) = (try await read(("Range", "bytes=10-19")), try await read(("Range", "bytes=-10")))
        let (known, over) = (
            try await read(("Range", "bytes=100-")), try await read(("Range", "bytes=1000-\(Self.size)"))
        )
        let part = try await bounded.end()
        #expect(part.status == 206 && part.isWhole && part.body == Array(Self.bytes[10..<20]))
        #expect(part.fields["Content-Range"] == "bytes 10-19/*")
        let sofar = try await known.end()
        #expect(sofar.isWhole && sofar.body == Array(Self.bytes[100..<100 + sofar.body.count]))
        #expect(sofar.fields["Content-Range"] == "bytes 100-\(99 + sofar.body.count)/*")
        try await over.bytes(1000)
        #expect(suffix.now.status == nil)
        let head = try await scene.api.send("HEAD", Self.path)
        #expect(head.status == 200 && head.fields["Content-Length"] == nil)
        gate.open()
        let digest = DigestField.format([.sha256: Digest.of(Self.bytes)])
        let followed = try await rest.end()
        #expect(followed.status == 206 && followed.isWhole && followed.body == Array(Self.bytes[1_000_000...]))
        #expect(followed.fields["Content-Range"] == "bytes 1000000\(Self.follow)/*")
        #expect(followed.trailers["Repr-Digest"] == digest)
        let all = try await whole.end()
        #expect(all.isWhole && all.body == Self.bytes && all.trailers["Repr-Digest"] == digest)
        let plain = try await refused.end()
        #expect(plain.isWhole && plain.body == Self.bytes && plain.trailers.fields.isEmpty)
        #expect(plain.fields["Trailer"] == nil)
        let end = try await suffix.end()
        #expect(end.fields["Content-Range"] == "bytes \(Self.size - 10)-\(Self.size - 1)/\(Self.size)")
        let broken = try await over.end()
        #expect(!broken.isWhole, "it promised a byte more than there is")
        #expect(broken.body == Array(Self.bytes[1000..<1000 + broken.body.count]))
    }

    @Test func `A new version cuts readers off, and has another tag`() async throws {
        let (gate, before) = (Gate(), Content.bytes(seed: 2, length: Self.size))
        scene.origin.serve(
            "/a", .generated(seed: 2, length: Self.size),
            turns: [
                [.cut(after: 6 << 20)], [.hold(gate), .become(.generated(seed: 1, length: Self.size))],
            ])
        try await scene.download("/a")
        let reader = try await read()
        let old = try await reader.bytes(5 << 20)
        let late = try await read(("Range", "bytes=\(Self.size - 10)-"))
        try await scene.origin.waitForRequests(2)
        #expect(!reader.now.isOver, "the bytes may still be continued")
        gate.open()
        let cut = try await reader.end()
        #expect(!cut.isWhole && cut.body == Array(before[..<cut.body.count]))
        #expect(try await late.end().body == Array(Self.bytes.suffix(10)))
        let tag = try #require(old.fields["ETag"])
        #expect(late.now.fields["ETag"] != tag)
        let again = try await read(("Range", "bytes=\(5 << 20)-"), ("If-Range", tag)).end()
        #expect(again.status == 200 && again.isWhole && again.body == Self.bytes)
    }

    @Test(arguments: ["cancelled", "failed"])
    func `A task that does not succeed cuts readers off`(_ outcome: String) async throws {
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: Self.size), always: [.holdBody(after: 6 << 20, gate)])
        let wrong: TestSupport.JSON = ["algorithm": "sha-256", "value": .string(Content.sha256(of: [1]))]
        try await scene.download("/a", outcome == "failed" ? ["expectedDigest": wrong] : [:])
        let reader = try await read()
        try await reader.bytes(5 << 20)
        if outcome == "cancelled" {
            expect(try await scene.api.post("/v1/sessions/s/tasks/1/cancel"), 202)
        } else {
            gate.open()
        }
        let cut = try await reader.end()
        #expect(!cut.isWhole && cut.body.count < Self.size && cut.body == Array(Self.bytes[..<cut.body.count]))
        #expect(try await scene.completed(1)["outcome"].string == outcome)
        #expect(try await scene.api.get(Self.path).status == 404)
    }

    @Test func `A kill cuts readers off, and they resume with the same tag`() async throws {
        let gate = Gate()
        scene.origin.serve(
            "/a", .generated(seed: 1, length: Self.size), turns: [[.holdBody(after: 8 << 20, gate)]])
        try await scene.download("/a")
        let reader = try await read()
        try await reader.bytes(4 << 20)
        try await scene.service.kill()
        let cut = try await reader.end()
        #expect(!cut.isWhole && cut.body == Array(Self.bytes[..<cut.body.count]))
        try await scene.service.start()
        let tag = try #require(cut.fields["ETag"])
        let rest = try await read(("Range", "bytes=\(cut.body.count)-"), ("If-Range", tag)).end()
        #expect(rest.status == 206 && rest.isWhole && cut.body + rest.body == Self.bytes)
        #expect(rest.fields["ETag"] == tag)
        gate.open()
    }

    @Test func `A shutdown cuts readers off`() async throws {
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: Self.size), always: [.holdBody(after: 6 << 20, gate)])
        try await scene.download("/a")
        let (reader, waiting) = (try await read(), try await read(("Range", "bytes=-1")))
        try await reader.bytes(1 << 20)
        _ = try await scene.service.terminate()
        #expect(try await !reader.end().isWhole)
        #expect(try await waiting.end().status == 503)
        gate.open()
    }

    @Test func `A reader of the end of a segmented download gets its bytes first`() async throws {
        let size = 64 << 20
        let resource = Resource.generated(seed: 1, length: size)

        scene.origin.serve("/a", resource, always: [.trickle(size: 16 << 10, pause: .milliseconds(30))])
        try await scene.download("/a", ["segments": 8])
        try await eventually("segments") { try await scene.task(1)["segmentStates"].array?.count ?? 0 >= 8 }
        let end = try await read(("Range", "bytes=-1000")).end()
        #expect(end.isWhole && end.body == Content.bytes(seed: 1, range: (size - 1000)..<size))
        let task = try await scene.task(1)
        #expect(task["state"] == "running" && task["countOfBytesReceived"].int ?? .max < size / 4 * 3, "\(task)")
        let tag = try #require(end.fields["ETag"])
        let whole = try await read(("If-Match", tag)).end()
        #expect(whole.isWhole && whole.body == Content.bytes(seed: 1, length: size))
        try await succeeds()
    }

    @Test func `Small contents, error pages and responses to uploads are sent when they are complete`()
        async throws
    {
        let gates = [Gate(), Gate(), Gate()]
        scene.origin.serve("/small", .generated(seed: 1, length: 1000), always: [.holdBody(after: 500, gates[0])])
        scene.origin.serve(
            "/page", .generated(seed: 1, length: 500_000).with { $0.status = 404 },
            always: [.holdBody(after: 250_000, gates[1])])
        scene.origin.serve("/upload", .upload(body: "thanks"), always: [.hold(gates[2])])
        let numbers = [
            try await scene.download("/small"), try await scene.download("/page"),
            try await scene.upload("/upload", body: ["text": "body"]),
        ]
        for (number, gate) in zip(numbers, gates) {
            let path = "/v1/sessions/s/tasks/\(number)/content?arriving=1"
            expectProblem(try await scene.api.get(path, headers: [("Prefer", "wait=1")]), 503, "content-not-ready")
            let reader = try await scene.api.begin("GET", path, headers: [("Prefer", "wait=60")]).follow()
            gate.open()
            let answer = try await reader.end()
            #expect(answer.status == 200 && answer.isWhole && answer.fields["Repr-Digest"] != nil)
            #expect(answer.body.count == [1000, 500_000, 6][number - 1])
        }
    }

    @Test func `The end of a reader's connection is detected, and slow readers do not delay others`() async throws {
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: Self.size), always: [.holdBody(after: 10 << 20, gate)])
        try await scene.download("/a")
        let reader = try await read()
        try await reader.bytes(1 << 20)
        let facts = ProcessFacts(pid: scene.service.pid)
        let files = try await facts.descriptors.count
        // Some readers wait for bytes that have not arrived, some do not read those that have.
        var lazy: [APIClient.Exchange] = []
        for _ in 0..<50 {
            lazy.append(try await scene.api.begin("GET", Self.path))
            lazy.append(
                try await scene.api.begin("GET", Self.path, headers: [("Range", "bytes=-5"), ("Prefer", "wait=60")]))
        }
        try await eventually("all are read or held") { try await held() >= 101 }
        #expect(try await read(("Range", "bytes=0-99999")).end().isWhole)
        try await reader.bytes(9 << 20)
        for exchange in lazy { exchange.abort() }
        try await eventually("they are removed") { try await held() == 1 }
        try await eventually("their descriptors are closed") {
            try await facts.descriptors.count <= files + 4
        }
        gate.open()
        #expect(try await reader.end().body == Self.bytes)
    }

    /// The number of held requests.
    private func held() async throws -> Int {
        let text = try await scene.admin.get("/metrics").text
        let line = text.split(separator: "\n").first { $0.hasPrefix("urlsessiond_http_requests_held ") }
        return line.flatMap { $0.split(separator: " ").last.flatMap { Int($0) } } ?? -1
    }
}
