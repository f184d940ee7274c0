import API
import Base
import Core
import Service
import Transfers

/// The additions of `--dev`: an app with fixed keys, so that commands of the documentation can be pasted.
enum Development {
    private static let key = "dev"

    /// The key `dev`, valid while its record exists.
    static let literalKey = APISettings.LiteralKey(hash: Digest.of(Array(key.utf8)), keyIdentifier: key)

    private static let webhookSecret = [UInt8](repeating: 0, count: 32)

    /// Creates the app `dev` and its key if they are missing, the app with 32 zero bytes as webhook secret.
    ///
    /// - Parameter lostSecrets: Whether this start has replaced all webhook secrets, because the master key is new.
    static func prepare(_ service: Service, lostSecrets: Bool) async throws {
        do {
            try await make(in: service)
        } catch {
            // Another node, which started at the same time, may have created both.
            guard try await service.key(key) != nil else { throw error }
        }
        guard lostSecrets else { return }
        try await service.rotateWebhookSecret(
            of: service.app(identifier: key).id, to: webhookSecret, previousExpiresAt: service.clock.now,
            recording: nil)
    }

    private static func make(in service: Service) async throws {
        guard try await service.key(key) == nil else { return }
        var record = KeyRecord(
            app: AppID(0), keyIdentifier: key, hash: literalKey.hash, scopes: Scope.allCases,
            createdAt: service.clock.now, expiresAt: nil)
        do {
            _ = try await service.createApp(
                identifier: key, webhook: WebhookSettings(), backgroundRefreshStatus: .available, limits: AppLimits(),
                key: record, webhookSecret: webhookSecret, recording: nil)
        } catch DomainError.appExists {
            // Only the key was revoked.
            record.app = try await service.app(identifier: key).id
            try await service.addKey(record, recording: nil)
        }
    }
}
