import Base
import HTTPServer
import TestSupport
import Testing
import Wire

@testable import API

@Suite struct SystemRoutesTests {
    @Test func `The embedded description is openapi yaml, as YAML and as JSON`() throws {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        #expect(OpenAPI.yaml == readFile("/\(root)/openapi.yaml"))
        let json = try WireJSON.parse(OpenAPI.json, maximumDepth: 64)
        let digest = Digest.of(OpenAPI.yaml).hexadecimal
        #expect(json["x-source"] == .string("sha256:\(digest)"), "run scripts/embed-openapi")
        #expect(json["openapi"] == "3.1.0")
    }

    @Test func `Every route that is served is described, with its methods`() async throws {
        try await RouteFixture.run { fixture in
            let paths = try #require(try WireJSON.parse(OpenAPI.json, maximumDepth: 64)["paths"])
            for route in fixture.server.routes {
                #expect(paths[route.pattern]?[route.method.lowercased()] != nil, "\(route.method) \(route.pattern)")
            }
        }
    }

    @Test func `Health and description need no key, metrics need the operator's`() async throws {
        try await RouteFixture.run { fixture in
            #expect(try await fixture.call("GET", "/healthz", key: nil).status == 200)
            #expect(try await fixture.call("GET", "/readyz", key: nil).status == 200)
            let yaml = try await fixture.call("GET", "/openapi.yaml", key: nil)
            #expect(yaml.headers["Content-Type"] == "application/yaml")
            #expect(yaml.bytes == OpenAPI.yaml)
            #expect(try await fixture.call("GET", "/openapi.json", key: nil).bytes == OpenAPI.json)
            #expect(try await fixture.call("GET", "/metrics", key: nil).status == 401)
            #expect(try await fixture.call("GET", "/metrics").status == 403)
            #expect(try await fixture.call("GET", "/metrics", key: "admin").status == 200)
        }
    }
}
