import Core
import TestSupport
import Testing

/// docs/transfers.md "Resuming downloads": broken and stalled downloads, and the two timeouts.
@Suite struct ResumeTests {
    private static let quick: JSON = ["retryPolicy": ["initialDelay": 0.1, "maximumDelay": 0.1]]
    private static let length = 300_000

    /// A fault of the first response's validators, or of the response to the range.
    struct Trouble: Sendable, CustomTestStringConvertible {
        let name: String
        var first: Resource = .generated(seed: 1, length: ResumeTests.length)
        var second: [Misbehaviour] = []
        /// The seed of the final content.
        var seed: UInt64 = 1
        /// Whether no range may be requested.
        var restarts = false
        var testDescription: String { name }
    }

    static let troubles: [Trouble] = {
        let honest = Resource.generated(seed: 1, length: length)
        let changed = Resource.generated(seed: 2, length: length)
        let date = httpDate(secondsFromNow: -86_400)
        return [
            Trouble(name: "none"),
            Trouble(name: "reset", second: [.cut(after: 10, .reset)]),
            Trouble(name: "changed", second: [.become(changed)], seed: 2),
            Trouble(
                name: "changed, If-Range ignored", second: [.become(changed.with { $0.honoursIfRange = false })],
                seed: 2),
            Trouble(
                name: "longer, If-Range ignored",
                second: [.become(.generated(seed: 3, length: length).with { $0.honoursIfRange = false })], seed: 3),
            Trouble(name: "range ignored", second: [.become(honest.with { $0.servesRanges = false })]),
            Trouble(name: "starts later", second: [.partial(.shifted(100))]),
            Trouble(name: "starts earlier", second: [.partial(.shifted(-50_000))]),
            Trouble(name: "another total", second: [.partial(.total("300001"))]),
            Trouble(name: "no Content-Range", second: [.partial(.missing)]),
            Trouble(name: "another unit", second: [.partial(.verbatim("items 200000-299999/300000"))]),
            Trouble(name: "nonsense", second: [.partial(.verbatim("bytes x-y/z"))]),
            Trouble(
                name: "multipart",
                second: [.header("Content-Type", "multipart/byteranges; boundary=x"), .partial(.missing)]),
            Trouble(name: "416", second: [.status(416, [("Content-Range", "bytes */100")], body: "no")]),
            Trouble(name: "416 without a total", second: [.status(416, body: "no")]),
            Trouble(
                name: "a page that is cut",
                second: [.status(404, body: String(repeating: "x", count: 1000)), .cut(after: 500)]),
            Trouble(name: "weak", first: honest.with { $0.etag = "W/\"v1\"" }, restarts: true),
            Trouble(name: "no validator", first: honest.with { $0.etag = nil }, restarts: true),
            Trouble(name: "no ranges", first: honest.with { $0.acceptRanges = "none" }, restarts: true),
            Trouble(
                name: "a date",
                first: honest.with {
                    $0.etag = nil; $0.lastModified = date
                }),
            Trouble(
                name: "a date to come",
                first: honest.with {
                    $0.etag = nil; $0.lastModified = httpDate(secondsFromNow: 3600)
                },
                restarts: true),
            Trouble(
                name: "a content coding", first: honest.with { $0.fields.append("Content-Encoding", "gzip") },
                restarts: true),
        ]
    }()

    @Test(arguments: troubles)
    func `Bytes of two versions are never mixed`(_ trouble: Trouble) async throws {
        let scene = try await Scene(configuration: Self.quick)
        scene.origin.serve("/a", trouble.first, turns: [[.cut(after: 200_000)], trouble.second])
        let number = try await scene.download("/a")
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        let content = try await scene.content(number)
        #expect(content.body == Content.bytes(seed: trouble.seed, length: Self.length))
        #expect(task["content"]["digest"]["value"].string == Content.sha256(seed: trouble.seed, length: Self.length))
        let second = try #require(scene.origin.requests("/a").dropFirst().first)
        if trouble.restarts {
            #expect(!second.fields.contains("Range") && !second.fields.contains("If-Range"), "\(second.fields)")
        } else {
            #expect(second.fields["Range"] == "bytes=200000-", "\(second.fields)")
            #expect(second.fields["If-Range"] == trouble.first.etag ?? trouble.first.lastModified, "\(second.fields)")
        }
        #expect(second.fields["Accept-Encoding"] == "identity")
        let resumed = try await scene.events().filter { $0["type"] == "task.didResumeAtOffset" }
        #expect(!resumed.isEmpty)
        if trouble.restarts { #expect(resumed.last?["data"]["fileOffset"] == 0, "\(resumed)") }
        if trouble.name == "none" { #expect(resumed.map { $0["data"]["fileOffset"] } == [200_000], "\(resumed)") }
        expectSound(try await scene.events())
    }

    @Test func `A complete file of a broken connection is completed by a 416`() async throws {
        let scene = try await Scene(configuration: Self.quick)
        let resource = Resource.generated(seed: 1, length: 200_000)
        scene.origin.serve("/a", resource, turns: [[.chunked(), .cut(after: 200_000)]])
        let number = try await scene.download("/a")
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: 200_000))
        #expect(scene.origin.bytesSent("/a") <= 400_000)
    }

