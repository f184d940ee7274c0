import Base
import Core
import Files
import Store
import TestSupport
import TransferEngine

@testable import Service
@testable import Transfers

/// A running service with a real store and engine, an app, and an origin on loopback.
final class ServiceStage: Sendable {
    /// On many machines `localhost` has addresses of both families.
    static let loopback = [CIDR(.v4(0x7F00_0000), 8), CIDR(.v6(1), 128)]

    let service: Service
    let origin: OriginServer
    let folder: TemporaryFolder
    let app: AppID
    /// The service's loops, if the stage ends them.
    private let loops = Locked<Task<Void, any Error>?>(nil)

    private init(
        folder: TemporaryFolder, origin: OriginServer? = nil, webhook: String? = nil, clock: Clock = .system,
        configured configure: (inout ServiceSettings) -> Void = { _ in }
    ) async throws {
        folder.makeFolder("data")
        folder.makeFolder("root")
        var settings = ServiceSettings(
            dataFolder: folder.file("data"), version: "1", egress: EgressPolicy(allowed: Self.loopback))
        settings.filesRoots = ["root": folder.file("root")]
        settings.freeDiskFloor = 0
        configure(&settings)
        service = try Service(
            settings: settings, store: try await TestStore.location(in: folder),
            sealer: Sealer(masterKey: [UInt8](repeating: 3, count: 32)), transferThreads: 1, clock: clock, log: .none,
            metrics: Metrics(), onFatalError: { preconditionFailure("\($0)") })
        try await service.prepare()
        app = try await Self.app("app", of: service, webhook: webhook)
        self.origin = try origin ?? OriginServer()
        self.folder = folder
    }

    static func app(_ identifier: String, of service: Service, webhook: String? = nil) async throws -> AppID {
        if let app = try? await service.app(identifier: identifier) { return app.id }
        var settings = WebhookSettings()
        settings.url = webhook
        let key = KeyRecord(
            app: AppID(0), keyIdentifier: identifier, hash: [1], scopes: Scope.allCases, createdAt: service.clock.now,
            expiresAt: nil)
        return try await service.createApp(
            identifier: identifier, webhook: settings, backgroundRefreshStatus: .available, limits: AppLimits(),
            key: key,
            webhookSecret: [1], recording: nil
        ).id
    }

    /// Runs `body` with a running service; the service is then drained as at the end of the process.
    static func run(
        folder: TemporaryFolder = TemporaryFolder(), origin: OriginServer? = nil, webhook: String? = nil,
        clock: Clock = .system, configured configure: (inout ServiceSettings) -> Void = { _ in },
        _ body: (ServiceStage) async throws -> Void
    ) async throws {
        let stage = try await ServiceStage(
            folder: folder, origin: origin, webhook: webhook, clock: clock, configured: configure)
        let service = stage.service
        let result = await withTaskGroup(of: Void.self) { group -> Result<Void, any Error> in
            group.addTask { try? await service.run() }
            let result: Result<Void, any Error>
            do {
                result = .success(try await body(stage))
            } catch {
                result = .failure(error)
            }
            await service.drain(within: .seconds(8))
            group.cancelAll()
            await group.waitForAll()
            return result
        }
        service.close()
        try result.get()
    }

    /// A service whose loops do not run.
    static func idle() async throws -> ServiceStage { try await ServiceStage(folder: TemporaryFolder()) }

    /// A service that runs until it is stopped, or until the stage is released.
    static func start(
        folder: TemporaryFolder = TemporaryFolder(), origin: OriginServer? = nil,
        configured configure: (inout ServiceSettings) -> Void = { _ in }
    ) async throws -> ServiceStage {
        let stage = try await ServiceStage(folder: folder, origin: origin, configured: configure)
        let service = stage.service
        stage.loops.withLock { $0 = Task { try await service.run() } }
        return stage
    }

    /// Ends the service like SIGTERM, so that another one can open its folder.
    func stop() async {
        let loops = loops.withLock { $0.take() }
        await service.drain(within: .seconds(10))
        loops?.cancel()
        service.close()
    }

    deinit {
        guard let loops = loops.withLock({ $0.take() }) else { return }
        loops.cancel()
        let service = service
        Task {
            await service.drain(within: .seconds(5))
            service.close()
        }
    }
}

