import Base
import Core
import Formats
import SQL
import TestSupport
import Testing

@testable import Store

/// A store in a folder of its own, a time that a test sets, and short functions to bring tasks into any state.
final class StoreFixture: Sendable {
    let folder: TemporaryFolder
    let store: Store
    private let time = Locked(Timestamp(milliseconds: 1_800_000_000_000))
    private let presences = Locked<[SessionID: Presence]>([:])
    private let lastName = Locked(0)

    convenience init(
        contentRetention: Duration = .seconds(24 * 3600), cacheCapacity: Int64 = 10 << 30,
        folder: TemporaryFolder = TemporaryFolder(), key: UInt8 = 7
    ) async throws {
        try self.init(
            at: try await TestStore.location(in: folder), contentRetention: contentRetention,
            cacheCapacity: cacheCapacity, folder: folder, key: key)
    }

    init(
        at location: Store.Location, profile: NodeProfile? = nil, contentRetention: Duration = .seconds(24 * 3600),
        cacheCapacity: Int64 = 10 << 30, folder: TemporaryFolder = TemporaryFolder(), key: UInt8 = 7,
        onCommit: @escaping @Sendable (StoreCommit) -> Void = { _ in },
        onFatalError: @escaping @Sendable (any Error) -> Never = { preconditionFailure("\($0)") }
    ) throws {
        self.folder = folder
        let presences = presences
        store = try Store(
            location, profile: profile, sealer: Sealer(masterKey: [UInt8](repeating: key, count: 32)),
            policies: Store.Policies(
                contentRetention: contentRetention, unacknowledgedRetention: .seconds(30 * 24 * 3600),
                cacheCapacity: cacheCapacity,
                presence: { session in
                    presences.withLock {
                        $0[session] ?? Presence(isAttached: false, lastDetachedAt: Timestamp(milliseconds: 0))
                    }
                }),
            log: .none, onCommit: onCommit, onFatalError: onFatalError)
    }

    deinit { store.close() }

    var now: Timestamp { time.withLock { $0 } }

    func advance(_ duration: Duration) { time.withLock { $0 = $0 + duration } }

    func setAttached(_ isAttached: Bool, _ session: SessionID) {
        let now = now
        presences.withLock { $0[session] = Presence(isAttached: isAttached, lastDetachedAt: now) }
    }

    private func name(_ prefix: String) -> String {
        prefix
            + String(
                lastName.withLock {
                    $0 += 1
                    return $0
                })
    }
}

// MARK: Apps, sessions, tasks

extension StoreFixture {
    func makeApp(_ identifier: String? = nil, webhook: String? = "https://app.example/hook") async throws -> AppID {
        var settings = WebhookSettings()
        settings.url = webhook
        let identifier = identifier ?? name("app")
        let key = KeyRecord(
            app: AppID(0), keyIdentifier: name("key"), hash: [1, 2, 3], scopes: Scope.allCases, createdAt: now,
            expiresAt: nil)
        return try await store.apps.create(
            identifier: identifier, webhook: settings, backgroundRefreshStatus: .available, limits: AppLimits(),
            key: key, webhookSecret: Array("canary-webhook-secret".utf8), at: now
        ).id
    }

    func makeSession(
        _ identifier: String? = nil, app: AppID? = nil, _ configure: (inout SessionConfiguration) -> Void = { _ in }
    ) async throws -> SessionRecord {
        var configuration = SessionConfiguration()
        configure(&configuration)
        let owner: AppID
        if let app { owner = app } else { owner = try await makeApp() }
        return try await store.sessions.open(
            identifier ?? name("session"), app: owner, configuration: configuration, description: nil,
            onlyCreates: true, at: now
        ).session
    }

    func download(
        _ path: String = "/a", host: String = "origin.example", suspended: Bool = false, body: NewTask.Body? = nil,
        _ change: (inout TaskSpecification) -> Void = { _ in }
    ) -> NewTask {
        var specification = TaskSpecification(
            kind: .download, request: TransferRequest(url: "https://\(host)\(path)", method: "GET"))
        change(&specification)
        return NewTask(specification: specification, origin: "https://\(host):443", isSuspended: suspended, body: body)
    }

    @discardableResult
    func create(
        _ tasks: [NewTask], in session: SessionRecord, limit: Int64 = .max
    ) async throws -> [CreatedTask] {
        try await store.tasks.create(tasks, in: session.id, limit: limit, at: now).0
    }

