import Core
import HTTPServer
import Launches
import Mapping
import Wire

extension APIServer {
    /// Background refresh of the app behind the key.
    var refreshRoutes: [Route] {
        let path = "/v1/app/background-refresh"
        return [
            route("GET", path, .ownApp) {
                .json(Wire.BackgroundRefresh(try await $0.server.launches.refresh(of: $0.app)))
            },
            route("PUT", path, .ownApp, body: .json) {
                let change = try $0.read(BackgroundRefreshChange.self)
                let interval = Core.BackgroundRefresh.Interval(change.minimumBackgroundFetchInterval)
                return .json(
                    Wire.BackgroundRefresh(try await $0.server.launches.setRefreshInterval(interval, of: $0.app)))
            },
            route("POST", path + "/simulate", .ownApp, body: .empty) {
                .json(Launch(try await $0.server.launches.simulateFetch(of: $0.app)), status: 202)
            },
        ]
    }
}
