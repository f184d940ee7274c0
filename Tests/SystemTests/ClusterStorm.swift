import Base
import Core
import Glibc
import TestSupport
import Testing

/// Nodes that share a store, their troubles, and the duration of takeovers.
final class ClusterStorm: Sendable {
    struct Scale: Sendable {
        var nodes = 3
        var tasks = 400
        /// In each round every node has one trouble, and another one in the next round.
        var rounds = 1
        /// The round in which the database fails over.
        var failover = 0
        /// The period in which the tasks are created.
        var load = Duration.seconds(30)
        /// The duration of a node's suspension.
        var stop = Duration.seconds(17)
        /// The duration of a node's disconnection from the database and from the bucket.
        var cut = Duration.seconds(4)

        /// One node killed, one suspended, one without the database and one without the bucket, each minute.
        static let soak = Scale(
            nodes: 4, tasks: 10_000, rounds: 8, failover: 1, load: .seconds(480), stop: .seconds(60), cut: .seconds(20))

        /// Whether a disconnected node's lease of 15 s expires.
        var outlastsLease: Bool { cut > .seconds(15) }
    }

    /// The networks of one node: to the database's servers and to the bucket.
    private struct Network {
        let primary: CuttingProxy
        let standby: CuttingProxy
        let bucket: CuttingProxy
    }

    /// The limit in milliseconds for the takeover of a dead or silent node. Leases last 15 s, and nodes check three
    /// times a second.
    private static let takeover: Int64 = 20_000

    let scale: Scale
    let scene: Scene
    let folder: BucketFolder
    let contents = StormContents()
    private let primary: PostgreSQL
    private let standby: PostgreSQL
    private let database: PostgreSQLDatabase
    private let networks: [Network]
    /// Suspended nodes.
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
                // Warnings only, without the lines of each task, which would have to be read repeatedly.
                "--log-format", "json", "--log-level", "warning",
            ]
                + folder.contents(through: network.bucket.port)
        }
        contents.serve(scene.origin)
    }

    private var nodes: [ServiceProcess] { scene.service.nodes }

    /// The durations of takeovers in milliseconds, in order.
    var tookOverWithin: [Int64] { takeovers.withLock { $0 } }

    // MARK: Tasks

    /// Creates all tasks; requests without a response are repeated.
    func order() async throws {
        let began = ContinuousClock.now
        try await withThrowingTaskGroup { group in
            for worker in 0..<4 {
                group.addTask { [self] in
                    for number in stride(from: worker, to: scale.tasks, by: 4) {
                        // Tasks are created throughout, so that each trouble meets some.
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
            // Like a load balancer, which skips nodes that do not respond.
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

    /// Whether the nodes have received their share of the first contents before the troubles, with no byte in flight.
    private func firstAreHeld() async throws -> Bool {
        let page = try await scene.api.get("/v1/sessions/s/tasks?limit=100").json
        let tasks = (page["items"].array ?? []).filter { StormContents.isFirst(Int($0["clientTaskId"].string ?? "")) }
        return tasks.count { $0["countOfBytesReceived"].int == StormContents.held } == StormContents.first
    }

    // MARK: Troubles

    /// Runs all rounds while tasks are created.
    func run() async throws {
        try await eventually("the first large contents are there in part") { try await firstAreHeld() }
        for number in 0..<scale.rounds { try await round(number) }
    }

    private func round(_ number: Int) async throws {
        // The node that was suspended in the last round is disconnected in this one, and the killed one is suspended.
        // So the node that has to detect the kill was connected to the database for the 10 s before.
        func node(_ trouble: Int) -> Int { (trouble + number * (scale.nodes - 1)) % scale.nodes }
        let (stopped, killed) = (node(1), node(0))
        let end = ContinuousClock.now + scale.stop
        let moment = wallMilliseconds()
        still.withLock { _ = $0.insert(stopped) }
        nodes[stopped].signal(SIGSTOP)
        try await nodes[killed].kill()
        contents.release()

        // Both before the next trouble, which may affect the only node that checks.
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

    /// Stops a network: packets are lost if possible, otherwise connections stall.
    private func hold(_ way: CuttingProxy, _ holds: Bool) async throws {
        if PacketLoss.isPossible { try await PacketLoss.lose(holds, port: way.port) } else { way.hold(holds) }
    }

    // MARK: Takeovers

    /// Waits until another node has taken over a node's work, and records the delay after `moment` from that node's
    /// log, so that a late check has the same result.
    private func waitForTakeover(of node: Int, since moment: Int64) async throws {
        let name = String(decoding: readFile(nodes[node].data.file("data/node")) ?? [], as: UTF8.self)
            .filter { !$0.isWhitespace }
        let time = try await eventually("node \(node) is taken over") { takeover(of: name, since: moment) }
        takeovers.withLock { $0.append(time - moment) }
        #expect(time - moment <= Self.takeover, "node \(node)")
    }

    /// The time of a takeover (ms since 1970), from another node's log.
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

/// The contents of a storm's tasks. Each has its own URL, so that the origin can attribute its bytes.
final class StormContents: Sendable {
    private static let lengths = [0, 300, 20_000, 65_536, 70_000, 400_000, 12 << 20, 48 << 20]
    private static let resources = lengths.enumerated().map { index, length in
        let (seed, tag) = (UInt64(index), "\"v\(index)\"")
        return length < 1 << 20
            ? Resource(.generated(seed: seed, length: length), etag: tag)
            : Resource(.large(LargeContent(seed: seed, length: length)), etag: tag)
    }
    private static let digests = resources.map(\.sha256)
    /// The number of first tasks, which are large.
    static let first = 6
    /// The offset at which these wait for the first trouble, with several parts stored.
    static let held = 40 << 20

    private let hold = Locked(held)

    static func isFirst(_ task: Int?) -> Bool { task.map { $0 < first } ?? false }

    /// Few are large, because the machine's disk is small.
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

    /// The maximum bytes that an interruption costs: a part, the eighth of the next one that is read while the part is
    /// in flight, and the unread bytes in the kernels.
    func costOfInterruption(of task: Int) -> Int {
        // Of the held ones, at most the rest is ever in flight.
        let onItsWay = Self.isFirst(task) ? length(of: task) - Self.held : Self.kernelBuffers
        // A content shorter than a part restarts.
        return min(length(of: task), (8 << 20) + (1 << 20) + onItsWay)
    }

    /// The kernel's limit of unread bytes of one connection: the sum of its ends' buffers.
    private static let kernelBuffers = ["tcp_wmem", "tcp_rmem"].reduce(0) { sum, name in
        let limits = String(decoding: readFile("/proc/sys/net/ipv4/\(name)") ?? [], as: UTF8.self)
        return sum + (limits.split(whereSeparator: \.isWhitespace).last.flatMap { Int($0) } ?? 0)
    }

    /// From now on all contents are sent completely.
    func release() { hold.withLock { $0 = .max } }
}
