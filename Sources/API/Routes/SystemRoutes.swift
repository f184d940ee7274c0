import Base
import COpenAPI
package import HTTPServer
import Service
import Wire

extension APIServer {
    /// What watches and describes the service.
    var systemRoutes: [Route] {
        [
            route("GET", "/healthz", .open) { _ in .json(Health(status: "ok")) },
            route("GET", "/readyz", .open) {
                guard let reason = await $0.service.unreadiness() else { return .json(Health(status: "ready")) }
                throw Problem($0.service.isDraining ? .shuttingDown : .insufficientStorage, reason, status: 503)
            },
            route("GET", "/metrics", .operator, produces: [Self.metricsText]) { $0.server.renderMetrics() },
            route("GET", "/openapi.yaml", .open, produces: ["application/yaml"]) {
                $0.description("application/yaml", OpenAPI.yaml)
            },
            route("GET", "/openapi.json", .open) { $0.description(MediaTypes.json, OpenAPI.json) },
        ]
    }

    /// The one route of `--metrics-listen`, which asks for no key.
    package var metricsRouter: Router {
        Router([route("GET", "/metrics", .open, produces: [Self.metricsText]) { $0.server.renderMetrics() }])
    }

    private func renderMetrics() -> HTTPResponse {
        HTTPResponse(
            status: 200, headers: [("Content-Type", Self.metricsText + "; version=0.0.4; charset=utf-8")],
            body: .bytes(metrics.render()))
    }

    private static var metricsText: String { "text/plain" }
}

private struct Health: JSONWritable {
    let status: String

    func write(to writer: inout JSONWriter) { writer.object { $0.member("status", status) } }
}

/// The service's description, built into the program.
enum OpenAPI {
    /// `openapi.yaml` as it stands at the top of the repository.
    static var yaml: [UInt8] { bytes(openapi_yaml_start(), openapi_yaml_length) }
    static var json: [UInt8] { bytes(openapi_json_start(), openapi_json_length) }

    private static func bytes(_ start: UnsafePointer<UInt8>, _ count: Int) -> [UInt8] {
        Array(UnsafeBufferPointer(start: start, count: count))
    }
}

extension Call {
    fileprivate func description(_ type: String, _ bytes: [UInt8]) -> HTTPResponse {
        let tag = "\"\(Array(Digest.of(bytes).prefix(12)).hexadecimal)\""
        if has(tag, in: "If-None-Match") { return HTTPResponse(status: 304, headers: [("ETag", tag)]) }
        return HTTPResponse(status: 200, headers: [("Content-Type", type), ("ETag", tag)], body: .bytes(bytes))
    }
}
