import Base
import Core
import HTTPServer
import Service
import TestSupport
import Testing
import Wire

@testable import API

@Suite struct LaunchRoutesTests {
    @Test func `An app without launches gets an empty list, and an unknown launch gets 404`() async throws {
        try await RouteFixture.run { fixture in
            let list = try await fixture.call("GET", "/v1/launches?session=s&state=parked&kind=session.handleEvents")
            #expect(try list.json == ["items": [], "nextCursor": nil])
            #expect(try await fixture.call("GET", "/v1/launches?state=sleeping").problem == .invalidValue)
            #expect(try await fixture.call("GET", "/v1/launches/lnch_x").status == 404)
            #expect(try await fixture.call("POST", "/v1/launches/lnch_x/complete", json: [:]).status == 404)
            #expect(try await fixture.call("POST", "/v1/launches/lnch_x/redeliver").status == 404)
            let all: WireJSON = ["createdAfter": "2026-12-01T00:00:00Z", "state": "exhausted"]
            let again = try await fixture.call("POST", "/v1/launches/redeliver", json: all)
            #expect(try again.status == 200 && again.json == ["matched": 0, "changed": 0])
            // Without a time the request would apply to all launches ever.
            #expect(try await fixture.call("POST", "/v1/launches/redeliver", json: [:]).problem == .invalidValue)
        }
    }

    @Test func `A ping without a webhook reports so in its attempt`() async throws {
        try await RouteFixture.run { fixture in
            let answer = try await fixture.call("POST", "/v1/app/webhook/ping")
            #expect(answer.status == 200)
            let attempt: Wire.LaunchAttempt = try answer.read()
            #expect(attempt.number == 1)
            #expect(attempt.statusCode == nil)
            #expect(attempt.error != nil)
        }
    }

    @Test func `The refresh interval is set and returned, and short intervals are refused`() async throws {
        try await RouteFixture.run { fixture in
            let path = "/v1/app/background-refresh"
            let first: Wire.BackgroundRefresh = try await fixture.call("GET", path).read()
            #expect(first.minimumBackgroundFetchInterval == .never)
            #expect(first.nextFetchAt == nil)
            #expect(!first.why.isEmpty)
            let set = try await fixture.call("PUT", path, json: ["minimumBackgroundFetchInterval": "minimum"])
            #expect(set.status == 200)
            #expect(try set.json["minimumBackgroundFetchInterval"] == "minimum")
            let short = try await fixture.call("PUT", path, json: ["minimumBackgroundFetchInterval": 899])
            #expect(short.status == 422)
            let refused = try await fixture.call("POST", path + "/simulate")
            #expect(refused.problem == .refreshUnavailable)
            #expect(try refused.json["detail"] == "The app has no webhook.")
        }
    }

    @Test func `Only the operator sets conditions, which last and delay discretionary tasks`() async throws {
        try await RouteFixture.run { fixture in
            let path = "/v1/system/conditions"
            #expect(try await fixture.call("GET", path).status == 403)
            let declared: WireJSON = ["network": ["reachable": false], "backgroundRefreshStatus": "restricted"]
            let set = try await fixture.call("PUT", path, key: "admin", json: declared)
            #expect(set.status == 200)
            #expect(try set.json["network"]?["reachable"] == false)
            #expect(try set.json["power"]?["external"] == true)
            #expect(try await fixture.call("GET", path, key: "admin").bytes == set.bytes)
            let refresh = try await fixture.call("GET", "/v1/app/background-refresh")
            #expect(try refresh.json["backgroundRefreshStatus"] == "restricted")

            fixture.origin.serve("/file", .generated(seed: 1, length: 10))
            let session = try await fixture.service.openSession(
                "s", app: fixture.app, configuration: nil, description: nil, onlyCreates: false, recording: nil
            ).session
            let created = try await fixture.call(
                "POST", "/v1/sessions/s/tasks",
                json: ["kind": "download", "request": ["url": .string(fixture.origin.url("/file"))]])
            #expect(created.status == 201)
            let task = try await fixture.call("GET", "/v1/sessions/s/tasks/1")
            #expect(try task.json["phase"] == "waitingForConnectivity")
            #expect(try task.json["waitingFor"]?[0]?["kind"] == "connectivity")
            _ = try await fixture.call("PUT", path, key: "admin", json: [:])
            try await eventually("the download") {
                try await fixture.service.task(1, in: session.id).state == .completed
            }
        }
    }
}
