import Base
import Core
import Glibc
import TestSupport
import Testing

/// Three nodes, at length: common limits, suspended and leaving nodes, and their view of each other.
@Suite(
    .serialized, .enabled(if: PostgreSQL.isAvailable && SeaweedFS.isAvailable && !TestStore.isOnServer)
)
struct ClusterTroubleTests {
    @Test func `Transfers of all nodes end in one log and one launch`() async throws {
        let scene = try await Cluster.scene(configuration: ["httpMaximumConnectionsPerHost": 7])
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        // No task ends before all are created, however slow that is.
        let gate = Gate()
        scene.origin.serve("/d", .text("x"), always: [.hold(gate), .delayHead(.milliseconds(20))])
        let count = 1020
        for start in stride(from: 0, to: count, by: 255) {
            let tasks = (start..<start + 255).map { _ in scene.downloadOf("/d") }
            expect(try await scene.api.post("/v1/sessions/s/tasks/batch", ["tasks": .array(tasks)]), 201)
        }
        gate.open()
        let session = try await scene.settled(within: .seconds(240))
        #expect(session["taskCounts"]["succeeded"].int == count)
        let events = try await scene.events()
        expectSound(events)
        #expect(completions(events).count == count)
        let delivery = try #require(try await receiver.waitForDelivery().first)
        #expect(delivery.json["data"]["taskCounts"]["succeeded"].int == count)
        try await stays("one launch", for: .seconds(1)) { Set(receiver.deliveries.map(\.id)).count == 1 }
        #expect(scene.origin.requests("/d").count == count)
        #expect(scene.origin.inFlight.peak <= 7, "the host's limit is that of all nodes")
    }

    @Test func `Connections of segments at all nodes together respect the limit of a host`() async throws {
        let scene = try await Cluster.scene(configuration: ["httpMaximumConnectionsPerHost": 6])
        let length = 24 << 20
        scene.origin.serve(
            "/wide", .generated(seed: 5, length: length), always: [.trickle(size: 1 << 20, pause: .milliseconds(80))])
        let tasks = (0..<4).map { _ in scene.downloadOf("/wide", ["segments": 16]) }
        expect(try await scene.api.post("/v1/sessions/s/tasks/batch", ["tasks": .array(tasks)]), 201)
        let session = try await scene.settled(within: .seconds(240))
        #expect(session["taskCounts"]["succeeded"].int == 4)
        for number in 1...4 {
            let task = try await scene.task(number)
            #expect(task["content"]["digest"]["value"].string == Content.sha256(seed: 5, length: length))
        }
        #expect(scene.origin.requests("/wide").count > 8, "they came in segments")
        #expect(scene.origin.inFlight.peak <= 6, "\(scene.origin.inFlight.peak)")
    }

    @Test func `Readers at other nodes continue once the work of the transferring node is taken over`() async throws {
        let scene = try await Cluster.scene()
        let (pace, length) = (Locked(17 << 20), 36 << 20)
        let bytes = Content.bytes(seed: 3, length: length)
        scene.origin.serve("/a", .generated(seed: 3, length: length), always: [.leash { pace.withLock { $0 } }])
        try await scene.download("/a")
        try await eventually("a node transfers it") { scene.origin.inFlight.now == 1 }
        let transferring = try await scene.service.nodes.mapAsync { try await Cluster.transfers(of: $0) }
        let victim = try #require(transferring.firstIndex(of: 1))
        var readers: [FollowedAnswer] = []
        for (index, node) in scene.service.nodes.enumerated() where index != victim {
            let request = try await Cluster.api(node).begin(
                "GET", "/v1/sessions/s/tasks/1/content?arriving=1", headers: [("Prefer", "wait=60")])
            readers.append(request.follow())
        }
        for reader in readers { try await reader.bytes(16 << 20) }
        try await scene.service.nodes[victim].kill()
        pace.withLock { $0 = 25 << 20 }
        try await eventually("it is taken over", within: .seconds(30)) {
            scene.service.errors.contains("nodes died")
        }
        for reader in readers { try await reader.bytes(24 << 20) }
        pace.withLock { $0 = .max }
        for reader in readers {
            let whole = try await reader.end()
            #expect(whole.isWhole && whole.body == bytes)
        }
        #expect(scene.origin.requests("/a").count == 2)
        #expect(scene.origin.bytesSent("/a") <= length + (8 << 20), "no stored part is fetched again")
    }

    @Test func `A reset closes idle connections at every node that uses the session`() async throws {
        let scene = try await Cluster.scene()
        let streams = try await scene.service.nodes.mapAsync { node in
            try await Cluster.api(node).openStream("/v1/sessions/s/events")
        }
        scene.origin.serve("/a", .text("x"), always: [.delayHead(.milliseconds(50))])
        let tasks = (0..<60).map { _ in scene.downloadOf("/a") }
        expect(try await scene.api.post("/v1/sessions/s/tasks/batch", ["tasks": .array(tasks)]), 201)
        _ = try await scene.settled()
        #expect(scene.origin.openConnections > 0)
        expect(try await scene.api.post("/v1/sessions/s/reset", [:]), 200)
        try await eventually("all are closed", within: .seconds(30)) { scene.origin.openConnections == 0 }
        withExtendedLifetime(streams) {}
    }

