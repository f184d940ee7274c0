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
                try await call.showLaunch()
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
                try await call.service.launches(
                    of: app, session: session, state: state, kind: kind, after: cursor, limit: limit)
            },
            position: \.cursor, write: { Launch($0.launch) })
    }

    @Sendable private func complete(_ call: Call) async throws -> HTTPResponse {
        let completion = try call.readIfPresent(LaunchCompletion.self)
        let launch = try await call.service.launch(call.parameter("launchId"), app: call.app)
        if launch.kind == .performFetch {
            guard let result = completion.result.flatMap({ Core.BackgroundRefresh.Result($0) }) else {
                throw Self.fault("/result", "A fetch is completed with newData, noData or failed.")
            }
            try await server.launches.completeFetch(launch.launchId, app: call.app, result: result)
        } else {
            guard completion.result == nil else { throw Self.fault("/result", "Only fetches have a result.") }
            try await call.service.completeLaunch(
                launch.launchId, app: call.app, through: completion.through, epoch: completion.epoch)
        }
        return try await call.showLaunch()
    }

    private static func fault(_ pointer: String, _ detail: String) -> JSONError {
        .invalid([Fault(pointer: pointer, code: .invalidValue, detail: detail)])
    }
}

extension Call {
    fileprivate func showLaunch() async throws -> HTTPResponse {
        .json(Launch(try await service.launch(parameter("launchId"), app: app)))
    }
}