    @Test func `A wrong length ends with a clear error`() async throws {
        let scene = try await Scene(configuration: Self.quick)
        scene.origin.serve("/short", .generated(seed: 1, length: 100), turns: [[.contentLength(["200"])]])
        scene.origin.serve("/long", .generated(seed: 1, length: 100), always: [.contentLength(["50"])])
        let short = try await scene.download("/short")
        #expect(try await scene.completed(short)["outcome"] == "succeeded")
        #expect(try await scene.content(short).body == Content.bytes(seed: 1, length: 100))
        let long = try await scene.download("/long")
        let task = try await scene.completed(long)
        #expect(task["outcome"] == "succeeded" && task["content"]["length"] == 50, "\(task)")
    }

    @Test func `Bodies of every framing arrive complete`() async throws {
        let scene = try await Scene(configuration: Self.quick)
        scene.origin.serve("/chunked", .generated(seed: 1, length: 70_001), always: [.chunked(size: 777)])
        scene.origin.serve("/close", .generated(seed: 1, length: 70_001), always: [.closeDelimited])
        scene.origin.serve("/broken", .generated(seed: 1, length: 70_001), turns: [[.chunked(), .cut(after: 10_000)]])
        scene.origin.serve("/empty", .generated(seed: 1, length: 0))
        scene.origin.serve(
            "/early", .generated(seed: 1, length: 70_001), turns: [[.informational(103, [("Link", "</x>")])]])
        let sizes = ["/chunked": 70_001, "/close": 70_001, "/broken": 70_001, "/empty": 0, "/early": 70_001]
        for (path, length) in sizes {
            let number = try await scene.download(path)
            let task = try await scene.completed(number)
            #expect(task["outcome"] == "succeeded" && task["content"]["length"].int == length, "\(path): \(task)")
            #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: length), "\(path)")
        }
    }

