import Base
import COpenAPI
package import HTTPServer
import Service
import Wire

extension APIServer {
    /// Routes for monitoring, and the description of the API.
    var systemRoutes: [Route] {
        [
            route("GET", "/healthz", .open) { _ in .json(Health(status: "ok")) },
            route("GET", "/readyz", .open) {
                guard let reason = await $0.service.unreadiness() else { return .json(Health(status: "ready")) }
                let code: ProblemCode =
                    switch reason.error {
                    case .shuttingDown: .shuttingDown
                    case .storeUnavailable: .storeUnavailable
                    case .contentsUnavailable: .contentsUnavailable
                    default: .insufficientStorage
                    }
                throw Problem(code, reason.detail, status: 503)
            },
            route("GET", "/metrics", .operator, produces: [Self.metricsText]) { await $0.server.renderMetrics() },
            route("GET", "/openapi.yaml", .open, produces: ["application/yaml"]) {
                $0.embedded(OpenAPI.yaml)
            },
            route("GET", "/openapi.json", .open) { $0.embedded(OpenAPI.json) },
        ]
    }

    /// The only route of `--metrics-listen`, which requires no key.
    package var metricsRouter: Router {
        Router([route("GET", "/metrics", .open, produces: [Self.metricsText]) { await $0.server.renderMetrics() }])
    }

    private func renderMetrics() async -> HTTPResponse {
        await service.measureStore()
        return HTTPResponse(
            status: 200, headers: [("Content-Type", Self.metricsText + "; version=0.0.4; charset=utf-8")],
            body: .bytes(metrics.render()))
    }

    private static var metricsText: String { "text/plain" }
}

private struct Health: JSONWritable {
    let status: String

    func write(to writer: inout JSONWriter) { writer.object { $0.member("status", status) } }
}

enum OpenAPI {
    /// `openapi.yaml` from the top of the repository.
    static let yaml = EmbeddedFile("application/yaml", openapi_yaml_start(), openapi_yaml_length)
    static let json = EmbeddedFile(MediaTypes.json, openapi_json_start(), openapi_json_length)
}
