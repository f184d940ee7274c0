import Core
import HTTPServer
import Launches
import Mapping
import Service
import Wire

/// Background refresh of the app behind the key.
struct RefreshRoutes {
    let server: APIServer

    private static let path = "/v1/app/background-refresh"

    var routes: [Route] {
        [
            server.route("GET", Self.path, .ownApp) { call in
                .json(Wire.BackgroundRefresh(try await call.server.launches.refresh(of: call.app)))
            },
            server.route("PUT", Self.path, .ownApp, body: .json) { call in
                let change = try call.read(BackgroundRefreshChange.self)
                let interval = Core.BackgroundRefresh.Interval(change.minimumBackgroundFetchInterval)
                return .json(
                    Wire.BackgroundRefresh(
                        try await call.server.launches.setRefreshInterval(interval, of: call.app)))
            },
            server.route("POST", Self.path + "/simulate", .ownApp, body: .empty) { call in
                .json(Launch(try await call.server.launches.simulateFetch(of: call.app)), status: 202)
            },
        ]
    }
}
