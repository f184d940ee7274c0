import Core
import HTTPServer
import Launches
import Mapping
import Service
import Wire

/// Webhooks that wake the app, and the second step with which it answers them.
struct LaunchRoutes {
    let server: APIServer

    var routes: [Route] {
        [
            server.route(
                "GET", "/v1/launches", .readOrEvents, query: ["session", "state", "kind", "limit", "cursor"], list),
            server.route("GET", "/v1/launches/{launchId}", .readOrEvents) { call in
                .json(Launch(try await call.server.launches.launch(call.parameter("launchId"), app: call.app)))
            },
            server.route("POST", "/v1/launches/{launchId}/complete", .events, body: .optionalJSON, complete),
            server.route("POST", "/v1/launches/{launchId}/redeliver", .events, body: .empty) { call in
                let launch = try await call.server.launches.redeliver(call.parameter("launchId"), app: call.app)
                return .json(Launch(launch))
            },
            server.route("POST", "/v1/app/webhook/ping", .ownApp, body: .empty) { call in
                .json(Wire.LaunchAttempt(try await call.server.launches.ping(call.app)))
            },
        ]
    }

    @Sendable private func list(_ call: Call) async throws -> HTTPResponse {
        let app = try call.app
        let session = try call.queryIdentifier("session")
        let state = try call.queryWord("state", LaunchState.Phase.allCases.map { ($0.rawValue, $0) })
        let kind = try call.queryWord("kind", LaunchKind.allCases.map { ($0.name, $0) })
        return try await call.page(
            fetch: { cursor, limit in
                try await call.server.launches.launches(
                    of: app, session: session, state: state, kind: kind, after: cursor, limit: limit)
            },
            position: \.cursor, write: { Launch($0.launch) })
    }

    @Sendable private func complete(_ call: Call) async throws -> HTTPResponse {
        let completion = try call.readIfPresent(LaunchCompletion.self)
        let launch = try await server.launches.launch(call.parameter("launchId"), app: call.app)
        let answered = try await server.launches.answer(
            launch.launchId, app: call.app, with: LaunchAnswer(completion, to: launch), epoch: completion.epoch)
        return .json(Launch(answered))
    }
}
