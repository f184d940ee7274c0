import Core
import TestSupport
import Testing

/// docs/api.md "Keys" and docs/operating.md "Keys and secrets": apps, keys and an app's webhook.
@Suite struct AppTests {
    private func makeApp(_ scene: Scene, _ identifier: String, _ more: [String: JSON] = [:]) async throws -> JSON {
        var members: [String: JSON] = ["identifier": .string(identifier)]
        members.merge(more) { _, new in new }
        let answer = try await scene.admin.post("/v1/apps", .object(members))
        try #require(answer.status == 201, "\(answer.text)")
        #expect(answer.fields["Location"] == "/v1/apps/\(identifier)")
        return answer.json
    }

    private func client(_ scene: Scene, _ created: JSON) throws -> APIClient {
        let key = try #require(created["apiKey"].string)
        return scene.api.with(key: key)
    }

    @Test func `An app is created with a key and a secret, shown once`() async throws {
        let scene = try await Scene()
        let created = try await makeApp(scene, "com.example.a", ["webhook": ["url": "https://a.example/hook"]])
        let key = try #require(created["apiKey"].string)
        let parts = key.split(separator: "_")
        #expect(parts.count == 3 && parts[0] == "usd" && parts[2].count == 43, "\(key)")
        let secret = try #require(created["webhook"]["secret"].string)
        #expect(secret.hasPrefix("whsec_") && Base64Text.decode(String(secret.dropFirst(6)))?.count == 32)
        let read = try await scene.admin.get("/v1/apps/com.example.a")
        expect(read, 200)
        #expect(!read.text.contains(key) && !read.text.contains(secret))
        #expect(read.json["webhook"]["url"] == "https://a.example/hook")
        #expect(read.json["webhook"]["launchDeadline"].double == 60)
        #expect(read.json["webhook"]["includeEvents"] == 0)
        let own = try await scene.api.with(key: key).get("/v1/app")
        expect(own, 200)
        #expect(own.json["identifier"] == "com.example.a")
        #expect(!own.text.contains(key) && !own.text.contains(secret))
        let again = try await scene.admin.post("/v1/apps", ["identifier": "com.example.a"])
        expectProblem(again, 409, "app-exists")
        expectProblem(try await scene.admin.get("/v1/apps/unknown"), 404, "not-found")
        let list = try await scene.admin.get("/v1/apps")
        #expect(list.json["items"].array?.compactMap { $0["identifier"].string }.sorted() == ["com.example.a", "dev"])
    }

