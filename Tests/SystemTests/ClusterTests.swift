import Base
import Core
import Glibc
import TestSupport
import Testing

/// Section 23: three nodes behind a balancer of connections, on one PostgreSQL and one bucket.
@Suite(
    .serialized, .enabled(if: PostgreSQL.isAvailable && SeaweedFS.isAvailable && !TestStore.isOnServer)
)
struct ClusterTests {
    private static let configuration: JSON = ["retryPolicy": ["initialDelay": 0.1, "maximumDelay": 0.2]]

    private static func scene(_ arguments: [String] = [], configuration: JSON? = configuration) async throws -> Scene {
        try await Scene(arguments, configuration: configuration, nodes: 3)
    }

    /// What a node has under way, as its metrics tell.
    private static func transfers(of node: ServiceProcess) async throws -> Int {
        let text = try await APIClient(port: node.ownPort, key: "dev-admin").get("/metrics").text
        let line = text.split(separator: "\n").first { $0.hasPrefix("urlsessiond_transfers_running ") }
        return Int(line?.split(separator: " ").last ?? "") ?? 0
    }

    private static func nodes(_ scene: Scene) async throws -> [JSON] {
        try await scene.service.admin.get("/v1/nodes").json["items"].array ?? []
    }

    /// A client of one node, with the key of the app `dev`.
    private static func api(_ node: ServiceProcess) -> APIClient { APIClient(port: node.ownPort) }

    /// Orders downloads that come slowly: of a small content, and of a large one.
    private static func orderSlow(_ count: Int, _ scene: Scene) async throws {
        for (path, length) in [("/small", 20_000), ("/large", 400_000)] {
            scene.origin.serve(
                path, .generated(seed: 1, length: length),
                always: [.trickle(size: length / 40, pause: .milliseconds(100))])
        }
        let tasks = (0..<count).map { scene.downloadOf($0 % 2 == 0 ? "/small" : "/large") }
        expect(try await scene.api.post("/v1/sessions/s/tasks/batch", ["tasks": .array(tasks)]), 201)
    }

    private static func expectEachOnce(_ count: Int, _ scene: Scene) async throws {
        let session = try await scene.settled()
        #expect(session["taskCounts"]["succeeded"].int == count, "\(session["taskCounts"])")
        let events = try await scene.events()
        expectSound(events)
        #expect(completions(events).count == count)
        for number in 1...min(count, 8) {
            let (seed, length) = (UInt64(1), number % 2 == 1 ? 20_000 : 400_000)
            let content = try await scene.content(number)
            #expect(Content.sha256(of: content.body) == Content.sha256(seed: seed, length: length), "\(number)")
        }
    }

    // MARK: Together

