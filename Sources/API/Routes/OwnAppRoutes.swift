import Base
import Core
import HTTPServer
import Mapping
import Service
import Wire

extension APIServer {
    /// The app behind the key.
    var ownAppRoutes: [Route] {
        [
            route("GET", "/v1/app", .ownApp) { try await $0.showApp($0.service.app($0.app)) },
            route("PATCH", "/v1/app", .ownApp, body: .json) { try await $0.changeOwnApp() },
            route("POST", "/v1/app/webhook/secret/rotate", .ownApp, body: .optionalJSON) {
                try await $0.rotateSecret()
            },
            route("POST", "/v1/app/force-quit", .ownApp, body: .empty) {
                try await $0.showApp($0.service.forceQuit($0.app), status: 202)
            },
            route("POST", "/v1/app/activate", .ownApp, body: .empty) {
                try await $0.showApp($0.service.activate($0.app))
            },
        ]
    }
}

extension Call {
    fileprivate func changeOwnApp() async throws -> HTTPResponse {
        let change = try read(OwnAppChange.self)
        try checkWebhook(change.webhook)
        let app = try await service.app(app)
        return try await changeApp(app, AppChanges(change, of: app))
    }

    fileprivate func rotateSecret() async throws -> HTTPResponse {
        let rotation = try readIfPresent(SecretRotation.self)
        let secret = RandomBytes.make(32)
        let previousExpiresAt = service.clock.now + .milliseconds(Int64(rotation.gracePeriod * 1000))
        return try await creating(holdsSecrets: true) { recording in
            try await service.rotateWebhookSecret(
                of: app, to: secret, previousExpiresAt: previousExpiresAt, recording: recording)
        } answer: { _ in
            .json(
                RotatedSecret {
                    $0.secret = WebhookSecret.text(secret)
                    $0.previousSecretExpiresAt = previousExpiresAt.rfc3339
                })
        }
    }
}
