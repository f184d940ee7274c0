import Base
import Core
import Glibc
import TestSupport
import Testing

/// Nodes that share a store, what befalls them, and how long it takes until others have taken over what a node had.
final class ClusterStorm: Sendable {
    struct Scale: Sendable {
        var nodes = 3
        var tasks = 400
        /// In each of them every node has a trouble, and a new one in the next.
        var rounds = 1
        /// The round in which the database fails over.
        var failover = 0
        /// Time over which the tasks are ordered.
        var load = Duration.seconds(30)
        /// For how long a node stands still.
        var stop = Duration.seconds(17)
        /// For how long nodes are cut off from the database and from the bucket.
        var cut = Duration.seconds(4)

        /// A node killed, one stopped, one without the database and one without the bucket, each minute.
        static let soak = Scale(
            nodes: 4, tasks: 10_000, rounds: 8, failover: 1, load: .seconds(480), stop: .seconds(60), cut: .seconds(20))

        /// Whether others give up a node that is cut off from the database: they wait for 15 s.
        var outlastsLease: Bool { cut > .seconds(15) }
    }

    /// The way of one node to the database's servers and to the bucket.
    private struct Network {
        let primary: CuttingProxy
        let standby: CuttingProxy
        let bucket: CuttingProxy
    }

    /// Until when others have taken over what a node had that died or fell silent, in milliseconds. They wait for 15 s and
    /// look three times a second.
    private static let takeover: Int64 = 20_000

    let scale: Scale
    let scene: Scene
    let folder: BucketFolder
    let contents = StormContents()
    private let primary: PostgreSQL
    private let standby: PostgreSQL
    private let database: PostgreSQLDatabase
    private let networks: [Network]
    /// Nodes that were stopped.
    private let still = Locked<Set<Int>>([])
    private let takeovers = Locked<[Int64]>([])

    init(_ scale: Scale, configuration: JSON) async throws {
        self.scale = scale
        primary = try await PostgreSQL()
        database = try await primary.database()
        standby = try await primary.standby()
        folder = try await SharedSeaweedFS.folder()
        var networks: [Network] = []
        for _ in 0..<scale.nodes {
            networks.append(
                Network(
                    primary: try CuttingProxy(to: primary.port), standby: try CuttingProxy(to: standby.port),
                    bucket: try CuttingProxy(to: folder.store.port)))
        }
        self.networks = networks
        let (database, folder, known) = (database, folder, networks)
        scene = try await Scene(nodes: scale.nodes, configuration: configuration) { node in
            let network = known[node]
            return [
                "--store", database.connection(network.primary.port, network.standby.port), "--max-transfers", "32",
                // What matters here, and no lines of each task that have to be read again and again.
                "--log-format", "json", "--log-level", "warning",
            ]
                + folder.contents(through: network.bucket.port)
        }
        contents.serve(scene.origin)
    }

    private var nodes: [ServiceProcess] { scene.service.nodes }

    /// How long takeovers took, in milliseconds, in their order.
    var tookOverWithin: [Int64] { takeovers.withLock { $0 } }

    // MARK: Tasks