    @Test func `Transfers of all nodes end in one log and one launch`() async throws {
        let scene = try await Self.scene(configuration: ["httpMaximumConnectionsPerHost": 7])
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        // Nothing ends before all are ordered, however slow that is.
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

    @Test func `Connections of segments at all nodes together keep to the limit of a host`() async throws {
        let scene = try await Self.scene(configuration: ["httpMaximumConnectionsPerHost": 6])
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

    @Test func `A reset closes idle connections at every node that follows the session`() async throws {
        let scene = try await Self.scene()
        let streams = try await scene.service.nodes.mapAsync { node in
            try await Self.api(node).openStream("/v1/sessions/s/events")
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

    @Test func `Files at a node go when the session is deleted at another`() async throws {
        let scene = try await Self.scene()
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
        for node in scene.service.nodes { _ = try await Self.api(node).delete("/v1/sessions/s") }
        try await eventually("no file is left at any node", within: .seconds(60)) { partial().isEmpty }
    }

    @Test func `Who waits at one node is told within a second what another commits`() async throws {
        let scene = try await Self.scene()
        let gate = Gate()
        scene.origin.serve("/held", .text("x"), always: [.hold(gate)])
        let number = try await scene.download("/held")
        let streams = try await scene.service.nodes.mapAsync { node in
            try await Self.api(node).openStream("/v1/sessions/s/events")
        }
        async let waits = withThrowingTaskGroup { group in
            for node in scene.service.nodes {
                group.addTask { try await Self.api(node).get("/v1/sessions/s/tasks/\(number)?wait=60").json }
            }
            var answers: [JSON] = []
            for try await answer in group { answers.append(answer) }
            return answers
        }
        try await eventually("it is under way") { scene.origin.inFlight.now == 1 }
        #expect(try await scene.session()["attachment"]["kind"] == "stream")
        gate.open()
        let answers = try await waits
        #expect(answers.allSatisfy { $0["state"] == "completed" })
        for stream in streams { try await stream.wait { $0.contains { $0.json["type"] == "task.didComplete" } } }
    }

    @Test func `Streams at all nodes see how far a large content is`() async throws {
        let scene = try await Self.scene()
        let length = 24 << 20
        scene.origin.serve(
            "/huge", .generated(seed: 1, length: length),
            always: [.trickle(size: length / 15, pause: .milliseconds(200))])
        let streams = try await scene.service.nodes.mapAsync { node in
            try await Self.api(node).openStream("/v1/sessions/s/events")
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

    @Test func `A client at one node keeps another from launching`() async throws {
        let scene = try await Self.scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        scene.origin.serve("/d", .text("x"))
        var stream: EventStream? = try await Self.api(scene.service.nodes[1]).openStream("/v1/sessions/s/events")
        for _ in 0..<12 { try await scene.download("/d") }
        try await scene.settled()
        try await stays("nobody is launched", for: .seconds(6)) { receiver.deliveries.isEmpty }
        stream?.close()
        stream = nil
        try await receiver.waitForDelivery()
    }

    @Test func `What is decided at one node stops a transfer at another, and is gone on with there`() async throws {
        let scene = try await Self.scene()
        scene.origin.serve(
            "/long", .generated(seed: 3, length: 20 << 20), always: [.trickle(size: 1 << 20, pause: .milliseconds(150))]
        )
        let (cancelled, suspended) = (try await scene.download("/long"), try await scene.download("/long"))
        try await eventually("both are under way") { scene.origin.inFlight.now == 2 }
        try await scene.waitFor("has bytes", task: suspended) { $0["countOfBytesReceived"].int ?? 0 > 9 << 20 }
        // One of these two is not who has them.
        let (second, third) = (Self.api(scene.service.nodes[1]), Self.api(scene.service.nodes[2]))
        expect(try await second.post("/v1/sessions/s/tasks/\(cancelled)/cancel"), 202)
        expect(try await third.post("/v1/sessions/s/tasks/\(suspended)/suspend"), 200)
        try await eventually("nobody fetches any more") { scene.origin.inFlight.now == 0 }
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(suspended)/resume"), 200)
        let task = try await scene.completed(suspended)
        #expect(task["content"]["digest"]["value"].string == Content.sha256(seed: 3, length: 20 << 20))
        let requests = scene.origin.requests("/long")
        #expect(requests.count == 3 && requests.last?.fields["Range"] != nil, "it goes on where it was")
    }

    // MARK: Death

    @Test func `The others go on with what a killed node had`() async throws {
        let scene = try await Self.scene(
            ["--max-transfers", "16"], configuration: ["httpMaximumConnectionsPerHost": 64])
        try await Self.orderSlow(60, scene)
        let victim = scene.service.nodes[1]
        try await eventually("each has some") {
            for node in scene.service.nodes where try await Self.transfers(of: node) == 0 { return false }
            return true
        }
        try await victim.kill()
        try await eventually("it is taken over", within: .seconds(30)) {
            scene.service.errors.contains("nodes died")
        }
        try await Self.expectEachOnce(60, scene)
        #expect(try await Self.nodes(scene).count == 2)
        let tasks = try await scene.api.get("/v1/sessions/s/tasks?limit=1000").json["items"].array ?? []
        #expect(tasks.allSatisfy { $0["attempts"].int ?? 1 <= 1 }, "no attempt is charged")
        try await victim.start()
        try await eventually("it is back") { try await Self.nodes(scene).count == 3 }
    }

    @Test func `A node that stood still changes nothing any more, and begins anew`() async throws {
        let scene = try await Self.scene(
            ["--max-transfers", "16"], configuration: ["httpMaximumConnectionsPerHost": 64])
        try await Self.orderSlow(60, scene)
        let sleeper = scene.service.nodes[2]
        try await eventually("it has some") { try await Self.transfers(of: sleeper) > 0 }
        sleeper.signal(SIGSTOP)
        try await eventually("it is taken over", within: .seconds(40)) {
            scene.service.errors.contains("nodes died")
        }
        sleeper.signal(SIGCONT)
        try await eventually("it begins anew") { sleeper.errors.contains("it begins anew") }
        try await eventually("it listens") { sleeper.output.split(separator: "\n").count >= 2 }
        try await Self.expectEachOnce(60, scene)
        try await eventually("all are there") { try await Self.nodes(scene).count == 3 }
        #expect(sleeper.exitStatus == nil)
    }

    @Test func `A drained node hands over what it has, and goes on answering`() async throws {
        let scene = try await Self.scene(
            ["--max-transfers", "16"], configuration: ["httpMaximumConnectionsPerHost": 64])
        try await Self.orderSlow(40, scene)
        let node = scene.service.nodes[1]
        try await eventually("it has some") { try await Self.transfers(of: node) > 0 }
        let name = try String(decoding: #require(readFile(node.data.file("data/node"))), as: UTF8.self)
        let id = name.trimmingNewline
        let answer = try await scene.service.admin.post("/v1/nodes/\(id)/drain")
        #expect(answer.status == 202 && answer.json["state"] == "draining", "\(answer.text)")
        try await eventually("it has none") { try await Self.transfers(of: node) == 0 }
        expect(try await Self.api(node).get("/readyz"), 503)
        expect(try await Self.api(node).get("/v1/sessions/s"), 200)
        try await Self.expectEachOnce(40, scene)
        #expect(try await node.terminate() == .exited(0))
        try await eventually("it has left") { try await Self.nodes(scene).count == 2 }
    }
}

extension String {
    fileprivate var trimmingNewline: String { String(prefix { $0 != "\n" }) }
}

extension [ServiceProcess] {
    fileprivate func mapAsync<T>(_ body: (ServiceProcess) async throws -> T) async rethrows -> [T] {
        var all: [T] = []
        for node in self { all.append(try await body(node)) }
        return all
    }
}
