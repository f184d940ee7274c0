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

    @Test func `Every served route is described, and every described route is served`() async throws {
        try await RouteFixture.run { fixture in
            let paths = try #require(try WireJSON.parse(OpenAPI.json.bytes, maximumDepth: 64)["paths"]?.members)
            let methods: Set = ["get", "head", "post", "put", "patch", "delete"]
            let described = paths.flatMap { path in
                (path.value.members ?? []).map(\.name).filter(methods.contains).map { "\($0) \(path.name)" }
            }
            // OpenAPI has no sign for a parameter that matches the rest of the path.
            let served = fixture.server.routes.map {
                "\($0.method.lowercased()) \($0.pattern.replacing("...}", with: "}"))"
            }
            #expect(Set(served).symmetricDifference(described) == [])
        }
    }

    @Test func `Requests of apps run on the readers' threads, monitoring requests do not`() async throws {
        try await RouteFixture.run { fixture in
            let elsewhere = fixture.server.routes.filter { $0.executor == nil }.map(\.pattern)
            #expect(
                Set(elsewhere) == [
                    "/healthz", "/readyz", "/openapi.yaml", "/openapi.json", "/", "/docs", "/page/{file}", "/v1",
                    "/problems/{code}",
                ])
        }
    }

    @Test func `Requests are counted by route, and held requests are not timed`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            #expect(try await api.dev.post("/v1/sessions/s/tasks", api.task()).status == 201)
            #expect(try await api.dev.get("/v1/sessions/s/tasks/1?wait=0.01&revision=1").status == 200)
            #expect(try await api.dev.get("/v1/sessions/s/tasks/1").status == 200)
            #expect(try await api.dev.get("/nowhere").status == 404)
            let one = "route=\"/v1/sessions/{identifier}/tasks/{taskIdentifier}\""
            let text = try await eventually("all were counted") {
                let text = try await api.admin.get("/metrics").text
                return text.contains("urlsessiond_http_requests_total{\(one),status=\"2xx\"} 2\n") ? text : nil
            }
            #expect(text.contains("urlsessiond_http_request_duration_seconds_count{\(one)} 1\n"))
            #expect(text.contains("urlsessiond_http_requests_total{route=\"none\",status=\"4xx\"} 1\n"))
            #expect(text.contains("urlsessiond_tasks{phase=\"suspended\"} 1\n"))
            for name in [
                "urlsessiond_oldest_queued_task_seconds 0\n", "urlsessiond_launches{state=\"parked\"} 0\n",
                "urlsessiond_stored_bytes 0\n", "urlsessiond_free_bytes_floor 0\n",
                "urlsessiond_build_info{version=\"1\"} 1\n", "urlsessiond_http_requests_held 0\n",
            ] { #expect(text.contains("\n" + name), "\(name)") }
            func value(_ name: String) -> Double {
                let line = text.split(separator: "\n").first { $0.hasPrefix(name + " ") }
                return line.flatMap { Double($0.dropFirst(name.utf8.count + 1)) } ?? .nan
            }
            for name in [
                "urlsessiond_commit_duration_seconds_count", "urlsessiond_commit_writes_total",
                "process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_max_fds",
                "process_start_time_seconds",
            ] { #expect(value(name) > 0, "\(name)") }
            // A server has its own log, and each commit waits for a round trip.
            #expect((value("urlsessiond_wal_bytes") > 0) == !TestStore.isOnServer)
            #expect((value("urlsessiond_commit_round_trips_total") > 0) == TestStore.isOnServer)
        }
    }

    @Test func `Health and the description need no key, metrics need the operator's`() async throws {
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
