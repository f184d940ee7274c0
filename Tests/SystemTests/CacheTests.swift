import Base
import Core
import TestSupport
import Testing

/// Cache policies and single flight, as an app sees them.
@Suite struct CacheTests {
    private static let length = 4 << 20

    private func task(_ scene: Scene, _ policy: JSON? = nil) -> JSON {
        var request: JSON = ["url": .string(scene.origin.url("/a"))]
        if let policy { request["cachePolicy"] = policy }
        return ["kind": "download", "request": request]
    }

    private func batch(_ scene: Scene, _ count: Int) async throws {
        let tasks = JSON.array((0..<count).map { _ in task(scene) })
        expect(try await scene.api.post("/v1/sessions/s/tasks/batch?return=minimal", ["tasks": tasks]), 201)
    }

    private func statuses(_ scene: Scene, _ numbers: ClosedRange<Int>) async throws -> [String: Int] {
        var statuses: [String: Int] = [:]
        for number in numbers {
            let done = try await scene.completed(number)
            #expect(done["outcome"] == "succeeded" && done["content"]["length"].int == Self.length, "\(done)")
            statuses[done["cacheStatus"].string ?? "null", default: 0] += 1
        }
        return statuses
    }

    @Test func `A policy is shown, an unknown one is refused, and the task has the cache status`() async throws {
        let scene = try await Scene(configuration: ["requestCachePolicy": "useProtocolCachePolicy"])
        #expect(try await scene.session()["configuration"]["requestCachePolicy"] == "useProtocolCachePolicy")
        var resource = Resource.generated(seed: 1, length: Self.length)
        resource.fields.append("Cache-Control", "max-age=600")
        scene.origin.serve("/a", resource)
        for (number, status) in [(1, "stored"), (2, "hit")] {
            expect(try await scene.api.post("/v1/sessions/s/tasks", task(scene)), 201)
            let done = try await scene.completed(number)
            #expect(done["cacheStatus"] == .string(status), "\(done)")
            #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: Self.length))
        }
        let metrics = try await scene.events().filter { $0["type"] == "task.didFinishCollectingMetrics" }
        let types = metrics.map { $0["data"]["transactionMetrics"][0]["resourceFetchType"] }
        #expect(types == [.null, "localCache"], "\(metrics)")
        let usage = try await scene.api.get("/v1/cache").json
        #expect(usage["entries"] == 1 && usage["hits"] == 1, "\(usage)")
        let app = try await scene.api.get("/v1/app").json["usage"]
        #expect(app["storedBytes"].int == 2 * Self.length, "\(app)")
        #expect(app["storedBytesOnDisk"].int ?? 0 < Self.length + 10_000, "\(app)")

        expect(try await scene.api.delete("/v1/cache?url=nonsense"), 204)
        #expect(try await scene.api.get("/v1/cache").json["entries"] == 1)
        expect(try await scene.api.delete("/v1/cache?url=\(scene.origin.url("/a"))"), 204)
        expect(try await scene.api.delete("/v1/cache"), 204)
        #expect(try await scene.api.get("/v1/cache").json["entries"] == 0)
        // The contents of the tasks are kept.
        #expect(try await scene.content(1).body.count == Self.length)

        let none = task(scene, "returnCacheDataDontLoad")
        expect(try await scene.api.post("/v1/sessions/s/tasks", none), 201)
        #expect(try await scene.completed(3)["error"]["code"] == -1008)
        let refused = try await scene.api.post("/v1/sessions/s/tasks", task(scene, "whatever"))
        #expect(refused.status == 422 && refused.text.contains("/request/cachePolicy"), "\(refused.text)")
        #expect(scene.origin.requests("/a").count == 1)
    }

