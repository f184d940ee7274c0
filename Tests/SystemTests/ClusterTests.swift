import Base
import Core
import Glibc
import TestSupport
import Testing

/// Three nodes, briefly: commits of one reach the others, which resume a dead node's work.
@Suite(
    .serialized, .enabled(if: PostgreSQL.isAvailable && SeaweedFS.isAvailable && !TestStore.isOnServer)
)
struct ClusterTests {
    @Test func `A client that waits at one node is woken within a second by a commit of another`() async throws {
        let scene = try await Cluster.scene()
        let gate = Gate()
        scene.origin.serve("/held", .text("x"), always: [.hold(gate)])
        let number = try await scene.download("/held")
        let streams = try await scene.service.nodes.mapAsync { node in
            try await Cluster.api(node).openStream("/v1/sessions/s/events")
        }
        async let waits = withThrowingTaskGroup { group in
            for node in scene.service.nodes {
                group.addTask { try await Cluster.api(node).get("/v1/sessions/s/tasks/\(number)?wait=60").json }
            }
            var answers: [JSON] = []
            for try await answer in group { answers.append(answer) }
            return answers
        }
        try await eventually("it is in flight") { scene.origin.inFlight.now == 1 }
        #expect(try await scene.session()["attachment"]["kind"] == "stream")
        gate.open()
        let answers = try await waits
        #expect(answers.allSatisfy { $0["state"] == "completed" })
        for stream in streams { try await stream.wait { $0.contains { $0.json["type"] == "task.didComplete" } } }
    }

    @Test func `A command at one node stops a transfer at another, which resumes there`() async throws {
        let scene = try await Cluster.scene()
        let gate = Gate()
        defer { gate.open() }
        let held = [Misbehaviour.holdBody(after: 16 << 20, gate)]
        scene.origin.serve("/long", .generated(seed: 3, length: 20 << 20), turns: [held, held])
        let (cancelled, suspended) = (try await scene.download("/long"), try await scene.download("/long"))
        try await eventually("both are in flight") { scene.origin.inFlight.now == 2 }
        try await scene.waitFor("has bytes", task: suspended) { $0["countOfBytesReceived"].int ?? 0 > 9 << 20 }
        // At least one of these two does not run them.
        let (second, third) = (Cluster.api(scene.service.nodes[1]), Cluster.api(scene.service.nodes[2]))
        expect(try await second.post("/v1/sessions/s/tasks/\(cancelled)/cancel"), 202)
        expect(try await third.post("/v1/sessions/s/tasks/\(suspended)/suspend"), 200)
        try await eventually("no node fetches any more") { scene.origin.inFlight.now == 0 }
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(suspended)/resume"), 200)
        let task = try await scene.completed(suspended)
        #expect(task["content"]["digest"]["value"].string == Content.sha256(seed: 3, length: 20 << 20))
        let requests = scene.origin.requests("/long")
        #expect(requests.count == 3 && requests.last?.fields["Range"] != nil, "it goes on where it was")
    }

    @Test func `An unfinished content is read at each node while one transfers it`() async throws {
        let scene = try await Cluster.scene(configuration: ["requestCachePolicy": "useProtocolCachePolicy"])
        let pace = Locked(9 << 20)
        let resource = Resource.generated(seed: 3, length: 20 << 20).with { $0.contentType = "video/mp4" }
        let bytes = Content.bytes(seed: 3, length: 20 << 20)
        scene.origin.serve("/a", resource, always: [.leash { pace.withLock { $0 } }])
        try await scene.download("/a")
        try await scene.origin.waitForRequests(1)
        // The second task waits for the first one's transfer.
        try await scene.download("/a")
        var readers: [FollowedAnswer] = []
        for (node, number) in zip(scene.service.nodes + scene.service.nodes, [1, 1, 1, 2, 2, 2]) {
            let path = "/v1/sessions/s/tasks/\(number)/content?arriving=1"
            let request = try await Cluster.api(node).begin("GET", path, headers: [("Prefer", "wait=60")])
            readers.append(request.follow())
        }
        for offset in [8 << 20, 16 << 20] {
            for reader in readers {
                let begun = try await reader.bytes(offset)
                #expect(begun.status == 200 && begun.fields["Content-Length"] == "\(bytes.count)")
                #expect(begun.fields["Content-Type"] == "video/mp4" && begun.body == Array(bytes[..<begun.body.count]))
            }
            pace.withLock { $0 += 8 << 20 }
        }
        pace.withLock { $0 = .max }
        for reader in readers {
            let whole = try await reader.end()
            #expect(whole.isWhole && whole.body == bytes)
        }
        #expect(Set(readers.map { $0.now.fields["ETag"] }).count == 2, "one for each task")
        #expect(scene.origin.requests("/a").count == 1)
    }

