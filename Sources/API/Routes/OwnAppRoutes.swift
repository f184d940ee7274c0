import Base
import Core
import HTTPServer
import Service
import Transfers
import Wire
import WireMapping

extension APIServer {
    /// The app behind the key.
    var ownAppRoutes: [Route] {
        [
            route("GET", "/v1/app", .ownApp) { try await $0.showApp($0.service.app($0.app)) },
            route("PATCH", "/v1/app", .ownApp, body: .json) { try await $0.changeOwnApp() },
            route("POST", "/v1/app/webhook/secret/rotate", .ownApp, body: .optionalJSON) {
                try await $0.rotateSecret()
            },
            route("DELETE", "/v1/app/webhook/secret/previous", .ownApp, body: .empty) {
                try await $0.service.revokeReplacedWebhookSecrets(of: $0.app)
                return .nothing
            },
            route("POST", "/v1/app/force-quit", .ownApp, body: .empty) {
                try await $0.showApp($0.service.forceQuit($0.app, ifRevision: $0.expectedRevision()), status: 202)
            },
            route("POST", "/v1/app/activate", .ownApp, body: .empty) {
                try await $0.showApp($0.service.activate($0.app, ifRevision: $0.expectedRevision()))
            },
        ]
    }
}

extension Call {
    fileprivate func changeOwnApp() async throws -> HTTPResponse {
        let change = try read(OwnAppChange.self)
        try checkWebhook(change.webhook.newValue)
        let id = try app
        return try await changeApp {
            try await service.app(id)
        } _: {
            AppChanges(change, of: $0)
        }
    }

    fileprivate func expectedRevision() async throws -> Int64? {
        try expectedRevision(of: Version(try await service.app(app)))
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
