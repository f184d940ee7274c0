import Base
import COpenAPI
package import HTTPServer
import Service
import Wire

/// What watches and describes the service.
struct SystemRoutes {
    let server: APIServer

    var routes: [Route] {
        [
            server.route("GET", "/healthz", .open) { _ in .json(Health(status: "ok")) },
            server.route("GET", "/readyz", .open) { call in
                guard let reason = await call.service.unreadiness() else { return .json(Health(status: "ready")) }
                let code: ProblemCode = call.service.isDraining ? .shuttingDown : .insufficientStorage
                var problem = Problem(code, reason, status: 503)
                problem.instance = call.request.path
                return problem.response()
            },
            server.route("GET", "/metrics", .operator, produces: [APIServer.metricsText]) { call in
                call.server.renderMetrics()
            },
            server.route("GET", "/openapi.yaml", .open, produces: ["application/yaml"]) { call in
                call.description("application/yaml", OpenAPI.yaml)
            },
            server.route("GET", "/openapi.json", .open) { call in call.description(MediaTypes.json, OpenAPI.json) },
        ]
    }

}

extension APIServer {
    /// The one route of `--metrics-listen`, which asks for no key.
    package var metricsRouter: Router {
        Router([route("GET", "/metrics", .open, produces: [Self.metricsText]) { $0.server.renderMetrics() }])
    }

    fileprivate func renderMetrics() -> HTTPResponse {
        HTTPResponse(
            status: 200, headers: [("Content-Type", Self.metricsText + "; version=0.0.4; charset=utf-8")],
            body: .bytes(metrics.render()))
    }

    fileprivate static var metricsText: String { "text/plain" }
}

/// The answer of a service that is well.
private struct Health: JSONWritable {
    let status: String

    func write(to writer: inout JSONWriter) { writer.object { $0.member("status", status) } }
}

/// The service's description, in the bytes of the program.
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
