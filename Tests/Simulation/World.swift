import Base
import CSimulation
import Core
import Glibc
import Launches
import SQL
import Service
import Store

/// One run: the program in successive lives on one machine or several, and its surroundings.
final class World: @unchecked Sendable {
    let plan: Plan
    private let planted: PlantedFault?
    let trace: Trace
    let simulator: Simulator
    let network: Network
    let origins: Origins
    let receiver: Receiver
    let objects: ObjectHost
    private(set) var app = AppID(0)
    /// The present life of each machine, in their order.
    private(set) var lives: [Life]
    /// Lives that have ended. They must not be released, which would run code that a crash prevents.
    private var graves: [Life] = []
    private let lane: Lane
    private let folder: String
    private var clients: [Client] = []
    var isTroubled = true
    /// The total seconds of jumps of the wall clock, and their maximum.
    var (clockOffset, furthestOffset) = (0, 0)
    private var isDone = false

    init(plan: Plan, planted: PlantedFault?, folder: String, printsAll: Bool) {
        self.plan = plan
        self.planted = planted
        self.folder = folder
        trace = Trace(printsAll: printsAll)
        simulator = Simulator(plan: plan, trace: trace)
        network = Network(simulator)
        origins = Origins(simulator, network)
        receiver = Receiver(simulator, network)
        objects = ObjectHost(simulator, network)
        lane = Lane(simulator, machine: 0)
        lives = []
    }

    var clock: Timestamp { Clock.system.now }

    /// Runs the plan to its end.
    func run() throws(Violation) {
        trace.note("plan \(plan.text)")
        // Of an earlier process that was killed.
        csim_remove(folder)
        mkdir(folder, 0o700)
        if plan.has(.nodes) { startServer() }
        for machine in 1...plan.machines { addMachine(node: plan.has(.nodes) ? "n\(machine)" : nil) }
        network.serve = { [self] request, connection in
            if connection.address & 0x100 != 0 {
                receiver.serve(request, connection)
            } else if connection.address & 0x200 != 0 {
                objects.serve(request, connection)
            } else {
                if origins.isPoisonous(request) { poison(connection.machine) }
                origins.serve(request, connection)
            }
        }
        network.preview = { [origins] request, connection in
            if connection.address & 0x300 == 0 { origins.preview(request, connection) }
        }
        receiver.onWebhook = { [self] in
            guard isTroubled, plan.has(.apps), Dice.extras.chance(100) else { return false }
            begin { try await self.changeApp(2) }
            return true
        }
        simulator.attend = { [network] in network.attend() }
        simulator.onCrash = { [self] in bury($0) }
        begin { try await self.makeApp() }
        try simulator.run { isDone }
    }

    /// Starts the program on a new machine.
    func addMachine(node: String?) {
        let machine = Int32(lives.count + 1)
        let life = Life(1, machine: machine, node: node, folder: "\(folder)/\(machine)/1", simulator)
        for place in ["/\(machine)", "/\(machine)/1", "/\(machine)/1/data", "/\(machine)/1/root"] {
            mkdir(folder + place, 0o700)
        }
        for number in 1...plan.clients { mkdir("\(life.folder)/root/d\(number)", 0o700) }
        csim_mount(machine, life.folder, "\(folder)/\(machine)/2")
        lives.append(life)
        life.start()
    }

    /// Creates the database of the server that the nodes share.
    private func startServer() {
        mkdir("\(folder)/server", 0o700)
        let path = "\(folder)/server/store"
        do {
            let store = try Store(
                .file(path), sealer: Sealer(masterKey: [UInt8](repeating: 3, count: 32)),
                policies: Store.Policies(contentRetention: .zero, unacknowledgedRetention: .zero) { _ in
                    Presence(isAttached: false, lastDetachedAt: Timestamp(milliseconds: 0))
                }, log: .none, onFatalError: { preconditionFailure("\($0)") })
            store.close()
        } catch {
            preconditionFailure("\(error)")
        }
        csim_start_server(path)
    }

    /// A life that serves, if any, otherwise any: requests reach the nodes in no order.
    private var life: Life {
        let serving = lives.filter { $0.state == .serving && csim_is_paused($0.machine) == 0 }
        guard lives.count > 1, !serving.isEmpty else { return lives[0] }
        return Dice.database.pick(serving)
    }

    /// The longest time for a long resource, which a task of one session may wait for while another session receives it,
    /// in milliseconds.
    var slowness: Int64 {
        clients.compactMap(\.configuration.bandwidthLimit).map { Self.longestTime(at: $0, plan) }.max() ?? 0
    }

    /// The time for a long resource at a node's share of a bandwidth, in milliseconds.
    static func longestTime(at limit: Int64, _ plan: Plan) -> Int64 { 25_000_000 * 1000 * Int64(plan.machines) / limit }

    /// Calls a present life of the program.
    func call<Value: Sendable>(
        of app: AppID?, _ body: @escaping @Sendable (Service, Launches) async throws -> Value
    ) async throws -> Value { try await life.call(of: app, body) }