    @Test func `A coded body is kept as received`() async throws {
        let scene = try await Scene()
        let resource = Resource.generated(seed: 1, length: 1000).with { $0.fields.append("Content-Encoding", "gzip") }
        scene.origin.serve("/a", resource)
        let number = try await scene.download("/a")
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: 1000))
        #expect(scene.origin.requests.first?.fields["Accept-Encoding"] == "identity")
        #expect(scene.origin.requests.first?.fields["User-Agent"]?.hasPrefix("urlsessiond/") == true)
    }

    @Test func `The idle timeout ends the attempt, never the task`() async throws {
        let scene = try await Scene(
            configuration: [
                "timeoutIntervalForRequest": 3, "retryPolicy": ["initialDelay": 0.1, "maximumDelay": 0.1],
            ])
        let turns: [[Misbehaviour]] = [[.stall(after: 100_000)], [.stall(after: 100_000)], [.delayHead(.seconds(60))]]
        scene.origin.serve("/a", .generated(seed: 1, length: Self.length), turns: turns)
        let number = try await scene.download("/a")
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded" && task["attempts"]["count"] == 4, "\(task)")
        #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: Self.length))
        let ranges = scene.origin.requests("/a").map { $0.fields["Range"] }
        #expect(ranges == [nil, "bytes=100000-", "bytes=200000-", "bytes=200000-"])
    }

    @Test func `The resource timeout ends the task, without its suspended time`() async throws {
        let scene = try await Scene(configuration: ["timeoutIntervalForResource": 2])
        scene.origin.serve(
            "/a", .generated(seed: 1, length: 1_000_000), always: [.trickle(size: 100, pause: .milliseconds(100))])
        let suspended = try await scene.download("/a", ["state": "suspended"])
        let delayed = try await scene.download("/a", ["earliestBeginDate": "2099-01-01T00:00:00Z"])
        let start = ContinuousClock.now
        let task = try await scene.completed(try await scene.download("/a"))
        #expect(ContinuousClock.now - start >= .milliseconds(1900))
        #expect(task["outcome"] == "failed" && task["error"]["code"] == -1001, "\(task)")
        #expect(task["error"]["name"] == "timedOut")
        try await stays("the others live", for: .seconds(1)) {
            let states = [try await scene.task(suspended)["state"], try await scene.task(delayed)["state"]]
            return states == ["suspended", "running"]
        }
    }

    @Test func `A POST is never resumed with a range`() async throws {
        let scene = try await Scene(configuration: Self.quick)
        scene.origin.serve("/a", .generated(seed: 1, length: Self.length), turns: [[.cut(after: 200_000)]])
        let request: JSON = ["url": .string(scene.origin.url("/a")), "method": "POST", "body": ["text": "which"]]
        let number = try await scene.download("/a", ["request": request])
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: Self.length))
        let requests = scene.origin.requests("/a")
        #expect(requests.map { $0.fields["Range"] } == [nil, nil])
        #expect(requests.map(\.body) == [Array("which".utf8), Array("which".utf8)])
        let resumed = try await scene.events().filter { $0["type"] == "task.didResumeAtOffset" }
        #expect(resumed.map { $0["data"]["fileOffset"] } == [0])
    }

    @Test func `A kill costs at most the unsynced bytes`() async throws {
        let scene = try await Scene()
        let length = 24 << 20
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: length), turns: [[.holdBody(after: 20 << 20, gate)]])
        let number = try await scene.download("/a")
        try await scene.waitFor("has 20 MiB", task: number) { $0["countOfBytesReceived"].int == 20 << 20 }
        // Offsets are recorded every 8 MiB or 2 s: recorded bytes may not be fetched again.
        try await scene.waitUntilRecorded(20 << 20)
        try await scene.service.restart()
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        let again = try #require(scene.origin.requests("/a").last)
        let offset = again.fields["Range"].flatMap { Int($0.dropFirst(6).dropLast()) } ?? 0
        #expect(offset == 20 << 20 && again.fields["If-Range"] == "\"v1\"", "\(again.fields)")
        let task = try await scene.task(number)
        #expect(task["content"]["digest"]["value"].string == Content.sha256(seed: 1, length: length))
        let resumed = try await scene.event("resumed") { $0["type"] == "task.didResumeAtOffset" }
        #expect(resumed["data"]["fileOffset"].int == offset)
    }

    /// A download of 4 MiB, of which 3 MiB are recorded when the service is killed.
    private func killedDownload(_ scene: Scene) async throws -> Int {
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 4 << 20), turns: [[.holdBody(after: 3 << 20, gate)]])
        let number = try await scene.download("/a")
        try await scene.waitFor("has 3 MiB", task: number) { $0["countOfBytesReceived"].int == 3 << 20 }
        try await scene.waitUntilRecorded(3 << 20)
        try await scene.service.kill()
        return number
    }

    @Test func `A partial file that was truncated while the service was down corrupts nothing`() async throws {
        let scene = try await Scene()
        let number = try await killedDownload(scene)
        let folder = scene.service.data.file("data/partial")
        for file in filesBelow(folder) {
            let bytes = readFile("\(folder)/\(file)") ?? []
            scene.service.data.write(Array(bytes.prefix(1 << 20)), to: "data/partial/\(file)")
        }
        try await scene.service.start()
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        let task = try await scene.task(number)
        #expect(task["content"]["digest"]["value"].string == Content.sha256(seed: 1, length: 4 << 20))
        #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: 4 << 20))
    }

    @Test func `A partial file with other bytes is not resumed`() async throws {
        let scene = try await Scene()
        let number = try await killedDownload(scene)
        scene.service.data.write(Content.bytes(seed: 2, length: 3 << 20), to: "data/partial/1")
        try await scene.service.start()
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded")
        #expect(task["content"]["digest"]["value"].string == Content.sha256(seed: 1, length: 4 << 20))
        #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: 4 << 20))
        #expect(scene.origin.requests("/a").last?.fields["Range"] == nil)
        let resumed = try await scene.event("resumed") { $0["type"] == "task.didResumeAtOffset" }
        #expect(resumed["data"]["fileOffset"] == 0)
    }

    @Test func `A kill between the last rename and the commit does not cost the whole file`() async throws {
        let scene = try await Scene()
        let number = try await killedDownload(scene)
        // The state after such a kill: the rest was received, and the file has its final name.
        scene.service.data.write(Content.bytes(seed: 1, length: 4 << 20), to: "data/contents/01/1")
        #expect(removeFile(scene.service.data.file("data/partial/1")))
        try await scene.service.start()
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded")
        #expect(task["content"]["digest"]["value"].string == Content.sha256(seed: 1, length: 4 << 20))
        let again = try #require(scene.origin.requests("/a").last)
        #expect(again.fields["Range"] == "bytes=\(3 << 20)-", "\(again.fields)")
        #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: 4 << 20))
    }

    @Test func `A kill during the restart with another version leaves no mixture when the first one returns`()
        async throws
    {
        let scene = try await Scene(configuration: Self.quick)
        let (first, second) = (
            Resource.generated(seed: 1, length: 4 << 20), Resource.generated(seed: 2, length: 4 << 20)
        )
        let gate = Gate()
        scene.origin.serve(
            "/a", first,
            turns: [[.cut(after: 2 << 20)], [.become(second), .holdBody(after: 3 << 20, gate)], [.become(first)]])
        let number = try await scene.download("/a")
        try await eventually("the other version has come") {
            let task = try await scene.task(number)
            return gate.waiting == 1 && task["countOfBytesReceived"].int == 3 << 20
        }
        try await scene.service.restart()
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded")
        #expect(task["content"]["digest"]["value"].string == first.sha256)
        #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: 4 << 20))
        expectSound(try await scene.events())
    }

    @Test(arguments: [true, false])
    func `A new URL for a running task keeps its bytes if the validator matches`(_ matches: Bool) async throws {
        let scene = try await Scene()
        let gate = Gate()
        scene.origin.serve("/old", .generated(seed: 1, length: Self.length), turns: [[.holdBody(after: 200_000, gate)]])
        let seed: UInt64 = matches ? 1 : 2
        scene.origin.serve("/new", .generated(seed: seed, length: Self.length))
        let number = try await scene.download("/old")
        try await scene.waitFor("has bytes", task: number) { $0["countOfBytesReceived"] == 200_000 }
        let request: JSON = ["url": .string(scene.origin.url("/new")), "headers": ["X-Signed": "anew"]]
        expect(try await scene.api.patch("/v1/sessions/s/tasks/\(number)", ["request": request]), 200)
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded" && task["originalRequest"]["url"] == request["url"], "\(task)")
        let asked = try #require(scene.origin.requests("/new").first)
        #expect(asked.fields["Range"] == "bytes=200000-" && asked.fields["If-Range"] == "\"v1\"", "\(asked.fields)")
        #expect(asked.fields["X-Signed"] == "anew")
        #expect(scene.origin.requests("/old").count == 1 && scene.origin.requests("/new").count == 1)
        #expect(try await scene.content(number).body == Content.bytes(seed: seed, length: Self.length))
        let resumed = try await scene.events().filter { $0["type"] == "task.didResumeAtOffset" }
        #expect(resumed.map { $0["data"]["fileOffset"] } == [matches ? 200_000 : 0])
    }

    @Test(arguments: [true, false])
    func `Resume data survives a kill, and without its bytes the content restarts`(
        _ areThere: Bool
    ) async throws {
        let scene = try await Scene()
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: Self.length), turns: [[.holdBody(after: 200_000, gate)]])
        let number = try await scene.download("/a")
        try await scene.waitFor("has bytes", task: number) { $0["countOfBytesReceived"] == 200_000 }
        let cancelled = try await scene.api.post(
            "/v1/sessions/s/tasks/\(number)/cancel", ["byProducingResumeData": true])
        let data = try #require(cancelled.json["resumeData"].string, "\(cancelled.text)")
        try await scene.service.kill()
        let folder = scene.service.data.file("data/partial")
        let kept = filesBelow(folder)
        #expect(kept.count == 1)
        if !areThere { for file in kept { scene.service.data.write([], to: "data/partial/\(file)") } }
        try await scene.service.start()
        let continued = try #require(
            try await scene.create(["kind": "download", "resumeData": .string(data)])["taskIdentifier"].int)
        let task = try await scene.completed(continued)
        #expect(task["outcome"] == "succeeded" && task["originalRequest"]["url"].string == scene.origin.url("/a"))
        #expect(try await scene.content(continued).body == Content.bytes(seed: 1, length: Self.length))
        #expect(scene.origin.requests("/a").map { $0.fields["Range"] } == [nil, areThere ? "bytes=200000-" : nil])
        try await eventually("no partial file is left") { filesBelow(folder).isEmpty }
    }

    @Test func `A kill before the first byte restarts the download`() async throws {
        let scene = try await Scene()
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 1000), turns: [[.hold(gate)]])
        let number = try await scene.download("/a")
        try await eventually("it runs") { gate.waiting == 1 }
        try await scene.service.restart()
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        expectSound(try await scene.events())
    }
}
