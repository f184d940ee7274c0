import Base
import Core
import HTTPServer
import Service
import TestSupport
import Testing
import Wire

@testable import API

/// What the API decides about sets before it calls the service.
@Suite struct SetRoutesTests {
    @Test func `The layout hf-cache needs a folder`() async throws {
        try await RouteFixture.run { fixture in
            for put: WireJSON in [["layout": "hf-cache"], ["layout": "hf-cache", "destination": nil]] {
                let answer = try await fixture.call("PUT", "/v1/sets/s", json: put)
                #expect(answer.status == 422)
                #expect(try answer.read(Problem.self).errors.map(\.pointer) == ["/layout"])
            }
        }
    }

    @Test func `A set has a name that URLs and folders can have`() async throws {
        try await RouteFixture.run { fixture in
            for name in ["a%b", "..", String(repeating: "a", count: 129)] {
                let answer = try await fixture.call("PUT", "/v1/sets/\(name)", json: [:])
                #expect(answer.status == 422 && answer.problem == .invalidValue, "\(name)")
            }
            let unknown = try await fixture.call("PUT", "/v1/sets/s", json: ["keeps": 1])
            #expect(unknown.problem == .unknownMember)
        }
    }

    @Test func `A condition on a set that does not exist fails`() async throws {
        try await RouteFixture.run { fixture in
            let answer = try await fixture.call(
                "PUT", "/v1/sets/s", headers: [("If-Match", "*"), ("Content-Type", "application/json")],
                body: bytes("{}"))
            #expect(answer.status == 412)
        }
    }

    @Test func `An unknown set is named in the problem`() async throws {
        try await RouteFixture.run { fixture in
            for path in ["", "/manifest", "/files/a/b", "/versions", "/versions/1", "/versions/1/files/a/b"] {
                let answer = try await fixture.call("GET", "/v1/sets/none" + path)
                #expect(answer.status == 404, "\(path)")
                #expect(try answer.read(Problem.self).detail == "There is no set \"none\".", "\(path)")
            }
        }
    }

    @Test func `A version is sent as JSON or as lines`() async throws {
        try await RouteFixture.run { fixture in
            let path = "/v1/sets/s/versions"
            let form = try await fixture.call("POST", path, headers: [("Content-Type", "text/plain")], body: bytes("x"))
            #expect(form.status == 415)
            let keyed = try await fixture.call(
                "POST", path, headers: [("Content-Type", "application/x-ndjson"), ("Idempotency-Key", "k")],
                body: bytes("{}"))
            #expect(keyed.status == 422)
            #expect(try keyed.read(Problem.self).detail.contains("give the version a name"))
            #expect(try await fixture.call("POST", path).status == 411)
        }
    }

    @Test func `The scopes of sessions and tasks are those of sets`() async throws {
        try await ServedAPI.run { api async throws in
            let reader = try api.client(try await api.admin.post("/v1/apps/dev/keys", ["scopes": ["sessions:read"]]))
            #expect(try await reader.put("/v1/sets/s", [:]).status == 403)
            #expect(try await reader.get("/v1/sets/s").status == 404)
            let observer = try api.client(try await api.admin.post("/v1/apps/dev/keys", ["scopes": ["events"]]))
            #expect(try await observer.get("/v1/sets/s").status == 403)
        }
    }

    @Test func `Equal requests have equal fingerprints, whatever the order of their metadata`() {
        func fingerprint(_ metadata: StringMap, _ paths: [String], _ source: Wire.SetSource? = nil) -> [UInt8] {
            var head = SetVersionHead(session: "s", version: "1")
            head.metadata = metadata
            var fingerprint = SetFingerprint(head, source)
            for path in paths { fingerprint.add(SetVersionFile(path, TransferRequest(url: "https://h/\(path)"))) }
            return fingerprint.digest
        }
        let first = fingerprint(["a": "1", "b": "2"], ["x", "y"])
        #expect(first == fingerprint(["b": "2", "a": "1"], ["x", "y"]))
        #expect(first != fingerprint(["b": "1", "a": "2"], ["x", "y"]))
        #expect(first != fingerprint(["a": "1", "b": "2"], ["y", "x"]))
        #expect(first != fingerprint(["a": "1", "b": "2"], [], .huggingface("o/n")))
    }
}
