import Core
import HTTPServer
import Launches
import Mapping
import Service
import Wire

extension APIServer {
    /// What the operator declares about network, power, load and hours.
    var conditionsRoutes: [Route] {
        let path = "/v1/system/conditions"
        return [
            route("GET", path, .operator) { try await $0.showConditions() },
            route("PUT", path, .operator, body: .json) {
                let conditions = try $0.read(Wire.Conditions.self)
                let status = Core.BackgroundRefreshStatus(conditions.backgroundRefreshStatus) ?? .available
                try await $0.service.declareConditions(Core.Conditions(conditions), status)
                $0.server.launches.refreshChanged()
                return try await $0.showConditions()
            },
        ]
    }
}

extension Call {
    fileprivate func showConditions() async throws -> HTTPResponse {
        let declared = try await service.declaredConditions()
        return .json(Wire.Conditions(declared.conditions, declared.refreshStatus))
    }
}
