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
                $0.description(.yaml)
            },
            route("GET", "/openapi.json", .open) { $0.description(.json) },
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
struct OpenAPI: Sendable {
    let type: String
    let bytes: [UInt8]
    let compressed: [UInt8]
    let tag: String

    /// `openapi.yaml` as it stands at the top of the repository.
    static let yaml = OpenAPI("application/yaml", openapi_yaml_start(), openapi_yaml_length)
    static let json = OpenAPI(MediaTypes.json, openapi_json_start(), openapi_json_length)

    private init(_ type: String, _ start: UnsafePointer<UInt8>, _ count: Int) {
        self.type = type
        bytes = Array(UnsafeBufferPointer(start: start, count: count))
        compressed = Gzip.compress(bytes)
        tag = "\"\(Array(Digest.of(bytes).prefix(12)).hexadecimal)\""
    }
}

extension Call {
    fileprivate func description(_ document: OpenAPI) -> HTTPResponse {
        if let unchanged = notModified(document.tag, length: document.bytes.count) { return unchanged }
        var response = HTTPResponse(
            status: 200, headers: [("Content-Type", document.type), ("ETag", document.tag)],
            body: .bytes(document.bytes))
        response.varyByCoding()
        if ContentCoding.isGzipWelcome(request.headers) { response.setCompressed(.bytes(document.compressed)) }
        return response
    }
}
