import Core
import HTTPServer
import TestSupport
import Testing

@testable import API

/// `If-Match` on every route with a change.
@Suite struct PreconditionTests {
    private static let stale = [("If-Match", "\"r0-000000000000-000000000000\"")]

    @Test func `A change of the whole session checks the session's entity tag`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            _ = try await api.dev.post("/v1/sessions/s/tasks", api.task())
            let calls: [(path: String, body: JSON?)] = [
                ("tasks/resume", nil), ("tasks/suspend", nil), ("tasks/cancel", nil), ("tasks/retry", nil),
                ("events/ack", ["through": 0]),
            ]
            for (path, body) in calls {
                let refused = try await api.dev.post("/v1/sessions/s/\(path)", body, headers: Self.stale)
                #expect(refused.status == 412 && refused.code == "precondition-failed", "\(path): \(refused.text)")
                let task = try await api.dev.get("/v1/sessions/s/tasks/1").json
                #expect(task["state"] == "suspended" && task["revision"] == 1, "\(path): \(task)")
            }
            for (path, body) in calls {
                let tag = try #require(try await api.dev.get("/v1/sessions/s").etag)
                let done = try await api.dev.post("/v1/sessions/s/\(path)", body, headers: [("If-Match", tag)])
                #expect(done.status == 200, "\(path): \(done.text)")
            }
        }
    }

    @Test func `Force quit and activation check the app's entity tag`() async throws {
        try await ServedAPI.run { api async throws in
            for (verb, state) in [("force-quit", "forceQuit"), ("activate", "active")] {
                let before = try await api.dev.get("/v1/app")
                let refused = try await api.dev.post("/v1/app/\(verb)", headers: Self.stale)
                #expect(refused.status == 412 && refused.code == "precondition-failed", "\(verb): \(refused.text)")
                #expect(try await api.dev.get("/v1/app").json["state"] == before.json["state"])
                let done = try await api.dev.post(
                    "/v1/app/\(verb)", headers: [("If-Match", try #require(before.etag))])
                #expect(done.json["state"].string == state, "\(verb): \(done.text)")
            }
        }
    }

    @Test func `The claim of a content checks the content's entity tag or its task's`() async throws {
        try await RouteFixture.run { fixture in
            _ = try await fixture.download(.generated(seed: 5, length: 100))
            let path = "/v1/sessions/s/tasks/1/content"
            let refused = try await fixture.call("POST", path + "/claim", headers: Self.stale)
            #expect(refused.status == 412)
            let content = try await fixture.call("GET", path)
            #expect(content.status == 200)
            for tag in [
                content.headers["ETag"], try await fixture.call("GET", "/v1/sessions/s/tasks/1").headers["ETag"],
            ] {
                let claimed = try await fixture.call(
                    "POST", path + "/claim", headers: [("If-Match", try #require(tag))])
                #expect(claimed.status == 200, "\(String(describing: tag))")
            }
        }
    }

    @Test func `A change of the conditions checks the entity tag that the client read`() async throws {
        try await ServedAPI.run { api async throws in
            let path = "/v1/system/conditions"
            let seen = try #require(try await api.admin.get(path).etag)
            #expect(try await api.admin.get(path, headers: [("If-None-Match", seen)]).status == 304)
            let first = try await api.admin.put(path, ["maximumLoad": 2], headers: [("If-Match", seen)])
            #expect(first.status == 200 && first.etag != seen && first.json["maximumLoad"] == 2)
            let refused = try await api.admin.put(path, ["maximumLoad": 3], headers: [("If-Match", seen)])
            #expect(refused.status == 412 && refused.code == "precondition-failed", "\(refused.text)")
            #expect(try await api.admin.get(path).json["maximumLoad"] == 2)
            let again = try await api.admin.put(path, [:], headers: [("If-Match", try #require(first.etag))])
            #expect(again.status == 200 && again.etag == seen)
            #expect(try await api.admin.put(path, ["maximumLoad": 4]).status == 200)
        }
    }

    @Test func `A change of the refresh interval checks the entity tag that the client read`() async throws {
        try await ServedAPI.run { api async throws in
            let path = "/v1/app/background-refresh"
            func put(_ interval: JSON, _ tag: String?) async throws -> APIClient.Answer {
                try await api.dev.put(
                    path, ["minimumBackgroundFetchInterval": interval], headers: tag.map { [("If-Match", $0)] } ?? [])
            }
            let seen = try #require(try await api.dev.get(path).etag)
            let first = try await put("minimum", seen)
            #expect(first.status == 200 && first.etag != seen)
            let refused = try await put(3600, seen)
            #expect(refused.status == 412 && refused.code == "precondition-failed", "\(refused.text)")
            let current = try await api.dev.get(path)
            #expect(current.json["minimumBackgroundFetchInterval"] == "minimum")
            #expect(try await put(3600, current.etag).status == 200)
            #expect(try await put("never", "*").status == 200)
        }
    }

    @Test func `Of two concurrent changes of the conditions with one entity tag, one is refused`() async throws {
        try await ServedAPI.run { api async throws in
            let path = "/v1/system/conditions"
            let seen = try #require(try await api.admin.get(path).etag)
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 1...8 {
                    group.addTask {
                        let load: JSON = ["maximumLoad": .integer(number)]
                        return try await api.admin.put(path, load, headers: [("If-Match", seen)]).status
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses.sorted() == [200] + Array(repeating: 412, count: 7))
        }
    }

    @Test(arguments: ["events/ack", "finish-tasks-and-invalidate"])
    func `Of concurrent changes of a session with one entity tag, one succeeds`(_ verb: String) async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            _ = try await api.dev.post("/v1/sessions/s/tasks", api.task())
            _ = try await api.dev.post("/v1/sessions/s/tasks/1/cancel")
            let seen = try #require(try await api.dev.get("/v1/sessions/s").etag)
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 1...8 {
                    group.addTask {
                        let body: JSON? = verb == "events/ack" ? ["through": 1] : nil
                        return try await api.dev.post(
                            "/v1/sessions/s/\(verb)", body, headers: [("If-Match", seen)]
                        ).status
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses.sorted() == [verb == "events/ack" ? 200 : 202] + Array(repeating: 412, count: 7))
        }
    }

    @Test func `Of concurrent suspensions of a task with one entity tag, one succeeds`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            _ = try await api.dev.post("/v1/sessions/s/tasks", api.task())
            for _ in 1...10 {
                _ = try await api.dev.post("/v1/sessions/s/tasks/1/resume")
                let seen = try #require(try await api.dev.get("/v1/sessions/s/tasks/1").etag)
                let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                    for _ in 1...8 {
                        group.addTask {
                            let suspend = "/v1/sessions/s/tasks/1/suspend"
                            return try await api.dev.post(suspend, headers: [("If-Match", seen)]).status
                        }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(statuses.sorted() == [200] + Array(repeating: 412, count: 7))
            }
        }
    }

    @Test func `A request without a condition never gets 412`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            _ = try await api.dev.post("/v1/sessions/s/tasks", api.task())
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 1...30 {
                    group.addTask {
                        let change: JSON = ["request": ["url": .string("https://example.com/\(number)")]]
                        return try await api.dev.patch("/v1/sessions/s/tasks/1", change).status
                    }
                    group.addTask {
                        try await api.dev.patch("/v1/app", ["webhook": ["includeEvents": .integer(number)]]).status
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses == Array(repeating: 200, count: 60))
        }
    }
}