    /// Creates all tasks; what got no answer is sent again until it gets one.
    func order() async throws {
        let began = ContinuousClock.now
        try await withThrowingTaskGroup { group in
            for worker in 0..<4 {
                group.addTask { [self] in
                    for number in stride(from: worker, to: scale.tasks, by: 4) {
                        // They come all the while, so that each trouble meets some.
                        try await Task.sleep(until: began + scale.load * number / scale.tasks, clock: .continuous)
                        try await order(number)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    private func order(_ number: Int) async throws {
        let task = scene.downloadOf(contents.target(of: number), ["clientTaskId": "\(number)"])
        var turn = number
        try await eventually("task \(number) is accepted", within: .seconds(120)) {
            // As a load balancer does, which asks none that does not answer it.
            let choice = nodes.indices.filter { node in !still.withLock { $0.contains(node) } }
            turn += 1
            var api = APIClient(port: nodes[choice[turn % choice.count]].ownPort)
            api.observe = Contract.shared.check
            let answer = try? await api.send(
                "POST", "/v1/sessions/s/tasks", headers: [("Content-Type", "application/json")], body: task.bytes,
                within: .seconds(15))
            return answer?.status == 201 || answer?.status == 200
        }
    }

    /// Whether the nodes have got of the first contents what these may have before the troubles: nothing of it is on its way.
    private func firstAreHeld() async throws -> Bool {
        let page = try await scene.api.get("/v1/sessions/s/tasks?limit=100").json
        let tasks = (page["items"].array ?? []).filter { StormContents.isFirst(Int($0["clientTaskId"].string ?? "")) }
        return tasks.count { $0["countOfBytesReceived"].int == StormContents.held } == StormContents.first
    }

    // MARK: Troubles

    /// All rounds, while tasks are ordered.
    func run() async throws {
        try await eventually("the first large contents are there in part") { try await firstAreHeld() }
        for number in 0..<scale.rounds { try await round(number) }
    }

    private func round(_ number: Int) async throws {
        // The one that stood still in the round before is cut off in this one, and the one that was killed stands still. So
        // whoever has to notice the kill was in touch with the database for the 10 s before that this takes.
        func node(_ trouble: Int) -> Int { (trouble + number * (scale.nodes - 1)) % scale.nodes }
        let (stopped, killed) = (node(1), node(0))
        let end = ContinuousClock.now + scale.stop
        let moment = wallMilliseconds()
        still.withLock { _ = $0.insert(stopped) }
        nodes[stopped].signal(SIGSTOP)
        try await nodes[killed].kill()
        contents.release()

        // Both before the next trouble, which may be that of the only one that looks.
        try await waitForTakeover(of: killed, since: moment)
        try await waitForTakeover(of: stopped, since: moment)
        async let continued: Void = goOn(stopped, at: end)
        try await nodes[killed].start()
        async let withoutBucket: Void = cutFromBucket(node(3))
        try await cutFromDatabase(node(2))
        if number == scale.failover {
            primary.kill()
            for network in networks { network.primary.close() }
            try await standby.promote()
        }
        networks[node(2)].bucket.cut()
        _ = try await (withoutBucket, continued)
    }

    private func goOn(_ node: Int, at end: ContinuousClock.Instant) async throws {
        try await stays("a node stands still", for: end - .now) { true }
        nodes[node].signal(SIGCONT)
        still.withLock { _ = $0.remove(node) }
    }

    private func cutFromDatabase(_ node: Int) async throws {
        let network = networks[node]
        let end = ContinuousClock.now + scale.cut
        let moment = wallMilliseconds()
        try await hold(network.primary, true)
        try await hold(network.standby, true)
        if scale.outlastsLease { try await waitForTakeover(of: node, since: moment) }
        try await stays("a node is cut off from the database", for: end - .now) { true }
        try await hold(network.primary, false)
        try await hold(network.standby, false)
    }

    private func cutFromBucket(_ node: Int) async throws {
        try await hold(networks[node].bucket, true)
        try await stays("a node is cut off from the bucket", for: scale.cut) { true }
        try await hold(networks[node].bucket, false)
    }

    /// Lets nothing through: the packets are lost where that is possible, else the connections stand still.
    private func hold(_ way: CuttingProxy, _ holds: Bool) async throws {
        if PacketLoss.isPossible { try await PacketLoss.lose(holds, port: way.port) } else { way.hold(holds) }
    }

    // MARK: Takeovers

    /// Waits until another node has taken over what a node had, and notes how long after `moment` it says that it did: a
    /// test that looks late finds the same.
    private func waitForTakeover(of node: Int, since moment: Int64) async throws {
        let name = String(decoding: readFile(nodes[node].data.file("data/node")) ?? [], as: UTF8.self)
            .filter { !$0.isWhitespace }
        let time = try await eventually("node \(node) is taken over") { takeover(of: name, since: moment) }
        takeovers.withLock { $0.append(time - moment) }
        #expect(time - moment <= Self.takeover, "node \(node)")
    }

    /// When a node was taken over (ms since 1970), as the log of another one has it.
    private func takeover(of name: String, since moment: Int64) -> Int64? {
        for line in scene.service.errors.split(separator: "\n") where line.contains("nodes died") {
            guard let json = try? JSON(parsing: Array(line.utf8)),
                let time = json["time"].string.flatMap({ Timestamp(rfc3339: $0) })?.milliseconds, time >= moment,
                let names = json["nodes"].string?.split(separator: " "), names.contains(Substring(name))
            else { continue }
            return time
        }
        return nil
    }
}

/// What the tasks of a storm bring. Each has a URL of its own, so that the origin knows what it sent for which.
final class StormContents: Sendable {
    private static let lengths = [0, 300, 20_000, 65_536, 70_000, 400_000, 12 << 20, 48 << 20]
    private static let resources = lengths.enumerated().map { index, length in
        let (seed, tag) = (UInt64(index), "\"v\(index)\"")
        return length < 1 << 20
            ? Resource(.generated(seed: seed, length: length), etag: tag)
            : Resource(.large(LargeContent(seed: seed, length: length)), etag: tag)
    }
    private static let digests = resources.map(\.sha256)
    /// Tasks that come first and are large.
    static let first = 6
    /// Where these wait for the first trouble, so that it meets them with several parts there.
    static let held = 40 << 20

    private let hold = Locked(held)

    static func isFirst(_ task: Int?) -> Bool { task.map { $0 < first } ?? false }

    /// Few are large: the disk of the machine is not.
    private func kind(of task: Int) -> Int {
        if Self.isFirst(task) || task % 400 == 399 { return 7 }
        return task % 40 == 39 ? 6 : task % 6
    }

    func length(of task: Int) -> Int { Self.lengths[kind(of: task)] }

    func digest(of task: Int) -> String { Self.digests[kind(of: task)] }

    func target(of task: Int) -> String { "/\(kind(of: task))?\(task)" }

    func serve(_ origin: OriginServer) {
        for (index, resource) in Self.resources.enumerated() {
            let length = Self.lengths[index]
            let pace = max(1000, min(128 << 10, length / 12))
            origin.serve(
                "/\(index)", resource,
                always: [
                    .trickle(size: pace, pause: .milliseconds(length < 1 << 20 ? 100 : 20)),
                    .leash { [hold] in hold.withLock { $0 } },
                ])
        }
    }

    /// Bytes that an interruption costs at most: a part, the eighth of the next one that is taken while it is on its way,
    /// and what the origin had sent and the node not read.
    func costOfInterruption(of task: Int) -> Int {
        // Of those that were held, no more than the rest is ever on its way.
        let onItsWay = Self.isFirst(task) ? length(of: task) - Self.held : Self.kernelBuffers
        // What is shorter than a part begins anew.
        return min(length(of: task), (8 << 20) + (1 << 20) + onItsWay)
    }

    /// How much the kernel keeps of one connection that nobody reads: what its ends may send and receive at most.
    private static let kernelBuffers = ["tcp_wmem", "tcp_rmem"].reduce(0) { sum, name in
        let limits = String(decoding: readFile("/proc/sys/net/ipv4/\(name)") ?? [], as: UTF8.self)
        return sum + (limits.split(whereSeparator: \.isWhitespace).last.flatMap { Int($0) } ?? 0)
    }

    /// From here on contents come to their ends.
    func release() { hold.withLock { $0 = .max } }
}