    @Test func `An unfinished content in segments is read at each node, first where readers want it`() async throws {
        let scene = try await Cluster.scene()
        let (withheld, length) = (Locked(40 << 20..<41 << 20), 80 << 20)
        let resource = Resource.generated(seed: 3, length: length).with { $0.contentType = "video/mp4" }
        let bytes = Content.bytes(seed: 3, length: length)
        scene.origin.serve(
            "/a", resource,
            always: [
                .trickle(size: 64 << 10, pause: .milliseconds(25)), .withhold { withheld.withLock { $0 } },
            ])
        try await scene.download("/a", ["segments": 4])
        func read(_ fields: (String, String)...) async throws -> [FollowedAnswer] {
            var readers: [FollowedAnswer] = []
            for node in scene.service.nodes {
                let request = try await Cluster.api(node).begin(
                    "GET", "/v1/sessions/s/tasks/1/content?arriving=1", headers: fields + [("Prefer", "wait=60")])
                readers.append(request.follow())
            }
            return readers
        }
        let (ends, readers) = (try await read(("Range", "bytes=-1000")), try await read())
        for reader in ends {
            let end = try await reader.end()
            #expect(end.isWhole && end.body == Array(bytes.suffix(1000)))
        }
        for reader in readers {
            let begun = try await reader.bytes(16 << 20)
            #expect(begun.status == 200 && begun.fields["Content-Length"] == "\(length)")
            #expect(begun.fields["Content-Type"] == "video/mp4" && begun.body == Array(bytes[..<begun.body.count]))
        }
        #expect(scene.origin.requests("/a").contains { $0.fields["Range"]?.hasPrefix("bytes=\(72 << 20)-") == true })
        #expect(try await scene.task(1)["state"] == "running")
        withheld.withLock { $0 = 0..<0 }
        for reader in readers {
            let whole = try await reader.end()
            #expect(whole.isWhole && whole.body == bytes)
        }
        let store = try #require(scene.service.contents)
        try await eventually("the content is left alone", within: .seconds(60)) {
            let (objects, uploads) = (try await store.keys(), try await store.uploads())
            return objects.count == 1 && uploads == 0
        }
    }

    @Test func `Other nodes resume the work of a killed node`() async throws {
        let scene = try await Cluster.scene(
            ["--max-transfers", "16"], configuration: ["httpMaximumConnectionsPerHost": 64])
        try await Cluster.orderSlow(60, scene)
        let victim = scene.service.nodes[1]
        try await eventually("each has some") {
            for node in scene.service.nodes where try await Cluster.transfers(of: node) == 0 { return false }
            return true
        }
        try await victim.kill()
        try await eventually("it is taken over", within: .seconds(30)) {
            scene.service.errors.contains("nodes died")
        }
        try await Cluster.expectEachOnce(60, scene)
        #expect(try await Cluster.nodes(scene).count == 2)
        let tasks = try await scene.api.get("/v1/sessions/s/tasks?limit=1000").json["items"].array ?? []
        #expect(tasks.allSatisfy { $0["attempts"].int ?? 1 <= 1 }, "no attempt is charged")
        try await victim.start()
        try await eventually("it is back") { try await Cluster.nodes(scene).count == 3 }
    }
}