    func create(_ task: NewTask, in session: SessionRecord) async throws -> TaskRecord {
        try await store.tasks.create([task], in: session.id, limit: .max, at: now).0[0].task
    }
}

// MARK: Transfers

extension StoreFixture {
    /// Claims up to `count` tasks of each lane.
    func claim(_ count: Int = .max) async throws -> [ClaimedTask] {
        try await store.tasks.advance(settling: [], after: QueueCursor(), through: .everything, at: now) {
            .tasks($0.lanes.map { ($0.id, min(count, Int($0.queued))) })
        }.tasks ?? []
    }

    @discardableResult
    func settle(_ settlements: Settlement...) async throws -> Aftermath {
        try await store.tasks.settle(settlements, at: now)
    }

    func completion(
        _ task: TaskID, _ outcome: Outcome = .succeeded, bytes: [UInt8]? = Array("content".utf8)
    ) -> Settlement {
        var result = TaskResult(progress: TaskProgress())
        result.progress.attempts.attempts = 1
        let content = bytes.map {
            NewContent(
                storage: .bytes($0), length: Int64($0.count),
                digest: ContentDigest(algorithm: .sha256, value: Digest.of($0).hexadecimal))
        }
        return Settlement(task: task, .completed(outcome, result, content))
    }

    /// Creates a task and completes it.
    @discardableResult
    func finished(_ session: SessionRecord, _ outcome: Outcome = .succeeded) async throws -> TaskRecord {
        let task = try await create(download(), in: session)
        _ = try await claim()
        try await settle(completion(task.id, outcome))
        return try await store.tasks.read(task.id)
    }

    /// The default protection space of challenges.
    static let space = ProtectionSpace(
        host: "origin.example", port: 443, scheme: "https", realm: "r", authenticationMethod: .basic)

    func ask(
        _ task: TaskID, _ questionId: String, _ kind: Question.Kind = .challenge,
        about space: ProtectionSpace = StoreFixture.space, failures: Int = 0
    ) -> Settlement {
        Settlement(
            task: task,
            .asked(
                Question(
                    kind: kind, protectionSpace: kind == .challenge ? space : nil, previousFailureCount: failures),
                questionId: questionId, deadline: now + .seconds(24 * 3600), TaskProgress()))
    }

    /// Runs all due chores of the janitor, in batches.
    @discardableResult
    func clean(_ chores: [Chore] = Chore.allCases, rows: Int = 100) async throws -> Aftermath {
        var all = Aftermath()
        // Twice: rows that one chore releases are removed by another.
        for chore in chores + chores {
            while true {
                let cleaning = try await store.upkeep.clean(chore, at: now, rows: rows)
                all.merge(cleaning.aftermath)
                if !cleaning.hasMore { break }
            }
        }
        return all
    }

    func refresh(_ session: SessionRecord) async throws -> SessionRecord { try await store.sessions.read(session.id) }

    func kinds(_ session: SessionRecord, after: Int64 = 0) async throws -> [EventKind] {
        try await store.sessions.events(of: session.id, after: after, limit: 1000).events.map(\.kind)
    }

    func openLaunch(_ session: SessionRecord) async throws -> String? { try await refresh(session).openLaunch }
}

extension SessionConfiguration {
    static func with(_ change: (inout SessionConfiguration) -> Void) -> SessionConfiguration {
        var configuration = SessionConfiguration()
        change(&configuration)
        return configuration
    }
}

extension QueueSieve {
    static let everything = QueueSieve(room: { _, _ in .max }, mayStart: { _ in true })
}

/// Expects that every counter of the store matches its rows.
func expectSoundLedger(_ fixture: StoreFixture, sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let faults = try await Ledger.faults(of: fixture.store)
    #expect(faults == [], sourceLocation: sourceLocation)
}

extension Store.Sets {
    func read(_ id: SetID) async throws -> SetRecord {
        try await database.read { db in try self.read(id, db).orNotFound() }
    }

    func read(_ id: SetVersionID) async throws -> SetVersionRecord {
        try await database.read { db in try self.read(id, db).orNotFound() }
    }
}

extension Store.Files {
    /// Whether a row names a file below this node's data folder, or a task may use it.
    func isNeeded(file path: String) async throws -> Bool { try await need(of: path) != .useless }
}
