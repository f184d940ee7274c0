import Core
import HTTPServer
import Launches
import Wire
import WireMapping

extension APIServer {
    var launchRoutes: [Route] {
        [
            route("GET", "/v1/launches", .readOrEvents, query: ["session", "state", "kind"] + Call.listing) {
                try await $0.listLaunches()
            },
            route("GET", "/v1/launches/{launchId}", .readOrEvents) {
                .json(Launch(try await $0.server.launches.launch($0.parameter("launchId"), app: $0.app)))
            },
            route("POST", "/v1/launches/{launchId}/complete", .events, body: .optionalJSON) {
                try await $0.completeLaunch()
            },
            route("POST", "/v1/launches/redeliver", .events, body: .json) { try await $0.redeliverLaunches() },
            route("POST", "/v1/launches/{launchId}/redeliver", .events, body: .empty) {
                .json(Launch(try await $0.server.launches.redeliver($0.parameter("launchId"), app: $0.app)))
            },
            route("POST", "/v1/app/webhook/ping", .ownApp, body: .empty) {
                .json(Wire.LaunchAttempt(try await $0.server.launches.ping($0.app)))
            },
        ]
    }
}

extension Call {
    fileprivate func listLaunches() async throws -> HTTPResponse {
        let app = try app
        let session = try queryText("session", .identifier)
        let states = try queryWords("state", LaunchState.Phase.allCases.map { ($0.rawValue, $0) })
        let kinds = try queryWords("kind", LaunchKind.allCases.map { ($0.rawValue, $0) })
        // The latest launches are the usual interest.
        let span = try span(.descending)
        return try await page(
            fetch: { cursor, limit in
                try await server.launches.launches(
                    of: app, session: session, states: states, kinds: kinds, span, after: cursor, limit: limit)
            },
            position: \.cursor, write: { Launch($0.launch) })
    }

    fileprivate func redeliverLaunches() async throws -> HTTPResponse {
        let filter = LaunchFilter(try read(LaunchSelection.self))
        return selected(try await server.launches.redeliver(filter, of: app))
    }

    fileprivate func completeLaunch() async throws -> HTTPResponse {
        let completion = try readIfPresent(LaunchCompletion.self)
        let launch = try await server.launches.launch(parameter("launchId"), app: app)
        let answered = try await server.launches.answer(
            launch.launchId, app: app, with: LaunchAnswer(completion, to: launch), epoch: completion.epoch)
        return .json(Launch(answered))
    }
}