    @Test func `Files at a node are removed when the session is deleted at another`() async throws {
        let scene = try await Cluster.scene()
        func partial() -> [String] {
            scene.service.nodes.flatMap { filesBelow($0.data.file("data/partial")) }
        }
        scene.origin.serve(
            "/wide", .generated(seed: 5, length: 32 << 20), always: [.trickle(size: 1 << 20, pause: .milliseconds(200))]
        )
        let number = try await scene.download("/wide", ["segments": 4])
        try await eventually("a node has bytes of its segments on its disk") { !partial().isEmpty }
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/suspend", [:]), 200)
        try await eventually("the transfer stops") { scene.origin.inFlight.now == 0 }
        #expect(!partial().isEmpty)
        for node in scene.service.nodes { _ = try await Cluster.api(node).delete("/v1/sessions/s") }
        try await eventually("no file is left at any node", within: .seconds(60)) { partial().isEmpty }
    }

    @Test func `Streams at all nodes report the progress of a large content`() async throws {
        let scene = try await Cluster.scene()
        let length = 24 << 20
        scene.origin.serve(
            "/huge", .generated(seed: 1, length: length),
            always: [.trickle(size: length / 15, pause: .milliseconds(200))])
        let streams = try await scene.service.nodes.mapAsync { node in
            try await Cluster.api(node).openStream("/v1/sessions/s/events")
        }
        try await scene.download("/huge")
        for stream in streams {
            let events = try await stream.wait { $0.contains { $0.json["type"] == "task.didComplete" } }.map(\.json)
            let progress = events.filter { $0["type"] == "task.didWriteData" }.map(\.["data"])
            let totals = progress.compactMap(\.["totalBytesWritten"].int)
            #expect(totals.contains { $0 >= 8 << 20 } && totals == totals.sorted(), "\(progress)")
            #expect(progress.allSatisfy { $0["totalBytesExpectedToWrite"].int == length }, "\(progress)")
            #expect(progress.reduce(0) { $0 + ($1["bytesWritten"].int ?? 0) } == totals.last)
            #expect(events.last?["type"] == "task.didComplete")
        }
    }

    @Test func `A client at one node prevents launches at another`() async throws {
        let scene = try await Cluster.scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        scene.origin.serve("/d", .text("x"))
        var stream: EventStream? = try await Cluster.api(scene.service.nodes[1]).openStream("/v1/sessions/s/events")
        for _ in 0..<12 { try await scene.download("/d") }
        try await scene.settled()
        try await stays("no launch is delivered", for: .seconds(6)) { receiver.deliveries.isEmpty }
        stream?.close()
        stream = nil
        try await receiver.waitForDelivery()
    }

    @Test func `A suspended node commits nothing after its takeover, and restarts`() async throws {
        let scene = try await Cluster.scene(
            ["--max-transfers", "16"], configuration: ["httpMaximumConnectionsPerHost": 64])
        try await Cluster.orderSlow(60, scene)
        let sleeper = scene.service.nodes[2]
        try await eventually("it has some") { try await Cluster.transfers(of: sleeper) > 0 }
        sleeper.signal(SIGSTOP)
        try await eventually("it is taken over", within: .seconds(40)) {
            scene.service.errors.contains("nodes died")
        }
        sleeper.signal(SIGCONT)
        try await eventually("the node restarts") { sleeper.errors.contains("this node restarts") }
        try await eventually("the node listens") { sleeper.output.split(separator: "\n").count >= 2 }
        try await Cluster.expectEachOnce(60, scene)
        try await eventually("all exist") { try await Cluster.nodes(scene).count == 3 }
        #expect(sleeper.exitStatus == nil)
    }

    @Test func `A drained node hands over its work, and still answers requests`() async throws {
        let scene = try await Cluster.scene(
            ["--max-transfers", "16"], configuration: ["httpMaximumConnectionsPerHost": 64])
        try await Cluster.orderSlow(40, scene)
        let node = scene.service.nodes[1]
        try await eventually("it has some") { try await Cluster.transfers(of: node) > 0 }
        let name = try String(decoding: #require(readFile(node.data.file("data/node"))), as: UTF8.self)
        let id = name.trimmingNewline
        let answer = try await scene.service.admin.post("/v1/nodes/\(id)/drain")
        #expect(answer.status == 202 && answer.json["state"] == "draining", "\(answer.text)")
        try await eventually("it has none") { try await Cluster.transfers(of: node) == 0 }
        expect(try await Cluster.api(node).get("/readyz"), 503)
        expect(try await Cluster.api(node).get("/v1/sessions/s"), 200)
        try await Cluster.expectEachOnce(40, scene)
        #expect(try await node.terminate() == .exited(0))
        try await eventually("it has left") { try await Cluster.nodes(scene).count == 2 }
    }
}