    /// Whether the plan has faults that can cause such an error.
    func mayFail(_ error: SQLError) -> Bool {
        if plan.has(.nodes), error.code == .unreachable || error.isBusy || error.isInterrupted { return true }
        return error.isFull ? plan.has(.fullDisk) || plan.has(.writeErrors) : diskMayFail
    }

    func mayFail(_ error: SystemError) -> Bool { diskMayFail }

    private var diskMayFail: Bool {
        [.writeErrors, .syncErrors, .readErrors, .fullDisk].contains { plan.has($0) }
    }

    /// The bytes of a file of the simulated disk.
    func file(_ path: String) -> [UInt8]? {
        let descriptor = open("\(lives[0].folder)/\(path)", O_RDONLY)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        return [UInt8](unsafeUninitializedCapacity: Int(status.st_size)) { buffer, count in
            count = max(0, csim_pread(descriptor, buffer.baseAddress, buffer.count, 0))
        }
    }

    /// Writes to a file of the simulated disk in place. Returns whether it has a byte.
    func overwriteFirstByte(of path: String) -> Bool {
        let descriptor = open("\(lives[0].folder)/\(path)", O_RDWR)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var byte: UInt8 = 0
        guard csim_pread(descriptor, &byte, 1, 0) == 1 else { return false }
        byte ^= 0xFF
        return pwrite(descriptor, &byte, 1, 0) == 1
    }

    /// A client may have cancelled every task of the app.
    private(set) var mayCancel = false

    /// Changes the state that all clients share.
    func changeApp(_ choice: Int) async throws {
        let app = app
        if choice == 0 { mayCancel = true }
        do {
            _ = try await life.call(of: app) { service, _ in
                switch choice {
                case 0: return try await service.forceQuit(app).revision
                case 1: return try await service.activate(app).revision
                default:
                    var changes = AppChanges()
                    var webhook = WebhookSettings()
                    webhook.url = "http://h1.test/hook"
                    webhook.state = choice == 2 ? .paused : .enabled
                    changes.webhook = webhook
                    return try await service.changeApp(app, changes, ifRevision: nil).revision
                }
            }
            trace.met("app changed \(choice)")
        } catch is Life.Lost {} catch is ServiceError {} catch let error as SQLError where mayFail(error) {}
    }

    func begin(_ body: @escaping @Sendable () async throws -> Void) {
        _ = Task.detached(executorPreference: lane) { [trace] in
            do { try await body() } catch let violation as Violation { trace.fail(violation.text) } catch {
                trace.fail("\(error)")
            }
        }
    }

    // MARK: The run

    private func makeApp() async throws {
        while app == AppID(0) {
            do {
                let planted = planted
                app = try await life.call(of: nil) { service, _ in
                    try await planted?.plant(in: service.store)
                    if let app = try? await service.app(identifier: "app") { return app.id }
                    var webhook = WebhookSettings()
                    webhook.url = "http://h1.test/hook"
                    let key = KeyRecord(
                        app: AppID(0), keyIdentifier: "app", hash: [1], scopes: Scope.allCases,
                        createdAt: service.clock.now, expiresAt: nil)
                    return try await service.createApp(
                        identifier: "app", webhook: webhook, backgroundRefreshStatus: .available, limits: AppLimits(),
                        key: key, webhookSecret: [1], recording: nil
                    ).id
                }
            } catch is Life.Lost { await simulator.pause(50) }
        }
        startTrouble()
        clients = (1...plan.clients).map { Client($0, self) }
        for client in clients { begin { await client.live() } }
        begin { try await self.audit() }
        simulator.after(Double(plan.troubledTime)) { [self] in endTrouble() }
    }

    private func audit() async throws {
        while true {
            await simulator.pause(isTroubled ? 3000 : 10_000)
            if !isTroubled, plan.has(.apps) {
                for choice in [1, 3] { try await changeApp(choice) }
            }
            let areDone = clients.allSatisfy(\.isDone)
            if !isTroubled || life.state == .serving {
                do {
                    let faults = try await life.call(of: nil) { service, _ in try await Ledger.faults(of: service.store)
                    }
                    guard faults.isEmpty else { throw Violation("Ledger: \(faults.joined(separator: "; "))") }
                    trace.met("audit")
                } catch is Life.Lost {
                    continue
                } catch let error as SQLError where error.isInterrupted || mayFail(error) {
                    continue
                }
            }
            if areDone { return try await checkLeftovers() }
        }
    }

