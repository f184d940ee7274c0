import Base
import HTTPServer
import TestSupport
import Testing
import Wire

@testable import API

@Suite struct SystemRoutesTests {
    @Test func `The embedded description is openapi yaml, as YAML and as JSON`() throws {
        #expect(OpenAPI.yaml.bytes == readFile("\(repository)/openapi.yaml"))
        let json = try WireJSON.parse(OpenAPI.json.bytes, maximumDepth: 64)
        let digest = Digest.of(OpenAPI.yaml.bytes).hexadecimal
        #expect(json["x-source"] == .string("sha256:\(digest)"), "run scripts/embed-openapi")
        #expect(json["openapi"] == "3.1.0")
        #expect(json["info"]?["version"] == .string(Release.version))
    }

    @Test func `What is served is described, and what is described is served`() async throws {
        try await RouteFixture.run { fixture in
            let paths = try #require(try WireJSON.parse(OpenAPI.json.bytes, maximumDepth: 64)["paths"]?.members)
            let methods: Set = ["get", "head", "post", "put", "patch", "delete"]
            let described = paths.flatMap { path in
                (path.value.members ?? []).map(\.name).filter(methods.contains).map { "\($0) \(path.name)" }
            }
            let served = fixture.server.routes.map { "\($0.method.lowercased()) \($0.pattern)" }
            #expect(Set(served).symmetricDifference(described) == [])
        }
    }

    @Test func `Requests of apps run where they read, what watches the service does not`() async throws {
        try await RouteFixture.run { fixture in
            let elsewhere = fixture.server.routes.filter { $0.executor == nil }.map(\.pattern)
            #expect(
                Set(elsewhere) == [
                    "/healthz", "/readyz", "/openapi.yaml", "/openapi.json", "/", "/docs", "/page/{file}",
                ])
        }
    }

    @Test func `Health and description need no key, metrics need the operator's`() async throws {
        try await RouteFixture.run { fixture in
            #expect(try await fixture.call("GET", "/healthz", key: nil).status == 200)
            #expect(try await fixture.call("GET", "/readyz", key: nil).status == 200)
            let yaml = try await fixture.call("GET", "/openapi.yaml", key: nil)
            #expect(yaml.headers["Content-Type"] == "application/yaml")
            #expect(yaml.bytes == OpenAPI.yaml.bytes)
            #expect(try await fixture.call("GET", "/openapi.json", key: nil).bytes == OpenAPI.json.bytes)
            #expect(try await fixture.call("GET", "/metrics", key: nil).status == 401)
            #expect(try await fixture.call("GET", "/metrics").status == 403)
            #expect(try await fixture.call("GET", "/metrics", key: "admin").status == 200)
        }
    }
}
