import Base
import Core
import HTTPServer
import Launches
import Service
import Transfers
import Wire
import WireMapping

extension APIServer {
    var appRoutes: [Route] {
        [
            route("GET", "/v1/apps", .operator, query: Call.listing) { try await $0.listApps() },
            route("POST", "/v1/apps", .operator, body: .json) { try await $0.createApp() },
            route("GET", "/v1/apps/{app}", .operator) { try await $0.showApp($0.namedApp()) },
            route("PATCH", "/v1/apps/{app}", .operator, body: .json) { try await $0.changeNamedApp() },
            route("DELETE", "/v1/apps/{app}", .operator, body: .empty) { try await $0.deleteApp() },
            route("GET", "/v1/apps/{app}/keys", .operator, query: Call.listing) { try await $0.listKeys() },
            route("POST", "/v1/apps/{app}/keys", .operator, body: .json) { try await $0.createKey() },
            route("DELETE", "/v1/apps/{app}/keys/{keyIdentifier}", .operator, body: .empty) {
                try await $0.revokeKey()
            },
        ]
    }
}

extension Call {
    fileprivate func namedApp() async throws -> AppRecord { try await service.app(identifier: parameter("app")) }

    fileprivate func listApps() async throws -> HTTPResponse {
        let status = try await service.declaredConditions().refreshStatus
        let span = try span()
        return try await page(
            fetch: { try await service.apps(span, after: $0, limit: $1) }, position: \.id.rawValue,
            write: { App($0, systemStatus: status) })
    }

    fileprivate func createApp() async throws -> HTTPResponse {
        let creation = try read(AppCreation.self)
        try checkWebhook(creation.webhook)
        let made = APIKey.make()
        let secret = RandomBytes.make(32)
        let status = try await service.declaredConditions().refreshStatus
        let key = KeyRecord(
            app: AppID(0), keyIdentifier: made.keyIdentifier, hash: made.hash, scopes: Core.Scope.allCases,
            createdAt: service.clock.now, expiresAt: nil)
        return try await creating(holdsSecrets: true) { recording in
            let app = try await service.createApp(
                identifier: creation.identifier, webhook: WebhookSettings().applying(creation.webhook),
                backgroundRefreshStatus: Core.BackgroundRefreshStatus(creation.backgroundRefreshStatus) ?? .available,
                limits: Core.AppLimits().applying(creation.limits), key: key, webhookSecret: secret,
                recording: recording)
            server.authenticator.keyChanged(made.keyIdentifier)
            return app
        } answer: { record in
            var app = App(record, systemStatus: status)
            app.apiKey = made.key
            app.webhook.secret = WebhookSecret.text(secret)
            return resource(app, version: Version(record), status: 201, location: "/v1/apps/\(record.identifier)")
        }
    }

    fileprivate func changeNamedApp() async throws -> HTTPResponse {
        let change = try read(AppChange.self)
        try checkWebhook(change.webhook.newValue)
        return try await changeApp(namedApp) { AppChanges(change, of: $0) }
    }

    fileprivate func deleteApp() async throws -> HTTPResponse {
        let app = try await namedApp()
        _ = try expectedRevision(of: Version(app))
        try await service.deleteApp(app.id)
        server.appDeleted(app.id)
        return .nothing
    }

    // MARK: Keys

    fileprivate func listKeys() async throws -> HTTPResponse {
        let span = try span()
        let keys = try await Array(span.part(of: service.keys(of: namedApp().id), createdAt: \.createdAt).enumerated())
        return try await page(
            fetch: { position, limit in Array(keys.dropFirst(Int(clamping: position)).prefix(limit)) },
            position: { Int64($0.offset) + 1 }, write: { AppKey($0.element) })
    }

    fileprivate func createKey() async throws -> HTTPResponse {
        let creation = try read(AppKeyCreation.self)
        let app = try await namedApp()
        let made = APIKey.make()
        let key = KeyRecord(
            app: app.id, keyIdentifier: made.keyIdentifier, hash: made.hash,
            scopes: creation.scopes.compactMap { Core.Scope($0) }, createdAt: service.clock.now,
            expiresAt: creation.expiresAt.flatMap { Timestamp(rfc3339: $0) })
        return try await creating(holdsSecrets: true) { recording in
            try await service.addKey(key, recording: recording)
            server.authenticator.keyChanged(made.keyIdentifier)
            return key
        } answer: { key in
            let location = "/v1/apps/\(app.identifier)/keys/\(key.keyIdentifier)"
            return .json(AppKey(key, secret: made.key), status: 201, headers: [("Location", location)])
        }
    }

    fileprivate func revokeKey() async throws -> HTTPResponse {
        let app = try await namedApp()
        let keyIdentifier = parameter("keyIdentifier")
        try await service.deleteKey(keyIdentifier, of: app.id)
        server.keyRevoked(keyIdentifier)
        return .nothing
    }
}

// MARK: - Shared by the operator's and the app's own routes

extension Call {
    func showApp(_ app: AppRecord, status: Int = 200) async throws -> HTTPResponse {
        let common = try await service.declaredConditions().refreshStatus
        return resource(App(app, systemStatus: common), version: Version(app), status: status)
    }

    /// Changes an app if it matches `If-Match`. A partial change is applied to the version that was read.
    func changeApp(
        _ read: () async throws -> AppRecord, _ changes: (AppRecord) -> AppChanges
    ) async throws -> HTTPResponse {
        let changed = try await untilUndisturbed {
            let app = try await read()
            let revision = try expectedRevision(of: Version(app)) ?? app.revision
            return try await service.changeApp(app.id, changes(app), ifRevision: revision)
        }
        return try await showApp(changed)
    }

    /// Refuses a webhook to which no launch could be sent. Its host name is resolved only for a launch.
    func checkWebhook(_ change: WebhookChange?) throws(JSONError) {
        guard let text = change?.url.newValue else { return }
        let url = try Service.url(text, at: "/webhook/url")
        if let fault = server.launches.fault(ofWebhook: url) { throw .invalid(fault, at: "/webhook/url") }
    }
}

/// Webhook secrets in their text form.
enum WebhookSecret {
    /// `whsec_` and base64, as Standard Webhooks specifies.
    static func text(_ secret: [UInt8]) -> String { "whsec_" + secret.base64 }
}