    /// All sessions are deleted: the janitor removes their rows and files.
    private func checkLeftovers() async throws {
        var left: [String] = []
        let app = app
        // The store is asked to abort an upload again after up to 43 minutes.
        // A version that was not received whole is removed after an hour.
        for _ in 0..<(plan.has(.objects) || plan.has(.sets) ? 900 : 60) {
            await simulator.pause(5000)
            do {
                let keys = objects.contentKeys
                let (rows, files, objects) = try await life.call(of: nil) { service, _ in
                    try await service.emptyCache(of: app, url: nil)
                    return (
                        try await Leftovers.rows(of: service.store), try await Leftovers.files(of: service.store),
                        try await Leftovers.unknown(keys, to: service.store)
                    )
                }
                left = filesLeft().filter { !files.contains($0) } + rows + objects
                // Without an identifier, an upload is found by its time.
                if !plan.has(.clockJumps) { left += self.objects.uploadKeys }
                left += self.objects.setKeys
            } catch is Life.Lost { continue }
            if left.isEmpty {
                trace.met("nothing is left")
                isDone = true
                return
            }
        }
        throw Violation("Left when all is quiet: \(left.prefix(20))")
    }

    /// A folder below the root of the first machine, as its disk is now.
    func folder(of path: String) -> String { "\(lives[0].folder)/root/\(path)" }

    /// The bytes of a file there.
    func bytes(of path: String) -> [UInt8]? {
        let file = open(folder(of: path), O_RDONLY)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: Int(max(0, lseek(file, 0, SEEK_END))))
        let count = csim_pread(file, &bytes, bytes.count, 0)
        return count == bytes.count ? bytes : nil
    }

    /// Puts a file where a folder is expected. Returns whether it is there.
    func obstruct(_ path: String) -> Bool {
        mkdir(folder(of: "sets"), 0o700)
        let file = open(folder(of: path), O_WRONLY | O_CREAT | O_EXCL, 0o600)
        guard file >= 0 else { return false }
        close(file)
        return true
    }

    func removeObstacle(_ path: String) {
        if unlink(folder(of: path)) == 0 { trace.met("obstacle removed") }
    }

    private func filesLeft() -> [String] {
        var found: [String] = []
        for life in lives where !lost.contains(life.machine) {
            for area in ["partial", "contents", "bodies"] { list("\(life.folder)/data/\(area)", area, &found) }
            list("\(life.folder)/root/sets", "root/sets", &found)
        }
        return found
    }

    private func list(_ path: String, _ name: String, _ found: inout [String]) {
        guard let folder = opendir(path) else { return }
        defer { closedir(folder) }
        while let entry = readdir(folder) {
            let file = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if file == "." || file == ".." { continue }
            if entry.pointee.d_type == UInt8(DT_DIR) {
                list("\(path)/\(file)", "\(name)/\(file)", &found)
            } else {
                found.append("\(name)/\(file)")
            }
        }
    }

    // MARK: Crashes

    /// Machines that never return: another one has their node, or none.
    private var lost: Set<Int32> = []
    /// Machines whose program is about to crash by the transfer of a task.
    var poisoned: Set<Int32> = []
    /// When each machine began its last pause.
    var pausedAt: [Int32: Int64] = [:]

    private var canBeLost: Bool { plan.has(.nodes) && isTroubled && Dice.database.chance(300) }

    /// Planned crashes are much fewer: a program that ends more often cannot start.
    private static let mostLives = 500

    /// The program of a machine has crashed. Its next life starts from the disk that it has left.
    private func bury(_ machine: Int32) {
        let dead = lives[Int(machine) - 1]
        let number = dead.number + 1
        let disk = "\(folder)/\(machine)/"
        trace.note("life \(dead.number) of machine \(machine) ends after \(csim_disk_calls_made()) calls")
        trace.met("crash")
        // Each life has a disk of its own.
        guard number < Self.mostLives else { return trace.fail("Machine \(machine) has had \(number) lives.") }
        let isPoisoned = poisoned.remove(machine) != nil
        if isPoisoned || isTroubled && plan.has(.fatalSignals) && Dice.plan.chance(400) {
            leaveCrashMarker(in: "\(disk)\(number)/data")
        }
        if dead.wasFenced { objects.forget(writtenBy: machine, since: pausedAt[machine] ?? .max) }
        graves.append(dead)
        simulator.drop(dead.lane)
        network.drop(machine)
        csim_bury(machine)
        csim_mount(machine, "\(disk)\(number)", "\(disk)\(number + 1)")
        let next = Life(number, machine: machine, node: dead.node, folder: "\(disk)\(number)", simulator)
        lives[Int(machine) - 1] = next
        dead.end()
        let others = lives.filter { $0 !== next && !lost.contains($0.machine) }
        if others.contains(where: { $0.node == next.node }) || canBeLost && !others.isEmpty {
            trace.note("machine \(machine) is lost")
            trace.met("machine lost")
            lost.insert(machine)
            return
        }
        // Other nodes take over from one that stays away.
        let staysAway = plan.has(.nodes) && isTroubled && Dice.database.chance(isPoisoned ? 700 : 300)
        simulator.after(staysAway ? Dice.database.between(10_000, 90_000) : Dice.plan.between(10, 2000)) { [self] in
            // A crash before the start has created another life.
            if lives[Int(machine) - 1] === next { next.start() }
        }
    }
}

extension Clock {
    fileprivate var now: Timestamp { Timestamp(milliseconds: wall()) }
}
