import API
import Base
import Core
import Service
import Transfers

/// The additions of `--dev`: an app with fixed keys, so that commands of the documentation can be pasted.
enum Development {
    private static let key = "dev"

    /// The app `dev`, created on the first start, with 32 zero bytes as webhook secret.
    static func app(of service: Service) async throws -> AppID {
        do {
            return try await service.app(identifier: key).id
        } catch DomainError.notFound {
            return try await make(in: service)
        }
    }

    private static func make(in service: Service) async throws -> AppID {
        do {
            let now = service.clock.now
            let record = KeyRecord(
                app: AppID(0), keyIdentifier: key, hash: Digest.of(Array(key.utf8)), scopes: Scope.allCases,
                createdAt: now, expiresAt: nil)
            return try await service.createApp(
                identifier: key, webhook: WebhookSettings(), backgroundRefreshStatus: .available, limits: AppLimits(),
                key: record, webhookSecret: [UInt8](repeating: 0, count: 32), recording: nil
            ).id
        } catch DomainError.appExists {
            // Another node, which started at the same time, has created the app.
            return try await service.app(identifier: key).id
        }
    }

    static func key(of app: AppID) -> APISettings.LiteralKey {
        APISettings.LiteralKey(hash: Digest.of(Array(key.utf8)), app: app, keyIdentifier: key)
    }
}
