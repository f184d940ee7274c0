import Core
import HTTPServer
import Launches
import Mapping
import Service
import Wire

/// What the operator declares about network, power, load and hours.
struct ConditionsRoutes {
    let server: APIServer

    private static let path = "/v1/system/conditions"

    var routes: [Route] {
        [
            server.route("GET", Self.path, .operator) { call in call.showConditions() },
            server.route("PUT", Self.path, .operator, body: .json) { call in
                let wire = try call.read(Wire.Conditions.self)
                let status = Core.BackgroundRefreshStatus(wire.backgroundRefreshStatus) ?? .available
                try await call.service.declareConditions(Core.Conditions(wire), status)
                call.server.launches.refreshChanged()
                return call.showConditions()
            },
        ]
    }
}

extension Call {
    fileprivate func showConditions() -> HTTPResponse {
        .json(Wire.Conditions(service.conditions.conditions, service.conditions.refreshStatus))
    }
}
