import Base
package import Core
import Store
import TransferEngine
import Transfers

extension Service {
    package func createApp(
        identifier: String, webhook: WebhookSettings, backgroundRefreshStatus: BackgroundRefreshStatus,
        limits: AppLimits, key: KeyRecord, webhookSecret: [UInt8], recording: Recording<AppRecord>?
    ) async throws -> AppRecord {
        try await store.apps.create(
            identifier: identifier, webhook: webhook, backgroundRefreshStatus: backgroundRefreshStatus,
            limits: limits, key: key, webhookSecret: webhookSecret, at: clock.now, recording: recording)
    }

    package func app(_ id: AppID) async throws -> AppRecord { try await store.apps.read(id) }

    package func app(identifier: String) async throws -> AppRecord { try await store.apps.read(identifier: identifier) }

    package func apps(_ span: ListSpan, after cursor: Int64, limit: Int) async throws -> [AppRecord] {
        try await store.apps.list(span, after: cursor, limit: limit)
    }

    package func changeApp(_ id: AppID, _ changes: AppChanges, ifRevision revision: Int64?) async throws -> AppRecord {
        let (app, aftermath) = try await store.apps.change(id, changes, ifRevision: revision, at: clock.now)
        outlet.handle(aftermath)
        inbox.tell(.appChanged(id))
        return app
    }

    package func deleteApp(_ id: AppID) async throws {
        let active = try await store.apps.delete(id)
        outlet.stop(active)
        engine.closeConnections(pool: id.rawValue)
    }

    /// Cancels every task of the app and silences launches and fetches until ``activate(_:)``.
    package func forceQuit(_ id: AppID, ifRevision revision: Int64? = nil) async throws -> AppRecord {
        let app = try await change(id, isForceQuit: true, ifRevision: revision)
        try await carryOutCancellation(of: id)
        return app
    }

    package func activate(_ id: AppID, ifRevision revision: Int64? = nil) async throws -> AppRecord {
        let app = try await change(id, isForceQuit: false, ifRevision: revision)
        try await forEachSession(of: id) { self.relauncher.check($0.id, at: self.clock.now) }
        return app
    }

    private func change(_ id: AppID, isForceQuit: Bool, ifRevision revision: Int64?) async throws -> AppRecord {
        var changes = AppChanges()
        changes.isForceQuit = isForceQuit
        return try await changeApp(id, changes, ifRevision: revision)
    }

    func forEachSession(of app: AppID, _ body: (SessionRecord) async throws -> Void) async throws {
        var cursor: Int64 = 0
        while true {
            let sessions = try await store.sessions.list(of: app, after: cursor, limit: 100)
            for session in sessions { try await body(session) }
            guard sessions.count == 100, let last = sessions.last else { return }
            cursor = last.id.rawValue
        }
    }

    package func addKey(_ key: KeyRecord, recording: Recording<KeyRecord>?) async throws {
        try await store.apps.addKey(key, recording: recording)
    }

    package func keys(of app: AppID) async throws -> [KeyRecord] { try await store.apps.keys(of: app) }

    package func key(_ keyIdentifier: String) async throws -> KeyRecord? { try await store.apps.key(keyIdentifier) }

    package func deleteKey(_ keyIdentifier: String, of app: AppID) async throws {
        try await store.apps.deleteKey(keyIdentifier, of: app)
    }

    package func rotateWebhookSecret(
        of app: AppID, to secret: [UInt8], previousExpiresAt: Timestamp, recording: Recording<Void>?
    ) async throws {
        try await store.apps.rotateWebhookSecret(
            of: app, to: secret, previousExpiresAt: previousExpiresAt, at: clock.now, recording: recording)
    }

    package func revokeReplacedWebhookSecrets(of app: AppID) async throws {
        try await store.apps.revokeReplacedWebhookSecrets(of: app)
    }

    /// The response stored for an `Idempotency-Key`, with the fingerprint of its request.
    package func storedAnswer(
        principal: String, key: String
    ) async throws -> (fingerprint: [UInt8], answer: StoredAnswer)? {
        try await store.apps.storedAnswer(principal: principal, key: key, at: clock.now)
    }

    /// Stores a response in a commit of its own, for requests that are harmless to repeat.
    package func record(_ recording: Recording<Void>) async throws {
        try await store.apps.record(recording, at: clock.now)
    }
}