extension ServiceStage {
    func session(
        _ identifier: String = "s", of owner: AppID? = nil,
        _ configure: (inout SessionConfiguration) -> Void = { _ in }
    ) async throws -> SessionRecord {
        var configuration = SessionConfiguration()
        configuration.retryPolicy = .custom(RetryPolicy.Settings(initialDelay: 0.05, maximumDelay: 0.2))
        configure(&configuration)
        return try await service.openSession(
            identifier, app: owner ?? app, configuration: configuration, description: nil, onlyCreates: false,
            recording: nil
        ).session
    }

    func order(
        _ path: String, kind: TaskKind = .download, suspended: Bool = false, body: TaskOrder.Body? = nil,
        _ change: (inout TaskSpecification) -> Void = { _ in }
    ) -> TaskOrder {
        let request = TransferRequest(url: origin.url(path), method: kind == .upload ? "PUT" : "GET")
        var specification = TaskSpecification(kind: kind, request: request)
        change(&specification)
        return TaskOrder(specification: specification, isSuspended: suspended, body: body)
    }

    @discardableResult
    func create(_ orders: TaskOrder..., in session: SessionRecord) async throws -> [TaskRecord] {
        try await service.createTasks(orders, in: session, recording: nil).map(\.task)
    }

    func completed(_ task: TaskRecord, within limit: Duration = .seconds(60)) async throws -> TaskRecord {
        try await eventually("the end of task \(task.number)", within: limit) {
            let now = try await service.task(task.number, in: task.session)
            return now.state == .completed ? now : nil
        }
    }

    @discardableResult
    func create(
        _ kind: TaskKind = .download, _ method: String = "GET", _ url: String, in session: SessionRecord,
        body: TaskOrder.Body? = nil, _ change: (inout TaskSpecification) -> Void = { _ in }
    ) async throws -> TaskRecord {
        var specification = TaskSpecification(kind: kind, request: TransferRequest(url: url, method: method))
        change(&specification)
        let order = TaskOrder(specification: specification, isSuspended: false, body: body)
        return try await create(order, in: session)[0]
    }

    /// Creates a task and waits for its end.
    @discardableResult
    func run(
        _ kind: TaskKind = .download, _ method: String = "GET", _ url: String, in session: SessionRecord,
        body: TaskOrder.Body? = nil, _ change: (inout TaskSpecification) -> Void = { _ in }
    ) async throws -> TaskRecord {
        try await completed(create(kind, method, url, in: session, body: body, change))
    }

    func task(_ task: TaskRecord, reaches phase: TaskLife.Phase) async throws -> TaskRecord {
        try await eventually("\(phase) of task \(task.number)") {
            let now = try await service.task(task.number, in: task.session)
            return now.phase == phase ? now : nil
        }
    }

    /// Waits until a running transfer has received so many bytes. An origin's sent bytes may not have arrived.
    func received(_ count: Int64, of tasks: TaskRecord...) async throws {
        for task in tasks {
            try await eventually("\(count) bytes of task \(task.number)") {
                service.live.sample(task.id)?.received ?? 0 >= count
            }
        }
    }

    func events(_ session: SessionRecord) async throws -> [EventRecord] {
        try await service.events(of: session.id, after: 0, limit: 1000).events
    }

    func resumptions(_ session: SessionRecord) async throws -> [Resumption] {
        try await events(session).compactMap { event in
            if case .resumed(let resumption) = event.payload { resumption } else { nil }
        }
    }

    /// The bytes of a finished task, from any storage.
    func bytes(_ task: TaskRecord) async throws -> [UInt8] {
        switch try await service.content(of: task).source {
        case .bucket: throw Unexpected()
        case .here(.bytes(let bytes)): return bytes
        case .here(.file(let file)):
            return try [UInt8](unsafeUninitializedCapacity: Int(file.size())) { buffer, count in
                count = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
            }
        }
    }

    func partialFiles() -> [String] { filesBelow(folder.file("data/partial")) }

    /// Waits until the janitor has removed all partial files.
    func waitForNoPartialFiles() async throws {
        try await eventually("an empty partial folder") { partialFiles().isEmpty }
    }
}

/// A result that a test does not expect.
struct Unexpected: Error {}
