import Base
import Core
import HTTPServer
import Mapping
import Service
import Wire

/// The app behind the key.
struct OwnAppRoutes {
    let server: APIServer

    var routes: [Route] {
        [
            server.route("GET", "/v1/app", .ownApp) { call in
                try await call.showApp(call.service.app(call.app))
            },
            server.route("PATCH", "/v1/app", .ownApp, body: .json, change),
            server.route("POST", "/v1/app/webhook/secret/rotate", .ownApp, body: .optionalJSON, rotate),
            server.route("POST", "/v1/app/force-quit", .ownApp, body: .empty) { call in
                try await call.showApp(call.service.forceQuit(call.app), status: 202)
            },
            server.route("POST", "/v1/app/activate", .ownApp, body: .empty) { call in
                try await call.showApp(call.service.activate(call.app))
            },
        ]
    }

    @Sendable private func change(_ call: Call) async throws -> HTTPResponse {
        let change = try call.read(OwnAppChange.self)
        try server.checkWebhook(change.webhook)
        let app = try await call.service.app(call.app)
        let revision = try call.expectedRevision(of: app.revision)
        return try await call.showApp(
            call.service.changeApp(app.id, AppChanges(change, of: app), ifRevision: revision ?? app.revision))
    }

    @Sendable private func rotate(_ call: Call) async throws -> HTTPResponse {
        let rotation = try call.readIfPresent(SecretRotation.self)
        let secret = RandomBytes.make(32)
        let previousExpiresAt = call.service.clock.now + .milliseconds(Int64(rotation.gracePeriod * 1000))
        let answer = HTTPResponse.json(
            RotatedSecret {
                $0.secret = WebhookSecret.text(secret)
                $0.previousSecretExpiresAt = previousExpiresAt.rfc3339
            })
        try await call.service.rotateWebhookSecret(
            of: call.app, to: secret, previousExpiresAt: previousExpiresAt,
            recording: call.recording(holdsSecrets: true) { _ in answer })
        return answer
    }
}
