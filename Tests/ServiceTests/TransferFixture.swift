import Base
import Core
import Store
import TestSupport

@testable import Service

/// A service in a folder of its own, with an app and a session, that transfers from loopback origins.
final class TransferFixture: Sendable {
    let folder: TemporaryFolder
    let service: Service
    private let loops: Locked<Task<Void, any Error>?>

    init(folder: TemporaryFolder = TemporaryFolder()) async throws {
        self.folder = folder
        folder.makeFolder("data")
        folder.makeFolder("root")
        var settings = ServiceSettings(
            dataFolder: folder.file("data"), version: "0",
            egress: EgressPolicy(allowed: ServiceStage.loopback))
        settings.filesRoots = ["root": folder.file("root")]
        settings.freeDiskFloor = 0
        let service = try Service(
            settings: settings, databasePath: folder.file("data/test.db"),
            sealer: Sealer(masterKey: [UInt8](repeating: 7, count: 32)), transferThreads: 1, clock: .system, log: .none,
            metrics: Metrics(), onFatalError: { preconditionFailure("\($0)") })
        self.service = service
        try await service.prepare()
        loops = Locked(Task { try await service.run() })
    }

    deinit {
        loops.withLock { $0?.cancel() }
        let service = service
        Task {
            await service.drain(within: .seconds(5))
            service.close()
        }
    }

    /// Ends the service as SIGTERM does, so that another can open its folder.
    func stop() async {
        await service.drain(within: .seconds(10))
        loops.withLock { $0?.cancel() }
        service.close()
    }

    func app(_ identifier: String = "app") async throws -> AppID {
        if let known = try? await service.app(identifier: identifier) { return known.id }
        let key = KeyRecord(
            app: AppID(0), keyIdentifier: "key-\(identifier)", hash: [1], scopes: Scope.allCases,
            createdAt: service.clock.now, expiresAt: nil)
        return try await service.createApp(
            identifier: identifier, webhook: WebhookSettings(), backgroundRefreshStatus: .available,
            limits: AppLimits(),
            key: key, webhookSecret: [1, 2, 3], recording: nil
        ).id
    }

    func session(
        _ identifier: String = "s", _ configure: (inout SessionConfiguration) -> Void = { _ in }
    ) async throws -> SessionRecord {
        var configuration = SessionConfiguration()
        configuration.retryPolicy = .custom(.init(initialDelay: 0.05, maximumDelay: 0.2))
        configure(&configuration)
        return try await service.openSession(
            identifier, app: try await app(), configuration: configuration, description: nil, onlyCreates: false,
            recording: nil
        ).session
    }

    @discardableResult
    func create(
        _ kind: TaskKind = .download, _ method: String = "GET", _ url: String, in session: SessionRecord,
        body: TaskOrder.Body? = nil, _ change: (inout TaskSpecification) -> Void = { _ in }
    ) async throws -> TaskRecord {
        var specification = TaskSpecification(kind: kind, request: TransferRequest(url: url, method: method))
        change(&specification)
        let order = TaskOrder(specification: specification, isSuspended: false, body: body)
        return try await service.createTasks([order], in: session, recording: nil)[0].task
    }

    func finish(_ task: TaskRecord, within limit: Duration = .seconds(120)) async throws -> TaskRecord {
        try await eventually("the end of task \(task.number)", within: limit) {
            let now = try await service.task(task.number, in: task.session)
            return now.state == .completed ? now : nil
        }
    }

    /// Creates a task and waits for its end.
    @discardableResult
    func run(
        _ kind: TaskKind = .download, _ method: String = "GET", _ url: String, in session: SessionRecord,
        body: TaskOrder.Body? = nil, _ change: (inout TaskSpecification) -> Void = { _ in }
    ) async throws -> TaskRecord {
        try await finish(create(kind, method, url, in: session, body: body, change))
    }

    func resumptions(of session: SessionRecord) async throws -> [Resumption] {
        try await service.store.events(of: session.id, after: 0, limit: 1000).events.compactMap { event in
            if case .resumed(let resumption) = event.payload { resumption } else { nil }
        }
    }
}
