import Base
import Core
import HTTPServer
import Mapping
import Service
import Wire

/// The operator's view of apps and their keys.
struct AppRoutes {
    let server: APIServer

    var routes: [Route] {
        [
            server.route("GET", "/v1/apps", .operator, query: ["limit", "cursor"], list),
            server.route("POST", "/v1/apps", .operator, body: .json, create),
            server.route("GET", "/v1/apps/{app}", .operator) { call in
                try await call.showApp(call.namedApp())
            },
            server.route("PATCH", "/v1/apps/{app}", .operator, body: .json, change),
            server.route("DELETE", "/v1/apps/{app}", .operator, body: .empty, delete),
            server.route("GET", "/v1/apps/{app}/keys", .operator, query: ["limit", "cursor"], listKeys),
            server.route("POST", "/v1/apps/{app}/keys", .operator, body: .json, createKey),
            server.route("DELETE", "/v1/apps/{app}/keys/{keyIdentifier}", .operator, body: .empty, revokeKey),
        ]
    }

    @Sendable private func list(_ call: Call) async throws -> HTTPResponse {
        let status = call.service.conditions.refreshStatus
        return try await call.page(
            fetch: { try await call.service.apps(after: $0, limit: $1) }, position: \.id.rawValue,
            write: { App($0, systemStatus: status) })
    }

    @Sendable private func create(_ call: Call) async throws -> HTTPResponse {
        let creation = try call.read(AppCreation.self)
        try server.checkWebhook(creation.webhook)
        let made = APIKey.make()
        let secret = RandomBytes.make(32)
        let status = call.service.conditions.refreshStatus
        let render: @Sendable (AppRecord) -> HTTPResponse = { record in
            var app = App(record, systemStatus: status)
            app.apiKey = made.key
            app.webhook.secret = WebhookSecret.text(secret)
            return call.resource(
                app, revision: record.revision, status: 201, location: "/v1/apps/\(record.identifier)")
        }
        let key = KeyRecord(
            app: AppID(0), keyIdentifier: made.keyIdentifier, hash: made.hash, scopes: Core.Scope.allCases,
            createdAt: call.service.clock.now, expiresAt: nil)
        let record = try await call.service.createApp(
            identifier: creation.identifier, webhook: WebhookSettings().applying(creation.webhook),
            backgroundRefreshStatus: Core.BackgroundRefreshStatus(creation.backgroundRefreshStatus) ?? .available,
            limits: Core.AppLimits().applying(creation.limits), key: key, webhookSecret: secret,
            recording: call.recording(holdsSecrets: true, render))
        server.authenticator.keyChanged(made.keyIdentifier)
        return render(record)
    }

    @Sendable private func change(_ call: Call) async throws -> HTTPResponse {
        let change = try call.read(AppChange.self)
        try server.checkWebhook(change.webhook)
        let app = try await call.namedApp()
        let revision = try call.expectedRevision(of: app.revision)
        return try await call.showApp(
            call.service.changeApp(app.id, AppChanges(change, of: app), ifRevision: revision ?? app.revision))
    }

    @Sendable private func delete(_ call: Call) async throws -> HTTPResponse {
        let app = try await call.namedApp()
        _ = try call.expectedRevision(of: app.revision)
        try await call.service.deleteApp(app.id)
        server.authenticator.allKeysChanged()
        return .nothing
    }

    // MARK: Keys

    @Sendable private func listKeys(_ call: Call) async throws -> HTTPResponse {
        let app = try await call.namedApp()
        let keys = try await Array(call.service.keys(of: app.id).enumerated())
        return try await call.page(
            fetch: { position, limit in Array(keys.dropFirst(Int(clamping: position)).prefix(limit)) },
            position: { Int64($0.offset) + 1 }, write: { AppKey($0.element) })
    }

    @Sendable private func createKey(_ call: Call) async throws -> HTTPResponse {
        let creation = try call.read(AppKeyCreation.self)
        let app = try await call.namedApp()
        let made = APIKey.make()
        let key = KeyRecord(
            app: app.id, keyIdentifier: made.keyIdentifier, hash: made.hash,
            scopes: creation.scopes.compactMap { Core.Scope($0) }, createdAt: call.service.clock.now,
            expiresAt: creation.expiresAt.flatMap { Timestamp(rfc3339: $0) })
        let render: @Sendable (KeyRecord) -> HTTPResponse = { record in
            let location = "/v1/apps/\(app.identifier)/keys/\(record.keyIdentifier)"
            return .json(AppKey(record, secret: made.key), status: 201, headers: [("Location", location)])
        }
        try await call.service.addKey(key, recording: call.recording(holdsSecrets: true, render))
        server.authenticator.keyChanged(made.keyIdentifier)
        return render(key)
    }

    @Sendable private func revokeKey(_ call: Call) async throws -> HTTPResponse {
        let app = try await call.namedApp()
        let keyIdentifier = call.parameter("keyIdentifier")
        try await call.service.deleteKey(keyIdentifier, of: app.id)
        server.authenticator.keyChanged(keyIdentifier)
        return .nothing
    }
}

extension Call {
    /// The app that the path names, for the operator.
    func namedApp() async throws -> AppRecord { try await service.app(identifier: parameter("app")) }

    func showApp(_ app: AppRecord, status: Int = 200) -> HTTPResponse {
        resource(App(app, systemStatus: service.conditions.refreshStatus), revision: app.revision, status: status)
    }
}

extension APIServer {
    /// Refuses a webhook that no launch could be sent to.
    func checkWebhook(_ change: WebhookChange?) throws {
        guard let url = change?.url.newValue else { return }
        func fault(_ detail: String) -> JSONError {
            .invalid([Fault(pointer: "/webhook/url", code: .invalidValue, detail: detail)])
        }
        if let detail = Service.faultOfURL(url) { throw fault(detail) }
        guard settings.allowsHTTPWebhooks || url.lowercased().hasPrefix("https:") else {
            throw fault("A webhook must be https; the operator can allow http.")
        }
    }
}

/// Webhook secrets as people copy them.
enum WebhookSecret {
    /// `whsec_` and base64, as Standard Webhooks writes them.
    static func text(_ secret: [UInt8]) -> String { "whsec_" + secret.base64 }
}
