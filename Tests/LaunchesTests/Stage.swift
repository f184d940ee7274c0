import Base
import Core
import Launches
import Store
import TestSupport

/// A store on disk, a receiver of webhooks and the launch sender, with a clock that the test may advance.
final class Stage: Sendable {
    static let start: Int64 = 1_800_000_000_000
    static let secret = [UInt8](repeating: 7, count: 32)
    static let secretText = "whsec_" + secret.base64

    let folder = TemporaryFolder()
    let clock = ManualClock(wall: start)
    let metrics = Metrics()
    let receiver: Receiver
    let store: Store
    let bell: Doorbell
    let app: AppID
    let settings: LaunchSettings

    init(
        answers: [Receiver.Answer] = [.launched], url: String?? = nil, allowsHTTP: Bool = true,
        egress: String = "127.0.0.0/8", timeout: Duration = .seconds(15),
        configure: (inout WebhookSettings) -> Void = { _ in }
    ) async throws {
        receiver = try Receiver(answers: answers)
        store = try await Self.open(folder)
        bell = Doorbell(clock: clock.clock)
        var webhook = WebhookSettings()
        webhook.url = url ?? receiver.url
        configure(&webhook)
        let now = Timestamp(milliseconds: Self.start)
        app = try await store.apps.create(
            identifier: "com.example.app", webhook: webhook, backgroundRefreshStatus: .available, limits: AppLimits(),
            key: KeyRecord(app: AppID(0), keyIdentifier: "k1", hash: [1], scopes: [], createdAt: now, expiresAt: nil),
            webhookSecret: Self.secret, at: now
        ).id
        settings = LaunchSettings(
            publicURL: "https://public.example/", version: "1.2.3",
            egress: EgressPolicy(allowed: CIDR(egress).map { [$0] } ?? []), allowsHTTP: allowsHTTP, timeout: timeout)
    }

    deinit { store.close() }

    static func open(_ folder: TemporaryFolder) async throws -> Store {
        try Store(
            try await TestStore.location(in: folder), sealer: Sealer(masterKey: [UInt8](repeating: 1, count: 32)),
            policies: Store.Policies(contentRetention: .seconds(86_400), unacknowledgedRetention: .seconds(86_400)) {
                _ in
                Presence(isAttached: false, lastDetachedAt: Timestamp(milliseconds: 0))
            }, log: .none
        ) { error in preconditionFailure("\(error)") }
    }

    var now: Timestamp { Timestamp(milliseconds: clock.clock.wall()) }

    /// The load of the machine that the tested launches see.
    let load = Locked<Double?>(nil)

    func launches() throws -> Launches {
        var settings = settings
        settings.load = { [load] in load.withLock { $0 } }
        let bell = bell
        return try Launches(
            store: store, settings: settings, bell: bell, clock: clock.clock, log: .none, metrics: Metrics()
        ) { _ in bell.ring() }
    }

    /// Sends launches while `body` runs.
    func running<Result: Sendable>(
        _ body: @escaping @Sendable (Launches) async throws -> Result
    ) async throws -> Result {
        let launches = try launches()
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await launches.run() }
            defer { group.cancelAll() }
            return try await body(launches)
        }
    }

    func advance(by seconds: Double) {
        clock.advance(by: Int64(seconds * 1000))
        bell.ring()
    }

    func addApp(_ identifier: String, url: String) async throws -> AppID {
        var webhook = WebhookSettings()
        webhook.url = url
        return try await store.apps.create(
            identifier: identifier, webhook: webhook, backgroundRefreshStatus: .available, limits: AppLimits(),
            key: KeyRecord(
                app: AppID(0), keyIdentifier: identifier, hash: [1], scopes: [], createdAt: now, expiresAt: nil),
            webhookSecret: Self.secret, at: now
        ).id
    }

    /// A session with one cancelled task, which launches the app.
    @discardableResult
    func finishTask(in identifier: String = "bg", of app: AppID? = nil) async throws -> SessionID {
        let session = try await store.sessions.open(
            identifier, app: app ?? self.app, configuration: nil, description: nil, onlyCreates: false, at: now
        ).session.id
        var specification = TaskSpecification(
            kind: .download, request: TransferRequest(url: "https://example.com/ä", method: "GET"))
        specification.clientTaskId = "c-\(try await store.sessions.read(session).lastEventSeq)"
        specification.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        let (created, _) = try await store.tasks.create(
            [NewTask(specification: specification, origin: "https://example.com:443", isSuspended: false)],
            in: session, limit: 100, at: now)
        _ = try await store.tasks.command(.cancel(reason: nil), task: created[0].task.id, at: now)
        bell.ring()
        return session
    }

    func onlyLaunch() async throws -> LaunchRecord {
        let all = try await store.launches.list(of: app, session: nil, states: [], kinds: [], after: 0, limit: 10)
        guard let launch = all.last?.launch else { throw DomainError.notFound }
        return launch
    }

    /// Waits until the last launch is in a state.
    @discardableResult
    func waitForLaunch(_ state: String) async throws -> LaunchRecord {
        try await eventually("launch \(state)") {
            guard let launch = try? await onlyLaunch(), launch.state.name == state else { return nil }
            return launch
        }
    }

    func change(_ body: (inout AppChanges) -> Void) async throws {
        var changes = AppChanges()
        body(&changes)
        _ = try await store.apps.change(app, changes, ifRevision: nil, at: now)
        bell.ring()
    }

    func webhook(_ body: (inout WebhookSettings) -> Void) async throws {
        var webhook = try await store.apps.read(app).webhook
        body(&webhook)
        try await change { $0.webhook = webhook }
    }
}
