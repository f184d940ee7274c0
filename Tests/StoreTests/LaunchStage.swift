import Base
import Core
import Store
import TestSupport

/// A store on disk with one app and its webhook, and a time that the test sets.
final class LaunchStage: Sendable {
    static let start = Timestamp(milliseconds: 1_800_000_000_000)

    let folder = TemporaryFolder()
    let store: Store
    let app: AppID
    private let time = Locked(LaunchStage.start)

    init() async throws {
        store = try await Self.open(folder)
        app = try await Self.addApp("com.example.app", to: store)
    }

    deinit { store.close() }

    static func open(_ folder: TemporaryFolder) async throws -> Store {
        try Store(
            try await TestStore.location(in: folder), sealer: Sealer(masterKey: [UInt8](repeating: 1, count: 32)),
            policies: Store.Policies(contentRetention: .seconds(3600), unacknowledgedRetention: .seconds(3600)) { _ in
                Presence(isAttached: false, lastDetachedAt: Timestamp(milliseconds: 0))
            }, log: .none
        ) { error in preconditionFailure("\(error)") }
    }

    static func addApp(_ identifier: String, to store: Store) async throws -> AppID {
        var webhook = WebhookSettings()
        webhook.url = "https://receiver.example/hook"
        return try await store.apps.create(
            identifier: identifier, webhook: webhook, backgroundRefreshStatus: .available, limits: AppLimits(),
            key: KeyRecord(
                app: AppID(0), keyIdentifier: identifier, hash: [1], scopes: [], createdAt: start, expiresAt: nil),
            webhookSecret: [UInt8](repeating: 2, count: 32), at: start
        ).id
    }

    var now: Timestamp { time.withLock { $0 } }

    func advance(by duration: Duration) { time.withLock { $0 = $0 + duration } }

    func advance(to moment: Timestamp) { time.withLock { $0 = max($0, moment) } }

    /// A session with one ended task and its events.
    @discardableResult
    func finishTask(in identifier: String, of app: AppID? = nil, discretionary: Bool = false) async throws -> SessionID
    {
        let (session, task) = try await startTask(in: identifier, of: app, discretionary: discretionary)
        _ = try await store.tasks.command(.cancel(reason: nil), task: task, at: now)
        return session
    }

    func startTask(
        in identifier: String, of app: AppID? = nil, discretionary: Bool = false
    ) async throws -> (SessionID, TaskID) {
        var configuration = SessionConfiguration()
        configuration.isDiscretionary = discretionary
        let session = try await store.sessions.open(
            identifier, app: app ?? self.app, configuration: configuration, description: nil, onlyCreates: false,
            at: now
        ).session.id
        let specification = TaskSpecification(
            kind: .download, request: TransferRequest(url: "https://example.com/", method: "GET"))
        let created = try await store.tasks.create(
            [NewTask(specification: specification, origin: "https://example.com:443", isSuspended: false)],
            in: session, limit: 1000, at: now
        ).0
        return (session, created[0].task.id)
    }

    func claim(limit: Int = 64, inFlight: [AppID: Int] = [:]) async throws -> [ClaimedLaunch] {
        try await Self.claim(store, slots: .with(inFlight), limit: limit, at: now)
    }

    static func claim(
        _ store: Store, slots: LaunchSlots = LaunchSlots(), limit: Int = 64, at now: Timestamp
    ) async throws -> [ClaimedLaunch] {
        try await store.launches.claimDue(slots, limit: limit, leaseUntil: now + .seconds(60), at: now).claimed
    }

    @discardableResult
    func report(_ launch: ClaimedLaunch, _ verdict: LaunchReport.Verdict, jitter: Double = 0) async throws -> Aftermath
    {
        try await store.launches.record(
            LaunchReport(
                launch: launch,
                attempt: LaunchAttempt(
                    number: launch.attempt, startedAt: now, duration: .milliseconds(5), statusCode: nil, error: nil,
                    excerpt: nil), verdict: verdict), jitter: jitter, at: now)
    }

    func launches() async throws -> [LaunchRecord] {
        try await store.launches.list(of: app, session: nil, states: [], kinds: [], after: 0, limit: 100).map(\.launch)
    }

    func change(_ body: (inout AppChanges) -> Void) async throws {
        var changes = AppChanges()
        body(&changes)
        _ = try await store.apps.change(app, changes, ifRevision: nil, at: now)
    }

    func webhook(_ body: (inout WebhookSettings) -> Void) async throws {
        var webhook = try await store.apps.read(app).webhook
        body(&webhook)
        try await change { $0.webhook = webhook }
    }
}

extension LaunchSlots {
    /// Slots with attempts in flight.
    static func with(_ underWay: [AppID: Int]) -> LaunchSlots {
        var slots = LaunchSlots()
        for (app, count) in underWay { for number in 0..<count { slots.began(Int64(-number), of: app, at: 0) } }
        return slots
    }
}

/// The report of a failed connection.
let failed = LaunchReport.Verdict.failed(retryAfter: nil, wasAnswered: false)
