import Base
import Core
import Service
import TestSupport
import Testing
import Transfers

@testable import API

@Suite struct SessionRoutesTests {
    @Test func `PUT creates a session or reconnects, POST only creates`() async throws {
        try await ServedAPI.run { api async throws in
            let created = try await api.dev.put("/v1/sessions/s", ["sessionDescription": "first"])
            #expect(created.status == 201)
            #expect(created.fields["Location"] == "/v1/sessions/s")
            #expect(created.json["configuration"]["timeoutIntervalForRequest"].int == 60)
            #expect(created.json["incarnation"].int == 1)
            let found = try await api.dev.put("/v1/sessions/s", ["sessionDescription": "second"])
            #expect(found.status == 200)
            #expect(found.json["sessionDescription"].string == "second")
            #expect(try await api.dev.put("/v1/sessions/s", [:]).json["sessionDescription"].string == "second")
            let exists = try await api.dev.post("/v1/sessions", ["identifier": "s"])
            #expect(exists.status == 409)
            #expect(exists.code == "session-exists")
            #expect(try await api.dev.put("/v1/sessions/a%2Fb", [:]).status == 422)
        }
    }

    @Test func `Another configuration is refused, and the problem names the different members`() async throws {
        try await ServedAPI.run { api async throws in
            let configuration: JSON = ["configuration": ["isDiscretionary": true, "timeoutIntervalForRequest": 30]]
            #expect(try await api.dev.put("/v1/sessions/s", configuration).status == 201)
            #expect(try await api.dev.put("/v1/sessions/s", configuration).status == 200)
            #expect(try await api.dev.put("/v1/sessions/s", [:]).status == 200)
            let other = try await api.dev.put("/v1/sessions/s", ["configuration": ["isDiscretionary": true]])
            #expect(other.status == 409)
            #expect(other.code == "configuration-mismatch")
            #expect(other.pointers == ["/configuration/timeoutIntervalForRequest"])
            let wrong = try await api.dev.put(
                "/v1/sessions/t", ["configuration": ["timeoutIntervalForRequest": -1, "proxy": 4, "x": 1]])
            #expect(wrong.status == 422)
            #expect(
                Set(wrong.pointers) == [
                    "/configuration/timeoutIntervalForRequest", "/configuration/proxy", "/configuration/x",
                ])
        }
    }

    @Test func `A requested bandwidth limit must be the session's, and an omitted one matches any`()
        async throws
    {
        try await ServedAPI.run { api async throws in
            func put(_ limit: JSON?) async throws -> APIClient.Answer {
                let limits = limit.map { ["bandwidthLimit": $0] } ?? [:]
                return try await api.dev.put("/v1/sessions/s", ["configuration": .object(limits)])
            }
            #expect(try await put(1000).status == 201)
            for same in [1000, nil] as [JSON?] { #expect(try await put(same).status == 200) }
            let other = try await put(2000)
            #expect(other.status == 409 && other.code == "configuration-mismatch", "\(other.text)")
            #expect(other.pointers == ["/configuration/bandwidthLimit"])
            #expect(try await api.dev.patch("/v1/sessions/s", ["bandwidthLimit": 2000]).status == 200)
            #expect(try await put(2000).status == 200)
            #expect(try await put(1000).pointers == ["/configuration/bandwidthLimit"])
        }
    }

    @Test func `A session ends, stays readable, and is replaced by the next one`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            _ = try await api.dev.post("/v1/sessions/s/tasks", api.task())
            let finishing = try await api.dev.post("/v1/sessions/s/finish-tasks-and-invalidate")
            #expect(finishing.status == 202)
            #expect(finishing.json["state"].string == "invalidating")
            #expect(try await api.dev.post("/v1/sessions/s/tasks", api.task()).code == "session-invalidated")
            #expect(try await api.dev.put("/v1/sessions/s", [:]).code == "session-invalidated")
            let cancelled = try await api.dev.post("/v1/sessions/s/invalidate-and-cancel", [:])
            #expect(cancelled.status == 202)
            #expect(cancelled.json["state"].string == "invalid")
            #expect(cancelled.json["taskCounts"]["cancelled"].int == 1)
            let events = try await api.dev.get("/v1/sessions/s/events").json["items"].array ?? []
            #expect(events.last?["type"].string == "session.didBecomeInvalid")
            let next = try await api.dev.put("/v1/sessions/s", [:])
            #expect(next.status == 201)
            #expect(next.json["incarnation"].int == 2)
            #expect(next.json["lastEventSeq"].int == 0)
            #expect(try await api.dev.delete("/v1/sessions/s").status == 202)
            #expect(try await api.dev.get("/v1/sessions/s").status == 404)
        }
    }

    @Test func `A wait on a session ends when no task runs or when the session is newer`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            #expect(try await api.dev.get("/v1/sessions/s?wait=30").json["taskCounts"]["running"].int == 0)
            let later: JSON = [
                "kind": "download", "request": ["url": "https://example.com/"],
                "earliestBeginDate": "2999-01-01T00:00:00Z",
            ]
            for _ in 1...2 { #expect(try await api.dev.post("/v1/sessions/s/tasks", later).status == 201) }
            let short = try await api.dev.get("/v1/sessions/s?wait=0.05")
            #expect(short.json["taskCounts"]["running"].int == 2)
            async let quiet = api.dev.get("/v1/sessions/s?wait=30")
            async let newer = api.dev.get("/v1/sessions/s?wait=30&revision=\(short.json["revision"].int ?? 0)")
            try await eventually("both wait") { api.service.hub.sessions.keys.count == 1 }
            #expect(try await api.dev.patch("/v1/sessions/s", ["sessionDescription": "new"]).status == 200)
            #expect(try await newer.json["sessionDescription"].string == "new")
            #expect(try await api.dev.post("/v1/sessions/s/tasks/1/cancel").status == 202)
            #expect(try await api.dev.post("/v1/sessions/s/tasks/2/suspend").status == 200)
            #expect(try await quiet.json["taskCounts"]["running"].int == 0)
            #expect(try await api.dev.get("/v1/sessions/s?wait=61").parameters == ["wait"])
            #expect(try await api.dev.get("/v1/sessions/s").json["attachment"] == .null)
        }
    }

    @Test func `Reset responds with the session`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            #expect(try await api.dev.post("/v1/sessions/s/reset").status == 200)
            let unexpected = try await api.dev.post("/v1/sessions/s/reset", ["x": 1])
            #expect(unexpected.code == "unknown-member")
        }
    }

    @Test(arguments: [
        ("https://10.0.0.1/", "10.0.0.1/32"), ("https://0xA000001/", "10.0.0.1/32"),
        ("https://[fd00::1]/", "fd00::1/128"),
        ("https://[::ffff:192.168.0.1]:8443/", "192.168.0.1/32"), ("https://169.254.169.254/", "169.254.169.254/32"),
    ]) func `An unusable webhook URL is refused on every route`(_ url: String, _ range: String)
        async throws
    {
        try await ServedAPI.run { api async throws in
            let webhook: JSON = ["url": .string(url)]
            for refused in [
                try await api.dev.patch("/v1/app", ["webhook": webhook]),
                try await api.admin.patch("/v1/apps/dev", ["webhook": webhook]),
                try await api.admin.post("/v1/apps", ["identifier": "other", "webhook": webhook]),
            ] {
                #expect(refused.status == 422 && refused.code == "invalid-value")
                #expect(refused.pointers == ["/webhook/url"])
                #expect(refused.json["detail"].string?.contains("--allow-egress \(range)") == true, "\(refused.text)")
            }
            #expect(try await api.admin.get("/v1/apps/other").status == 404)
        }
    }

    @Test func `A webhook with an allowed address or with a host name is accepted`() async throws {
        try await ServedAPI.run { api async throws in
            for url in ["https://127.0.0.1:8/", "https://localhost/", "https://8.8.8.8/", "https://intern.example/"] {
                let changed = try await api.dev.patch("/v1/app", ["webhook": ["url": .string(url)]])
                #expect(changed.status == 200, "\(changed.text)")
            }
        }
    }

    @Test func `An app reads itself, changes its webhook, is force-quit and is activated`() async throws {
        try await ServedAPI.run { api async throws in
            let app = try await api.dev.get("/v1/app")
            #expect(app.json["limits"]["tasks"].int == 1_000_000)
            let tag = try #require(app.etag)
            #expect(try await api.dev.get("/v1/app", headers: [("If-None-Match", tag)]).status == 304)
            let changed = try await api.dev.patch(
                "/v1/app", ["webhook": ["url": "https://example.com/hook", "includeEvents": 5]],
                headers: [("If-Match", tag)])
            #expect(changed.status == 200)
            #expect(changed.json["webhook"]["includeEvents"].int == 5)
            let plain = try await api.dev.patch("/v1/app", ["webhook": ["url": "http://example.com/hook"]])
            #expect(plain.status == 422)
            #expect(plain.pointers == ["/webhook/url"])
            #expect(try await api.dev.patch("/v1/app", ["limits": ["tasks": 5]]).code == "unknown-member")

            try await api.session()
            _ = try await api.dev.post("/v1/sessions/s/tasks", api.task())
            let quit = try await api.dev.post("/v1/app/force-quit")
            #expect(quit.status == 202)
            #expect(quit.json["state"].string == "forceQuit")
            let task = try await api.dev.get("/v1/sessions/s/tasks/1")
            #expect(task.json["outcome"].string == "cancelled")
            #expect(task.json["error"]["backgroundTaskCancelledReason"].int == 0)
            #expect(try await api.dev.post("/v1/app/activate").json["state"].string == "active")
        }
    }

    @Test func `A null webhook resets the app to its state without a webhook`() async throws {
        try await ServedAPI.run { api async throws in
            let first = try await api.dev.get("/v1/app").json["webhook"]
            let hook: JSON = [
                "url": "https://receiver.example/hook", "state": "paused", "includeEvents": 3, "launchDeadline": 90,
            ]
            for (client, path) in [(api.dev, "/v1/app"), (api.admin, "/v1/apps/dev")] {
                let set = try await client.patch(path, ["webhook": hook])
                #expect(set.json["webhook"]["url"] == hook["url"] && set.json["webhook"]["state"] == "paused")
                let cleared = try await client.patch(path, ["webhook": nil])
                #expect(cleared.status == 200 && cleared.json["webhook"] == first, "\(cleared.text)")
            }
        }
    }

    @Test func `The operator lists, changes and limits apps`() async throws {
        try await ServedAPI.run { api async throws in
            #expect(try await api.admin.get("/v1/apps?limit=1").json["items"][0]["identifier"].string == "dev")
            let changed = try await api.admin.patch("/v1/apps/dev", ["limits": ["tasks": 1]])
            #expect(changed.json["limits"]["tasks"].int == 1)
            try await api.session()
            #expect(try await api.dev.post("/v1/sessions/s/tasks", api.task()).status == 201)
            let over = try await api.dev.post("/v1/sessions/s/tasks", api.task())
            #expect(over.status == 429)
            #expect(over.code == "too-many-tasks")
            #expect(over.fields["Retry-After"] != nil)
            let keys = try await api.admin.get("/v1/apps/dev/keys")
            #expect(keys.json["items"][0]["keyIdentifier"].string == "first")
            #expect(!keys.json["items"][0].has("apiKey"))
            #expect(try await api.admin.get("/v1/apps/none").status == 404)
        }
    }
}
