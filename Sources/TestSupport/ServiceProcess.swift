import Base
import Glibc

/// The built `urlsessiond`, with a data directory of its own. Releasing the last reference kills it.
///
/// The binary is beside the test bundle; `URLSESSIOND_BINARY` names another one. If tests run on many nodes
/// (``TestStore/nodes``), others share its store, requests go to each in turn, and signals to the first one.
package final class ServiceProcess: Sendable {
    /// The process ended before it listened, or printed something other than its address.
    package struct NotListening: Error, CustomStringConvertible {
        package let status: ExitStatus?
        package let output: String
        package let errors: String
        package var description: String {
            "urlsessiond does not listen (\(status.map { "\($0)" } ?? "running")): \(output)\(errors)"
        }
    }

    package enum ExitStatus: Sendable, Equatable {
        case exited(Int32)
        case killed(Int32)
    }

    /// The data directory, which outlives restarts.
    package let data: TemporaryFolder
    /// The common arguments of all nodes.
    private let shared: [String]
    private let command: [String]
    private let environment: [String: String]
    private let current: Locked<Run?>
    private let peers: ServicePeers?
    private let isFirst: Bool

    /// Tests run concurrently, and a machine has few cores.
    private static let permits = Permits(8)

    /// Starts the service with `--dev` (unless the arguments differ) on a free port, and waits until it listens.
    ///
    /// `wrapper` is a command that runs the service's command after it. With several `nodes`, each may have arguments
    /// of its `own`, which then include the store and `--contents`.
    package init(
        _ arguments: [String] = [], environment: [String: String] = [:], dev: Bool = true,
        data: TemporaryFolder = TemporaryFolder(), binary: String = ServiceProcess.binary, wrapper: [String] = [],
        nodes: Int = TestStore.nodes, eachWith own: ((Int) -> [String])? = nil
    ) async throws {
        self.data = data
        isFirst = true
        let peers = nodes > 1 ? try await ServicePeers() : nil
        self.peers = peers
        shared =
            wrapper + [binary, "serve"] + (dev ? ["--dev"] : []) + ["--data-dir", data.file("data")]
            + (arguments.contains("--listen") ? [] : ["--listen", "127.0.0.1:0"])
            // Tests write little, and the machine's disk may be smaller than the default floor.
            + (arguments.contains("--free-disk-floor") ? [] : ["--free-disk-floor", "16777216"]) + arguments
            + (peers?.arguments(hasContents: own != nil) ?? [])
        command = shared + (own?(0) ?? [])
        var environment = environment.merging(peers?.environment ?? [:]) { own, _ in own }
        if own == nil, TestStore.isOnServer || nodes > 1 {
            environment["URLSESSIOND_STORE"] = try await TestStore.connection(for: data)
        }
        self.environment = environment
        current = Locked(nil)
        await Self.permits.take()
        try await start()
        for number in 1..<nodes { try await addNode(own?(number) ?? []) }
    }

    /// Starts one more node of the service. The arguments follow those of all nodes.
    @discardableResult
    package func addNode(_ arguments: [String] = []) async throws -> ServiceProcess {
        let node = try await ServiceProcess(besides: self, arguments)
        peers?.add(node)
        return node
    }

    private init(besides first: ServiceProcess, _ arguments: [String]) async throws {
        isFirst = false
        data = TemporaryFolder()
        peers = nil
        let (own, other) = (data, first.data)
        shared = []
        command =
            first.shared.map { $0 == other.file("data") ? own.file("data") : $0 }
            + ["--master-key-file", other.file("data/master.key")]
            + (first.shared.contains("--dev") ? [] : ["--admin-key-file", other.file("data/admin.key")]) + arguments
        environment = first.environment
        current = Locked(nil)
        try await start()
    }

    deinit {
        current.withLock { $0?.end() }
        if isFirst { Self.permits.giveBack() }
    }

    /// The port for requests.
    package var port: UInt16 { peers?.port ?? ownPort }

    /// The nodes of the service, this one first.
    package var nodes: [ServiceProcess] { [self] + (peers?.others ?? []) }

    /// The place of the contents of many nodes, unless the test has one of its own.
    package var contents: BucketFolder? { peers?.bucket }

    /// The port of this node.
    package var ownPort: UInt16 { current.withLock { $0?.port ?? 0 } }

    package var pid: Int32 { current.withLock { $0?.pid ?? 0 } }

    /// A client with the key of the app `dev`.
    package var api: APIClient { APIClient(port: port) }

    /// A client with the admin key of `--dev`.
    package var admin: APIClient { APIClient(port: port, key: "dev-admin") }

    /// The current process' standard output.
    package var output: String { current.withLock { $0?.output.text ?? "" } }

    /// The current process' standard error.
    package var errors: String { current.withLock { $0?.errors.text ?? "" } + (peers?.errors ?? "") }

    /// The exit status; `nil` while it runs.
    package var exitStatus: ExitStatus? { current.withLock { $0?.status.withLock { $0 } } }

    /// Starts the service on the same data directory, on any free port.
    package func start(within limit: Duration = .seconds(60)) async throws {
        let run = try await Run.start(command, environment, keeping: data)
        current.withLock { $0 = run }
        // The prefix of https, too.
        let prefix = "urlsessiond listening on http"
        try await eventually("the service listens", within: limit) {
            if run.output.text.hasPrefix(prefix), run.output.text.contains("\n") { return true }
            return run.status.withLock { $0 } != nil
        }
        if run.status.withLock({ $0 }) != nil {
            try await eventually("its output ends") { run.output.hasEnded && run.errors.hasEnded }
        }
        let line = run.output.text.prefix { $0 != "\n" }
        guard line.hasPrefix(prefix), let port = line.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw NotListening(
                status: run.status.withLock { $0 }, output: run.output.text, errors: run.errors.text)
        }
        run.portNumber.withLock { $0 = port }
        peers?.lead(to: self)
    }

    /// Sends a signal.
    package func signal(_ number: Int32) { current.withLock { $0?.signal(number) } }

    /// Kills the process with SIGKILL and waits for its end.
    package func kill() async throws {
        signal(SIGKILL)
        _ = try await waitForExit()
    }

    /// Ends the process with SIGTERM and waits for its end.
    @discardableResult
    package func terminate(within limit: Duration = .seconds(60)) async throws -> ExitStatus {
        signal(SIGTERM)
        return try await waitForExit(within: limit)
    }

    /// Waits for the end of the process.
    @discardableResult
    package func waitForExit(within limit: Duration = .seconds(60)) async throws -> ExitStatus {
        try await eventually("the service ends", within: limit) { exitStatus }
    }

    /// Kills the process and restarts it on the same data directory.
    package func restart() async throws {
        try await kill()
        try await start()
    }

    /// Runs the binary with other arguments until it ends.
    package static func run(
        _ arguments: [String], environment: [String: String] = [:], within limit: Duration = .seconds(60)
    ) async throws -> (status: ExitStatus, output: String, errors: String) {
        var environment = environment
        if TestStore.isOnServer { environment.merge(try await TestStore.environment(arguments)) { own, _ in own } }
        let run = try await Run.start([binary] + arguments, environment, keeping: nil)
        defer { run.signal(SIGKILL) }
        let status = try await eventually("urlsessiond \(arguments) ends", within: limit) {
            run.status.withLock { $0 }
        }
        try await eventually("its output ends") { run.output.hasEnded && run.errors.hasEnded }
        return (status, run.output.text, run.errors.text)
    }

    /// The path of the binary.
    package static var binary: String {
        if let path = getenv("URLSESSIOND_BINARY") { return String(cString: path) }
        var buffer = [CChar](repeating: 0, count: 4096)
        let length = readlink("/proc/self/exe", &buffer, buffer.count)
        let own = String(decoding: buffer.prefix(max(0, length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let folder = own.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        return folder + "/urlsessiond"
    }
}

/// One run of the process.
private final class Run: Sendable {
    let pid: pid_t
    let output: Collected
    let errors: Collected
    let status = Locked<ServiceProcess.ExitStatus?>(nil)
    let portNumber = Locked<UInt16>(0)

    var port: UInt16 { portNumber.withLock { $0 } }

    /// Starts a process; `folder` exists until its end.
    static func start(
        _ arguments: [String], _ changes: [String: String], keeping folder: TemporaryFolder?
    ) async throws -> Run {
        var environment = ["PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"]
        environment.merge(changes) { _, new in new }
        let child = try await Spawner.start(arguments, environment: environment.map { "\($0)=\($1)" })
        return Run(child.pid, Collected(child.output), Collected(child.errors), keeping: folder)
    }

    private init(_ pid: pid_t, _ output: Collected, _ errors: Collected, keeping folder: TemporaryFolder?) {
        self.pid = pid
        self.output = output
        self.errors = errors
        let kept = Locked(folder)
        startThread { [status] in
            var code: Int32 = 0
            while waitpid(pid, &code, 0) < 0 && errno == EINTR {}
            kept.withLock { $0 = nil }
            let signal = code & 0x7F
            let result: ServiceProcess.ExitStatus = signal == 0 ? .exited(code >> 8 & 0xFF) : .killed(signal)
            status.withLock { $0 = result }
        }
    }

    /// Ends the process and waits for its end, so that its folder is removed even at the end of the test run.
    func end() {
        signal(SIGKILL)
        for _ in 0..<5000 where status.withLock({ $0 }) == nil { usleep(1000) }
    }

    /// Sends a signal, unless the process has ended and its number may belong to another.
    func signal(_ number: Int32) {
        status.withLock { if $0 == nil { _ = Glibc.kill(pid, number) } }
    }
}

/// The output of a pipe, collected by a thread.
private final class Collected: Sendable {
    private let state: Locked<(bytes: [UInt8], ended: Bool)>

    init(_ descriptor: Int32) {
        let state = Locked<(bytes: [UInt8], ended: Bool)>(([], false))
        self.state = state
        startThread {
            while true {
                let piece = [UInt8](unsafeUninitializedCapacity: 1 << 14) { buffer, count in
                    count = max(0, read(descriptor, buffer.baseAddress, buffer.count))
                }
                guard !piece.isEmpty else { break }
                state.withLock { $0.bytes += piece }
            }
            close(descriptor)
            state.withLock { $0.ended = true }
        }
    }

    var text: String { String(decoding: state.withLock { $0.bytes }, as: UTF8.self) }

    var hasEnded: Bool { state.withLock { $0.ended } }
}