    @Test(.enabled(if: TestStore.nodes == 1, "the disk of one node is looked at"))
    func `A task that fails with its destination leaves no copy for other tasks`() async throws {
        let root = TemporaryFolder()
        let scene = try await Scene(
            ["--files-root", "out=\(root.path)"], configuration: ["requestCachePolicy": "useProtocolCachePolicy"])
        scene.origin.serve("/a", .generated(seed: 1, length: Self.length))
        root.write(Array("taken".utf8), to: "taken")
        var order = task(scene)
        order["destination"] = ["root": "out", "path": "taken"]
        expect(try await scene.api.post("/v1/sessions/s/tasks", order), 201)
        #expect(try await scene.completed(1)["error"]["code"] == -3000)
        #expect(readFile(root.file("taken")) == Array("taken".utf8))
        try await eventually("no file is left") {
            filesBelow(scene.service.data.file("data/contents")).isEmpty
                && filesBelow(scene.service.data.file("data/partial")).isEmpty
        }
        // The next task for the same file is not affected.
        expect(try await scene.api.post("/v1/sessions/s/tasks", task(scene)), 201)
        #expect(try await scene.completed(2)["outcome"] == "succeeded")
        // Neither does a task that gets a copy of the stored bytes leave one.
        expect(try await scene.api.post("/v1/sessions/s/tasks", order), 201)
        #expect(try await scene.completed(3)["error"]["code"] == -3000)
        try await eventually("no partial file is left") {
            filesBelow(scene.service.data.file("data/partial")).isEmpty
        }
    }

    @Test(.enabled(if: TestStore.nodes == 1, "the bucket of contents is the test's"))
    func `The copy for other tasks goes to the bucket of contents, which all nodes read`() async throws {
        let (store, root, gate) = (try ObjectStore(), TemporaryFolder(), Gate())
        let scene = try await Scene(
            store.contents + ["--files-root", "out=\(root.path)"],
            configuration: ["requestCachePolicy": "useProtocolCachePolicy"], environment: SeaweedFS.environment)
        scene.origin.serve(
            "/a", .generated(seed: 1, length: Self.length), always: [.holdBody(after: Self.length / 2, gate)])
        var order = task(scene)
        order["destination"] = ["root": "out", "path": "a"]
        expect(try await scene.api.post("/v1/sessions/s/tasks", order), 201)
        try await scene.origin.waitForRequests(1)
        expect(try await scene.api.post("/v1/sessions/s/tasks", task(scene)), 201)
        try await eventually("task 2 follows") { try await scene.task(2)["waitingFor"][0]["kind"] == "sameTransfer" }
        gate.open()
        for number in 1...2 { #expect(try await scene.completed(number)["outcome"] == "succeeded") }
        #expect(filesBelow(scene.service.data.file("data/contents")).isEmpty)
        #expect(store.objects.values.map(\.bytes.count) == [Self.length])
        #expect(readFile(root.file("a")) == Content.bytes(seed: 1, length: Self.length))
        #expect(scene.origin.requests("/a").count == 1)
    }

    @Test func `Two hundred concurrent tasks fetch a file once from the origin, through kills`() async throws {
        let scene = try await Scene(configuration: [
            "requestCachePolicy": "useProtocolCachePolicy", "retryPolicy": ["initialDelay": 0.1, "maximumDelay": 0.2],
        ])
        let gate = Gate()
        defer { gate.open() }
        let half = Self.length / 2
        scene.origin.serve(
            "/a", .generated(seed: 1, length: Self.length),
            turns: [[.holdBody(after: half, gate)], [.holdBody(after: 1000, gate)]])
        try await batch(scene, 200)
        try await scene.origin.waitForRequests(1)
        let waiting: JSON = try await eventually("a follower") { () -> JSON? in
            let last = try await scene.task(200)
            guard last["waitingFor"][0]["kind"] == "sameTransfer" else { return JSON?.none }
            return last
        }
        #expect(waiting["waitingFor"][0]["taskIdentifier"].int != nil, "\(waiting)")
        #expect(waiting["waitingFor"][0]["sessionIdentifier"] == "s" && waiting["phase"] == "queued", "\(waiting)")
        for _ in 0..<2 {
            try await scene.service.kill()
            try await scene.service.start()
        }
        gate.open()
        #expect(try await statuses(scene, 1...200) == ["stored": 1, "collapsed": 199])
        // A kill may lose unrecorded bytes; the origin never sends the whole file twice.
        #expect(scene.origin.bytesSent("/a") < 2 * Self.length)
        expectSound(try await scene.events())
        #expect(try await scene.api.get("/v1/cache").json["collapsed"] == 199)
    }
}