    @Test func `An app never sees the resources of another app`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .generated(seed: 1, length: 10))
        let number = try await scene.download("/a")
        try await scene.completed(number)
        let other = try client(scene, try await makeApp(scene, "other"))
        for path in [
            "/v1/sessions/s", "/v1/sessions/s/tasks", "/v1/sessions/s/tasks/1", "/v1/sessions/s/tasks/1/content",
            "/v1/sessions/s/events",
        ] {
            expectProblem(try await other.get(path), 404, "not-found")
        }
        expectProblem(try await other.post("/v1/sessions/s/tasks", scene.downloadOf("/a")), 404, "not-found")
        expectProblem(try await other.post("/v1/sessions/s/tasks/1/cancel"), 404, "not-found")
        expectProblem(try await other.delete("/v1/sessions/s"), 404, "not-found")
        expect(try await other.put("/v1/sessions/s"), 201)
        #expect(try await other.get("/v1/sessions/s").json["taskCounts"]["completed"] == 0)
        #expect(try await other.get("/v1/sessions").json["items"].array?.count == 1)
        let body = try await scene.api.send("POST", "/v1/bodies", body: [1, 2, 3])
        let identifier = try #require(body.json["id"].string)
        expectProblem(try await other.get("/v1/bodies/\(identifier)"), 404, "not-found")
        let upload: JSON = [
            "kind": "upload", "request": ["url": .string(scene.origin.url("/up"))], "body": ["id": .string(identifier)],
        ]
        #expect([404, 422].contains(try await other.post("/v1/sessions/s/tasks", upload).status))
    }

    @Test func `The operator's routes refuse apps, and the apps' routes refuse the operator`() async throws {
        let scene = try await Scene()
        for (method, path) in [
            ("GET", "/v1/apps"), ("GET", "/v1/apps/dev"), ("DELETE", "/v1/apps/dev"), ("GET", "/v1/apps/dev/keys"),
            ("GET", "/v1/system/conditions"), ("GET", "/v1/nodes"), ("POST", "/v1/nodes/local/drain"),
        ] {
            expectProblem(try await scene.api.send(method, path), 403, "insufficient-scope")
        }
        expectProblem(try await scene.admin.get("/v1/app"), 403, "insufficient-scope")
        expectProblem(try await scene.admin.get("/v1/sessions"), 403, "insufficient-scope")
    }

    @Test func `Keys have scopes and an expiry, and are revoked at once`() async throws {
        let scene = try await Scene()
        func makeKey(_ members: JSON) async throws -> (identifier: String, api: APIClient) {
            let answer = try await scene.admin.post("/v1/apps/dev/keys", members)
            try #require(answer.status == 201, "\(answer.text)")
            let key = try #require(answer.json["apiKey"].string)
            return (try #require(answer.json["keyIdentifier"].string), scene.api.with(key: key))
        }
        let reader = try await makeKey(["scopes": ["sessions:read"]])
        expect(try await reader.api.get("/v1/sessions/s"), 200)
        expectProblem(try await reader.api.put("/v1/sessions/t"), 403, "insufficient-scope")
        expectProblem(
            try await reader.api.post("/v1/sessions/s/tasks", scene.downloadOf("/a")), 403, "insufficient-scope")
        expectProblem(try await reader.api.get("/v1/app"), 403, "insufficient-scope")
        expectProblem(
            try await reader.api.post("/v1/sessions/s/events/ack", ["through": 0]), 403, "insufficient-scope")
        let listed = try await scene.admin.get("/v1/apps/dev/keys")
        #expect(listed.json["items"].array?.contains { $0["keyIdentifier"].string == reader.identifier } == true)
        #expect(!listed.text.contains(try #require(reader.api.key)))
        expect(try await scene.admin.delete("/v1/apps/dev/keys/\(reader.identifier)"), 204)
        expectProblem(try await reader.api.get("/v1/sessions/s"), 401, "unauthorized")
        expectProblem(try await scene.admin.delete("/v1/apps/dev/keys/\(reader.identifier)"), 404, "not-found")
        let brief = try await makeKey(["expiresAt": .string(timestamp(secondsFromNow: 5))])
        try await eventually("the key expires") { try await brief.api.get("/v1/sessions").status == 401 }
    }

    @Test func `Deleting an app deletes all its resources`() async throws {
        let scene = try await Scene()
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 10), always: [.hold(gate)])
        let other = try client(scene, try await makeApp(scene, "other"))
        expect(try await other.put("/v1/sessions/s"), 201)
        expect(try await other.post("/v1/sessions/s/tasks", scene.downloadOf("/a")), 201)
        try await eventually("the transfer runs") { gate.waiting == 1 }
        expect(try await scene.admin.delete("/v1/apps/other"), 204)
        expectProblem(try await other.get("/v1/sessions"), 401, "unauthorized")
        expectProblem(try await scene.admin.get("/v1/apps/other"), 404, "not-found")
        try await eventually("the transfer ends") { gate.waiting == 0 }
        let again = try client(scene, try await makeApp(scene, "other"))
        #expect(try await again.get("/v1/sessions").json["items"].array?.isEmpty == true)
    }

    @Test func `The webhook of an app can be set and is checked`() async throws {
        let scene = try await Scene()
        let set = try await scene.api.patch(
            "/v1/app",
            ["webhook": ["url": "https://a.example/x", "state": "paused", "includeEvents": 7, "launchDeadline": 10]])
        expect(set, 200)
        let webhook = set.json["webhook"]
        #expect(webhook["url"] == "https://a.example/x" && webhook["state"] == "paused")
        #expect(webhook["includeEvents"] == 7 && webhook["launchDeadline"].double == 10)
        let part = try await scene.api.patch("/v1/app", ["webhook": ["includeEvents": 8]])
        #expect(part.json["webhook"]["url"] == "https://a.example/x" && part.json["webhook"]["includeEvents"] == 8)
        let wrong = try await scene.api.patch(
            "/v1/app",
            ["webhook": ["url": "ftp://a.example/", "state": "off", "includeEvents": 101, "launchDeadline": 4]])
        expectProblem(wrong, 422, "invalid-value", pointer: "/webhook/url")
        for name in ["state", "includeEvents", "launchDeadline"] {
            #expect(wrong.pointers.contains("/webhook/\(name)"), "\(wrong.text)")
        }
        expect(try await scene.api.patch("/v1/app", ["backgroundRefreshStatus": "denied"]), 422)
        #expect(try await scene.api.get("/v1/app").json["webhook"]["includeEvents"] == 8)
    }

    @Test func `A ping is signed and returns its attempt`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        let answer = try await scene.api.post("/v1/app/webhook/ping")
        expect(answer, 200)
        #expect(answer.text.contains("204"), "\(answer.text)")
        let ping = try #require(receiver.deliveries.first)
        #expect(ping.type == "webhook.ping")
        #expect(ping.isSigned(with: devSecret))
        #expect(ping.method == "POST" && ping.target == "/hook")
        receiver.respond { _ in .status(500) }
        let failed = try await scene.api.post("/v1/app/webhook/ping")
        expect(failed, 200)
        #expect(failed.text.contains("500"), "\(failed.text)")
        #expect(receiver.deliveries.count == 2)
        #expect(receiver.deliveries[1].id != ping.id)
    }

    @Test func `A replaced secret signs during its grace period`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        let rotated = try await scene.api.post("/v1/app/webhook/secret/rotate", ["gracePeriod": 10])
        expect(rotated, 200)
        let secret = try #require(rotated.json["secret"].string)
        #expect(rotated.json["previousSecretExpiresAt"].string != nil)
        expect(try await scene.api.post("/v1/app/webhook/ping"), 200)
        let first = try #require(receiver.deliveries.first)
        #expect(first.isSigned(with: secret))
        #expect(first.isSigned(with: devSecret))
        try await eventually("the old secret expires") {
            expect(try await scene.api.post("/v1/app/webhook/ping"), 200)
            let last = try #require(receiver.deliveries.last)
            #expect(last.isSigned(with: secret))
            return !last.isSigned(with: devSecret)
        }
        let now = try await scene.api.post("/v1/app/webhook/secret/rotate", ["gracePeriod": 0])
        expect(now, 200)
        expect(try await scene.api.post("/v1/app/webhook/ping"), 200)
        #expect(receiver.deliveries.last?.isSigned(with: secret) == false)
    }

    @Test func `A replaced secret can be revoked within its grace period`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        expect(try await scene.api.post("/v1/app/webhook/secret/rotate"), 200)
        let rotated = try await scene.api.post("/v1/app/webhook/secret/rotate")
        let secret = try #require(rotated.json["secret"].string)
        for _ in 0..<2 { expect(try await scene.api.send("DELETE", "/v1/app/webhook/secret/previous"), 204) }
        expect(try await scene.api.post("/v1/app/webhook/ping"), 200)
        let last = try #require(receiver.deliveries.last)
        #expect(last.isSigned(with: secret) && !last.isSigned(with: devSecret))
        #expect(last.fields["webhook-signature"]?.split(separator: " ").count == 1)
    }

    @Test func `Force quit stops all webhooks until activation`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 10), turns: [[.hold(gate)]])
        let number = try await scene.download("/a")
        let waiting = try await scene.download("/a", ["state": "suspended"])
        try await eventually("the transfer runs") { gate.waiting == 1 }
        let quit = try await scene.api.post("/v1/app/force-quit")
        expect(quit, 202)
        #expect(quit.json["identifier"] == "dev")
        for number in [number, waiting] {
            let task = try await scene.completed(number)
            #expect(task["outcome"] == "cancelled", "\(task)")
            #expect(task["error"]["code"] == -999 && task["error"]["backgroundTaskCancelledReason"] == 0, "\(task)")
        }
        try await stays("no webhook", for: .seconds(7)) { receiver.deliveries.isEmpty }
        let active = try await scene.api.post("/v1/app/activate")
        expect(active, 200)
        try await receiver.waitForDelivery()
        #expect(receiver.deliveries.first?.type == "session.handleEvents")
    }

    @Test func `The limits of an app are enforced`() async throws {
        let scene = try await Scene()
        let app = try client(scene, try await makeApp(scene, "small", ["limits": ["tasks": 2]]))
        expect(try await app.put("/v1/sessions/s"), 201)
        let task = scene.downloadOf("/a", ["state": "suspended"])
        for _ in 1...2 { expect(try await app.post("/v1/sessions/s/tasks", task), 201) }
        let answer = try await app.post("/v1/sessions/s/tasks", task)
        expectProblem(answer, 429, "too-many-tasks")
        let batch = try await app.post("/v1/sessions/s/tasks/batch", ["tasks": [task]])
        expectProblem(batch, 429, "too-many-tasks")
        #expect(try await app.get("/v1/app").json["usage"]["tasks"] == 2)
        try await linesGetTheirOwnAnswers(scene, app)
        expect(try await app.post("/v1/sessions/s/tasks/1/cancel"), 202)
        try await eventually("there is space again") {
            try await app.post("/v1/sessions/s/tasks", task).status == 201
        }
    }

    /// With a limit of one more task, the first new line gets it; known lines get their task, invalid ones their
    /// problem.
    private func linesGetTheirOwnAnswers(_ scene: Scene, _ app: APIClient) async throws {
        expect(try await app.post("/v1/sessions/s/tasks/2/cancel"), 202)
        try await eventually("there is one slot") { try await app.get("/v1/app").json["usage"]["tasks"] == 1 }
        func line(_ client: String) -> String {
            scene.downloadOf("/a", ["state": "suspended", "clientTaskId": .string(client)]).description
        }
        let lines = ["{", line("a"), line("b"), line("a"), line("c"), "{}", line("b")]
        let headers = [("Content-Type", "application/x-ndjson")]
        let answer = try await app.send(
            "POST", "/v1/sessions/s/tasks", headers: headers, body: Array(lines.joined(separator: "\n").utf8))
        let results = try answer.text.split(separator: "\n").map { try JSON(parsing: String($0)) }
        #expect(results.map { $0["status"].int } == [400, 201, 429, 200, 429, 422, 429], "\(answer.text)")
        #expect(results.map { $0["clientTaskId"].string } == [nil, "a", "b", "a", "c", nil, "b"], "\(answer.text)")
        #expect(results[2]["problem"]["code"] == "too-many-tasks", "\(answer.text)")
        expect(try await app.post("/v1/sessions/s/tasks/3/cancel"), 202)
        expect(try await app.post("/v1/sessions/s/tasks", scene.downloadOf("/a", ["state": "suspended"])), 201)
    }

    @Test func `The key of --dev can be revoked, and a restart creates what is missing`() async throws {
        let service = try await ServiceProcess()
        for deleted in ["/v1/apps/dev/keys/dev", "/v1/apps/dev"] {
            expect(try await service.api.get("/v1/app"), 200)
            expect(try await service.admin.delete(deleted), 204)
            for path in ["/v1/app", "/v1/sessions"] {
                expectProblem(try await service.api.get(path), 401, "unauthorized")
            }
            try await service.terminate()
            try await service.start()
        }
        expect(try await service.api.get("/v1/app"), 200)
    }

    @Test func `Contents count as stored bytes until they are claimed`() async throws {
        let scene = try await Scene()
        let app = try client(scene, try await makeApp(scene, "small", ["limits": ["storedBytes": 100_000]]))
        expect(try await app.put("/v1/sessions/s"), 201)
        scene.origin.serve("/a", .generated(seed: 1, length: 100_000))
        let task = scene.downloadOf("/a")
        func stored() async throws -> JSON { try await app.get("/v1/app").json["usage"]["storedBytes"] }
        expect(try await app.post("/v1/sessions/s/tasks", task), 201)
        try await eventually("it completes") {
            try await app.get("/v1/sessions/s/tasks/1?wait=5").json["state"] == "completed"
        }
        #expect(try await stored() == 100_000)
        expectProblem(try await app.post("/v1/sessions/s/tasks", task), 507, "insufficient-storage")
        expectProblem(try await app.send("POST", "/v1/bodies", body: [1]), 507, "insufficient-storage")
        expect(try await app.get("/v1/sessions/s/tasks/1/content"), 200)
        expect(try await app.post("/v1/sessions/s/tasks/1/content/claim"), 200)
        #expect(try await stored() == 0)
        expect(try await app.post("/v1/sessions/s/tasks", task), 201)
    }
}

/// A time in the API's form.
func timestamp(secondsFromNow seconds: Int) -> String {
    (Timestamp(milliseconds: wallMilliseconds()) + .seconds(seconds)).rfc3339
}
