import Base
import CSimulation
import Core
import Launches
import SQL
import Service
import Store
import TransferEngine
import Transfers

/// One life of the program, from its start to a crash: the parts of `urlsessiond` below its HTTP server, created and
/// run in the same order.
final class Life: @unchecked Sendable {
    enum State: Equatable { case starting, serving, dead }

    let number: Int
    let machine: Int32
    /// The name of the node; `nil` if the store is a file.
    let node: String?
    let folder: String
    let lane: Lane
    private(set) var state = State.starting
    private(set) var service: Service?
    private(set) var launches: Launches?
    /// Whether the store has refused the commits of the life, because another one had its place.
    private(set) var wasFenced = false
    private var calls: [Int: () -> Void] = [:]
    private var lastCall = 0
    private let trace: Trace
    private let plan: Plan

    /// The log's announcement that a power cut may undo the move of a file to its destination.
    static let unsyncedMove = "a power cut may undo the move"
    /// The log's announcement that a task fails because its outcome, after a move perhaps, could not be stored.
    static let unstoredOutcome = "a settlement could not be stored"

    /// The response to a call was lost with the program, or the program does not run.
    struct Lost: Error {}

    init(_ number: Int, machine: Int32, node: String?, folder: String, _ simulator: Simulator) {
        self.number = number
        self.machine = machine
        self.node = node
        self.folder = folder
        lane = Lane(simulator, machine: machine)
        trace = simulator.trace
        plan = simulator.plan
    }

    func start() {
        _ = Task.detached(executorPreference: lane) { [self] in
            do {
                try await run()
                trace.fail("The service's loops ended by themselves.")
            } catch {
                // The name of the folder differs in each run.
                trace.note("the program ends: \("\(error)".replacing(folder, with: ""))")
                trace.met("start or loop failed")
                csim_plan_crash(machine, csim_kill, 0)
            }
        }
    }

    private func run() async throws {
        let log = Log(level: .info, format: .text) { [trace, node] line in
            for announcement in [Self.unsyncedMove, Self.unstoredOutcome]
            where String(decoding: line, as: UTF8.self).contains(announcement) { trace.met(announcement) }
            let text = String(decoding: line, as: UTF8.self).dropFirst(25).filter { $0 != "\n" }
            trace.note("log \(node.map { $0 + " " } ?? "")\(text)")
        }
        var settings = ServiceSettings(
            dataFolder: "\(folder)/data", version: "1", egress: EgressPolicy(allowed: [CIDR(.v4(0x0A00_0000), 8)]))
        settings.filesRoots = ["root": "\(folder)/root"]
        settings.freeDiskFloor = 1 << 20
        settings.load = { 0 }
        settings.slotPatience = .seconds(2)
        settings.maximumTransfers = 6
        settings.cacheCapacity = plan.cacheCapacity
        if plan.has(.objects) {
            settings.buckets = [ObjectHost.name: try ObjectHost.client(ObjectHost.prefixOfApps, settings.egress, log)]
            settings.contents = ContentsBucket(
                try ObjectHost.client(ObjectHost.prefixOfContents, settings.egress, log), folder: "all",
                clock: .system, log: log)
        }
        let metrics = Metrics()
        let service = try Service(
            settings: settings, store: location,
            sealer: Sealer(masterKey: [UInt8](repeating: 3, count: 32)), transferThreads: 1, clock: .system, log: log,
            metrics: metrics
        ) { [trace] error in
            trace.note("fatal: \(error)")
            self.wasFenced = "\(error)".contains("took this node's place")
            trace.met("fatal error of the database")
            csim_vanish()
        }
        self.service = service
        try await service.prepare()
        var launching = LaunchSettings(
            publicURL: "https://service.test", version: "1", egress: settings.egress, allowsHTTP: true)
        launching.load = { 0 }
        let launches = try Launches(
            store: service.store, settings: launching, bell: service.outlet.launches, clock: .system, log: log,
            metrics: metrics, carryOut: { service.outlet.handle($0) })
        self.launches = launches
        state = .serving
        trace.note("machine \(machine) serves")
        try await withThrowingDiscardingTaskGroup { group in
            group.addTask { try await service.run() }
            group.addTask { try await launches.run() }
        }
    }

    private var location: Store.Location {
        guard let node else { return .file("\(folder)/data/urlsessiond.db") }
        return .server(PostgreSQLServer("postgresql://server.test/urlsessiond"), node: node, contents: "bucket")
    }

    /// Calls the program like a request. Throws ``Lost`` if the program does not run, or crashes before its response.
    func call<Value: Sendable>(
        of app: AppID?, _ body: @escaping @Sendable (Service, Launches) async throws -> Value
    ) async throws -> Value {
        guard state == .serving, let service, let launches else { throw Lost() }
        return try await withCheckedThrowingContinuation { continuation in
            lastCall += 1
            let number = lastCall
            calls[number] = { continuation.resume(throwing: Lost()) }
            // Requests run on the threads that read, so that their reads need no other thread.
            let executor: any TaskExecutor = app.map { service.readers(of: $0.rawValue) } ?? lane
            _ = Task.detached(executorPreference: executor) { [self] in
                let result: Result<Value, any Error>
                do { result = .success(try await body(service, launches)) } catch { result = .failure(error) }
                // A crashed program sends no response.
                guard csim_has_crashed(machine) == 0, calls.removeValue(forKey: number) != nil else { return }
                continuation.resume(with: result)
            }
        }
    }

    /// The program has crashed. Its objects are kept, and none of its code runs again.
    func end() {
        state = .dead
        let lost = calls.sorted { $0.key < $1.key }
        calls = [:]
        for call in lost { call.value() }
    }
}
