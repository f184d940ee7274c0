import Core
import HTTPServer
import Launches
import Service
import Transfers
import Wire
import WireMapping

extension APIServer {
    /// The operator's declarations about network, power, load and hours.
    var conditionsRoutes: [Route] {
        let path = "/v1/system/conditions"
        return [
            route("GET", path, .operator) { try await $0.showConditions() },
            route("PUT", path, .operator, body: .json) {
                let conditions = try $0.read(Wire.Conditions.self)
                let status = Core.BackgroundRefreshStatus(conditions.backgroundRefreshStatus) ?? .available
                let call = $0
                try await call.untilUndisturbed {
                    let seen = try await call.service.declaredConditions().declared
                    let version = Version(ofState: Wire.Conditions(seen), named: "conditions")
                    let isExpected = try call.expectedRevision(of: version) != nil
                    try await call.service.declareConditions(
                        Core.Conditions(conditions), status, replacing: isExpected ? seen : nil)
                }
                call.server.launches.refreshChanged()
                return try await call.showConditions()
            },
        ]
    }
}

extension Call {
    fileprivate func showConditions() async throws -> HTTPResponse {
        let shown = Wire.Conditions(try await service.declaredConditions().declared)
        return resource(shown, version: Version(ofState: shown, named: "conditions"))
    }
}

extension Wire.Conditions {
    fileprivate init(_ declared: (conditions: Core.Conditions, refreshStatus: Core.BackgroundRefreshStatus)) {
        self.init(declared.conditions, declared.refreshStatus)
    }
}
