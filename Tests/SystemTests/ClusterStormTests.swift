import Base
import Core
import Glibc
import TestSupport
import Testing

/// Nodes that are killed, stand still or are cut off from the database or the bucket, and a database that fails over:
/// nothing is lost, nothing doubled.
///
/// With `SOAK=1` at full scale: four nodes, 10,000 tasks, a trouble of each kind every minute, stops of 60 s.
@Suite(
    .serialized, .enabled(if: PostgreSQL.isAvailable && SeaweedFS.isAvailable && !TestStore.isOnServer)
)
struct ClusterStormTests {
    private static let isSoak = getenv("SOAK").map { String(cString: $0) } == "1"
    private static let configuration: JSON = [
        "httpMaximumConnectionsPerHost": 64, "retryPolicy": ["initialDelay": 0.2, "maximumDelay": 2],
    ]
    private static let lengths = [0, 300, 20_000, 65_536, 70_000, 400_000, 12 << 20]

    /// Which of the lengths a task's content has. Few are large: the disk of the machine is not.
    private static func kind(of task: Int) -> Int { task % 40 == 39 ? 6 : task % 6 }

    /// The way of one node to the database's servers and to the bucket.
    private struct Network {
        let primary: CuttingProxy
        let standby: CuttingProxy
        let bucket: CuttingProxy
    }

    @Test func `Nodes in trouble and a failover lose nothing and double nothing`() async throws {
        let began = ContinuousClock.now
        let (nodes, count) = Self.isSoak ? (4, 10_000) : (3, 400)
        let primary = try await PostgreSQL()
        let database = try await primary.database()
        let standby = try await primary.standby()
        let folder = try await SharedSeaweedFS.folder()
        let networks = try (0..<nodes).map { _ in
            Network(
                primary: try CuttingProxy(to: primary.port), standby: try CuttingProxy(to: standby.port),
                bucket: try CuttingProxy(to: folder.store.port))
        }
        let scene = try await Scene(nodes: nodes, configuration: Self.configuration) { node in
            let network = networks[node]
            return [
                "--store", database.connection(network.primary.port, network.standby.port), "--max-transfers", "32",
            ]
                + folder.contents(through: network.bucket.port)
        }
        let receiver = try Receiver { _ in .json(["completed": true]) }
        try await scene.launches(to: receiver)
        Self.serve(scene)

        async let ordered: Void = Self.order(count, scene)
        for round in 0..<(Self.isSoak ? 4 : 1) {
            try await Self.trouble(scene, networks, isFirst: round == 0)
            if round == 0 {
                primary.kill()
                for network in networks { network.primary.close() }
                try await standby.promote()
            }
        }
        try await ordered
        try await eventually("everything completes", within: .seconds(Self.isSoak ? 1800 : 300)) {
            let answer = try? await scene.api.get("/v1/sessions/s")
            return answer?.json["taskCounts"]["completed"].int == count
        }
        try await Self.check(count, scene, receiver)
        try await eventually("no upload is left", within: .seconds(60)) { try await folder.uploads() == 0 }
        let large = (0..<count).count { Self.lengths[Self.kind(of: $0)] > 65_536 }
        try await eventually("no other object is left", within: .seconds(60)) { try await folder.keys().count == large }
        print("cluster storm: \(nodes) nodes, \(count) tasks, 0 lost, 0 doubled, \(ContinuousClock.now - began)")
    }

    private static func serve(_ scene: Scene) {
        for (index, length) in lengths.enumerated() {
            scene.origin.serve(
                "/\(index)", .generated(seed: UInt64(index), length: length),
                always: [.trickle(size: max(1000, length / 12), pause: .milliseconds(100))])
        }
    }

    /// Creates all tasks; what got no answer is sent again until it gets one.
    private static func order(_ count: Int, _ scene: Scene) async throws {
        for number in 0..<count {
            let task = scene.downloadOf("/\(kind(of: number))", ["clientTaskId": "\(number)"])
            try await eventually("task \(number) is accepted", within: .seconds(120)) {
                guard let answer = try? await scene.api.post("/v1/sessions/s/tasks", task) else { return false }
                return answer.status == 201 || answer.status == 200
            }
        }
    }

    /// One trouble after the other, each of another node.
    private static func trouble(_ scene: Scene, _ networks: [Network], isFirst: Bool) async throws {
        let nodes = scene.service.nodes
        let stop = isSoak ? Duration.seconds(60) : .seconds(17)
        try await stays("transfers go on", for: .seconds(2)) { true }
        try await nodes[1].kill()

        nodes[2].signal(SIGSTOP)
        let began = ContinuousClock.now
        try await eventually("the others take over what the killed one had", within: .seconds(40)) {
            scene.service.errors.contains("nodes died")
        }
        try await nodes[1].start()
        try await stays("a node stands still", for: max(.zero, stop - (ContinuousClock.now - began))) { true }
        nodes[2].signal(SIGCONT)

        let network = networks[0]
        network.primary.hold(true)
        network.standby.hold(true)
        try await stays("a node is cut off from the database", for: .seconds(isSoak ? 20 : 4)) { true }
        network.primary.hold(false)
        network.standby.hold(false)
        networks[1].bucket.hold(true)
        try await stays("a node is cut off from the bucket", for: .seconds(isSoak ? 20 : 4)) { true }
        networks[1].bucket.hold(false)
        networks[2].bucket.cut()
    }

    private static func check(_ count: Int, _ scene: Scene, _ receiver: Receiver) async throws {
        let session = try await scene.session()
        #expect(session["taskCounts"]["succeeded"].int == count, "\(session["taskCounts"])")
        let events = try await scene.events()
        expectSound(events)
        #expect(completions(events).count == count)
        var cursor = ""
        var seen: Set<String> = []
        repeat {
            let page = try await scene.api.get("/v1/sessions/s/tasks?limit=1000\(cursor)").json
            for task in page["items"].array ?? [] {
                let name = task["clientTaskId"].string ?? ""
                seen.insert(name)
                let index = kind(of: Int(name) ?? 0)
                let digest = Content.sha256(seed: UInt64(index), length: lengths[index])
                #expect(task["content"]["digest"]["value"].string == digest, "\(name)")
            }
            cursor = page["nextCursor"].string.map { "&cursor=\($0)" } ?? ""
        } while !cursor.isEmpty
        #expect(seen.count == count)
        for number in 1...45 {
            let task = try await scene.task(number)
            let index = kind(of: Int(task["clientTaskId"].string ?? "") ?? 0)
            let content = try await scene.content(number)
            #expect(Content.sha256(of: content.body) == Content.sha256(seed: UInt64(index), length: lengths[index]))
        }
        try await eventually("all is handled", within: .seconds(120)) {
            let session = try await scene.session()
            let last = try await scene.events().last { $0["type"] == "task.didComplete" }?["seq"].int ?? 0
            return session["launch"].isNull && session["acknowledgedSeq"].int ?? 0 >= last
        }
        let deliveries = Dictionary(grouping: receiver.deliveries) { $0.id ?? "" }
        #expect(deliveries.values.allSatisfy { Set($0.map(\.body)).count == 1 }, "a launch changed")
    }
}
