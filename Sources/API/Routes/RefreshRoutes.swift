import Core
import HTTPServer
import Launches
import Wire
import WireMapping

extension APIServer {
    var refreshRoutes: [Route] {
        let path = "/v1/app/background-refresh"
        return [
            route("GET", path, .ownApp) {
                try await $0.showRefresh($0.server.launches.refresh(of: $0.app))
            },
            route("PUT", path, .ownApp, body: .json) {
                let change = try $0.read(BackgroundRefreshChange.self)
                let interval = Core.BackgroundRefresh.Interval(change.minimumBackgroundFetchInterval)
                let (call, app) = ($0, try $0.app)
                return try await call.untilUndisturbed {
                    let seen = try await call.server.launches.refresh(of: app).interval
                    let isExpected = try call.expectedRevision(of: .init(ofInterval: seen, of: app)) != nil
                    return try await call.showRefresh(
                        call.server.launches.setRefreshInterval(interval, replacing: isExpected ? seen : nil, of: app))
                }
            },
            route("POST", path + "/simulate", .ownApp, body: .empty) {
                .json(Launch(try await $0.server.launches.simulateFetch(of: $0.app)), status: 202)
            },
        ]
    }
}

extension Call {
    /// The state of background refresh. Its tag begins with the interval, the only member that `PUT` sets.
    fileprivate func showRefresh(_ overview: RefreshOverview) throws -> HTTPResponse {
        try resource(Wire.BackgroundRefresh(overview), version: Version(ofInterval: overview.interval, of: app))
    }
}

extension Version {
    fileprivate init(ofInterval interval: Core.BackgroundRefresh.Interval, of app: AppID) {
        let state = BackgroundRefreshChange { $0.minimumBackgroundFetchInterval = FetchInterval(interval) }
        self.init(ofState: state, named: "refresh \(app.rawValue)")
    }
}
