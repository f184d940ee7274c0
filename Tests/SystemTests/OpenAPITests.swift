import Base
import Core
import TestSupport
import Testing

/// `openapi.yaml` matches the service: every path, every method, the members and statuses of real responses, and the
/// webhooks.
@Suite struct OpenAPITests {
    @Test func `The served description is that of the repository`() async throws {
        let scene = try await Scene(configuration: nil)
        let served = try await scene.api.with(key: nil).get("/openapi.json")
        #expect(served.status == 200 && served.body == Contract.embedded())
        #expect(!Contract.shared.operations.isEmpty)
        let yaml = try await scene.api.with(key: nil).get("/openapi.yaml")
        #expect(yaml.status == 200 && yaml.text.contains("openapi: 3.1.0"))
    }

    @Test func `Undescribed responses are detected`() throws {
        func answer(_ status: Int, _ body: JSON) -> APIClient.Answer {
            var fields = HTTPFields()
            fields.append("Content-Type", "application/json")
            return APIClient.Answer(status: status, fields: fields, body: body.bytes)
        }
        let good: JSON = ["status": "ok"]
        #expect(Contract.shared.faults("GET", "/healthz", answer(200, good)) == [])
        for (status, body) in [(200, [:]), (200, ["status": "ok", "more": 1]), (200, ["status": 1]), (204, good)]
            as [(Int, JSON)]
        {
            #expect(!Contract.shared.faults("GET", "/healthz", answer(status, body)).isEmpty, "\(status) \(body)")
        }
        #expect(Contract.shared.faults("GET", "/v1/nowhere", answer(200, good)).count == 1)
        #expect(Contract.shared.faults("PUT", "/healthz", answer(200, good)).count == 1)
    }

    @Test func `Every described route is served, and no other method on its path`() async throws {
        let scene = try await Scene(configuration: nil)
        let client = scene.api.with(key: nil)
        for operation in Contract.shared.operations {
            let path = Self.path(of: operation.pattern)
            let answer = try await client.send(operation.method, path, body: [])
            // Without a key the route itself responds, before any look-up.
            let isThere = operation.isOpen ? (200...299).contains(answer.status) : answer.status == 401
            #expect(isThere, "\(operation.method) \(operation.pattern): \(answer.status) \(answer.text)")
        }
        for pattern in Set(Contract.shared.operations.map(\.pattern)) {
            let known = Contract.shared.operations.filter { $0.pattern == pattern }.map(\.method)
            let others = ["GET", "POST", "PUT", "PATCH", "DELETE"].filter { !known.contains($0) }
            for method in others {
                let answer = try await client.send(method, Self.path(of: pattern), body: [])
                #expect(answer.status == 405, "\(method) \(pattern): \(answer.status)")
                #expect(known.allSatisfy { answer.fields["Allow"]?.contains($0) == true }, "\(pattern)")
            }
        }
    }

    private static func path(of pattern: String) -> String {
        let segments = pattern.split(separator: "/").map {
            $0 == "{file}" ? "icon.svg" : $0 == "{code}" ? "not-found" : $0.hasPrefix("{") ? "1" : String($0)
        }
        return "/" + segments.joined(separator: "/")
    }

    @Test func `Every operation succeeds with the members of its schema`() async throws {
        let scene = try await Scene(configuration: nil)
        let succeeded = Locked<Set<String>>([])
        let tour = Tour(scene: scene, receiver: try Receiver()) { method, target, answer in
            Contract.shared.check(method, target, answer)
            guard (200...299).contains(answer.status) || answer.status == 307 else {
                Issue.record("\(method) \(target): \(answer.status) \(answer.text)")
                return
            }
            if let operation = Contract.shared.operation(method, target), operation.method == method {
                succeeded.withLock { _ = $0.insert(operation.identifier) }
            }
        }
        try await tour.apps()
        try await tour.sessions()
        try await tour.tasks()
        try await tour.sets()
        try await tour.bodies()
        try await tour.questions()
        try await tour.launches()
        try await tour.stalls()
        try await tour.refresh()
        try await tour.system()
        try await tour.ends()
        try await tour.drain()
        let all = Set(Contract.shared.operations.map(\.identifier))
        #expect(all.subtracting(succeeded.withLock { $0 }) == [])
        tour.checkWebhooks()
    }
}

/// One tour through the whole API; `observe` gets every response.
private struct Tour {
    let scene: Scene
    let receiver: Receiver
    let api: APIClient
    let admin: APIClient

    init(
        scene: Scene, receiver: Receiver,
        observe: @escaping @Sendable (String, String, APIClient.Answer) -> Void
    ) {
        self.scene = scene
        self.receiver = receiver
        var client = scene.service.api
        client.observe = observe
        api = client
        admin = client.with(key: scene.service.admin.key)
    }

    func apps() async throws {
        let made: JSON = [
            "identifier": "other", "webhook": ["url": "https://app.example/hook"], "limits": ["tasks": 5],
        ]
        try await admin.post("/v1/apps", made)
        try await admin.get("/v1/apps")
        try await admin.get("/v1/apps/other")
        try await admin.patch("/v1/apps/other", ["limits": ["storedBytes": nil]])
        let key = try await admin.post("/v1/apps/other/keys", ["scopes": ["events"]]).json["keyIdentifier"].string ?? ""
        try await admin.get("/v1/apps/other/keys?limit=1")
        try await admin.delete("/v1/apps/other/keys/\(key)")
        try await admin.delete("/v1/apps/other")
        try await api.get("/v1/app")
        try await api.patch("/v1/app", ["webhook": ["url": .string(receiver.url), "includeEvents": 100]])
        try await api.post("/v1/app/webhook/ping")
        try await api.post("/v1/app/webhook/secret/rotate", ["gracePeriod": 60])
        try await api.delete("/v1/app/webhook/secret/previous")
        try await api.get("/v1/cache")
        try await api.delete("/v1/cache?url=https%3A%2F%2Fa.example%2F")
        try await api.post("/v1/app/force-quit")
        try await api.post("/v1/app/activate")
    }

    func sessions() async throws {
        let configuration: JSON = ["httpAdditionalHeaders": ["X-A": "b"], "retryPolicy": "apple"]
        try await api.post("/v1/sessions", ["configuration": configuration])
        try await api.put("/v1/sessions/s", ["sessionDescription": "the session"])
        try await api.put("/v1/sessions/s")
        try await api.get("/v1/sessions?limit=1")
        try await api.get("/v1/sessions/s")
        try await api.patch("/v1/sessions/s", ["bandwidthLimit": nil])
        let epoch = try await api.post("/v1/sessions/s/attachment", ["ttl": 60]).json["epoch"].int ?? 0
        try await api.get("/v1/sessions/s")
        try await api.post("/v1/sessions/s/attachment", ["epoch": .integer(epoch)])
        try await api.delete("/v1/sessions/s/attachment?epoch=\(epoch)")
        try await api.post("/v1/sessions/s/reset")
    }

    func tasks() async throws {
        let tasks = "/v1/sessions/s/tasks"
        scene.origin.serve("/a", .generated(seed: 1, length: 100_000), turns: [[.cut(after: 70_000)]])
        scene.origin.serve("/echo", .upload())
        let full = scene.downloadOf(
            "/a",
            [
                "clientTaskId": "a-17", "group": "nightly", "taskDescription": "A", "metadata": ["row": "17"],
                "priority": 0.5, "state": "suspended", "acceptableStatusCodes": ["200-299"], "failOnHTTPError": false,
                "expectedDigest": ["algorithm": "sha-256", "value": .string(Content.sha256(seed: 1, length: 100_000))],
            ])
        let number = try await api.post(tasks, full).json["taskIdentifier"].int ?? 0
        try await api.post(tasks, full)
        try await api.post("\(tasks)/batch", ["tasks": [full, scene.downloadOf("/missing")]])
        try await api.post("\(tasks)/batch?return=minimal", ["tasks": [scene.downloadOf("/missing")]])
        let line = scene.downloadOf("/missing", ["state": "suspended"]).description + "\n{}\n"
        try await api.send(
            "POST", tasks, headers: [("Content-Type", "application/x-ndjson")], body: Array(line.utf8))
        try await api.get("\(tasks)?state=suspended&limit=1")
        try await api.get("/v1/tasks?limit=1")
        try await api.get("\(tasks)/\(number)")
        try await api.patch("\(tasks)/\(number)", ["priority": 0.75])
        try await api.post("\(tasks)/\(number)/resume")
        try await scene.completed(number)
        try await api.get("\(tasks)/\(number)")
        try await api.get("\(tasks)/\(number)/content", headers: [("Range", "bytes=0-9")])
        try await api.get("\(tasks)/\(number)/content")
        try await api.post("\(tasks)/\(number)/content/claim")
        try await api.post("\(tasks)/\(number)/retry")
        for verb in ["suspend", "resume", "cancel", "claim", "retry"] {
            try await api.post("\(tasks)/\(verb)", ["group": "none such"])
        }
        let waiting = scene.downloadOf("/a", ["state": "suspended"])
        let other = try await api.post(tasks, waiting).json["taskIdentifier"].int ?? 0
        try await api.post("\(tasks)/\(other)/suspend")
        try await api.post("\(tasks)/\(other)/cancel", ["byProducingResumeData": true])
        let third = try await api.post(tasks, waiting).json["taskIdentifier"].int ?? 0
        try await api.post("\(tasks)/\(third)/cancel")
        let upload: JSON = [
            "kind": "upload", "request": ["url": .string(scene.origin.url("/echo"))], "body": ["text": "content"],
        ]
        try await api.get("\(tasks)/\(try await api.post(tasks, upload).json["taskIdentifier"].int ?? 0)?wait=30")
        try await api.get("/v1/sessions/s/events?after=0&limit=1000")
        try await api.post("/v1/sessions/s/events/ack", ["through": 1])
    }

    func sets() async throws {
        let gate = Gate()
        scene.origin.serve("/weights", .generated(seed: 2, length: 100_000))
        scene.origin.serve("/held", .text("x"), always: [.hold(gate)])
        try await api.put("/v1/sessions/sets")
        try await api.put("/v1/sets/models", ["keep": 2, "grace": 60])
        try await api.put("/v1/sets/models", ["cachePolicy": "useProtocolCachePolicy"])
        func create(_ name: String, _ path: String) async throws -> String {
            let file: JSON = ["path": "a/b.bin", "request": ["url": .string(scene.origin.url(path))]]
            let version: JSON = ["version": .string(name), "session": "sets", "metadata": ["k": "v"], "files": [file]]
            try await api.post("/v1/sets/models/versions", version)
            return "/v1/sets/models/versions/\(name)"
        }
        func end(of place: String) async throws {
            try await eventually("the end of \(place)") {
                ["published", "failed"].contains(try await api.get(place).json["state"].string)
            }
        }
        let first = try await create("1", "/weights")
        try await end(of: first)
        try await end(of: create("2", "/weights"))
        let failed = try await create("3", "/missing")
        try await end(of: failed)
        try await api.post(failed + "/retry")
        try await api.post(create("4", "/held") + "/cancel")
        gate.open()
        try await api.post("/v1/sets/models/current", ["version": "1"])
        try await api.get("/v1/sets?limit=1")
        try await api.get("/v1/sets/models")
        try await api.get("/v1/sets/models/versions")
        try await api.get("/v1/sets/models/manifest")
        try await api.get(first + "/manifest")
        try await api.get("/v1/sets/models/files/a/b.bin")
        try await api.get(first + "/files/a%2Fb.bin")
        try await api.get(first + "/files/a/b.bin", headers: [("Range", "bytes=0-9")])
        let events = try await api.get("/v1/sessions/sets/events?after=0&limit=1000").json["items"].array ?? []
        for type in ["set.didPublish", "set.didFail"] { #expect(events.contains { $0["type"].string == type }) }
        try await api.delete("/v1/sets/models?keepFiles=1")
    }

    func bodies() async throws {
        let body = try await api.send("POST", "/v1/bodies", body: [1, 2, 3]).json["id"].string ?? ""
        try await api.get("/v1/bodies/\(body)")
        try await api.get("/v1/bodies")
        try await api.delete("/v1/bodies/\(body)")
        let draft = try await api.send("POST", "/v1/bodies", headers: [("Upload-Complete", "?0")], body: [1])
        let path = "/v1/bodies/" + (draft.fields["Location"]?.split(separator: "/").last.map(String.init) ?? "")
        try await api.send("HEAD", path)
        let headers = [
            ("Content-Type", "application/partial-upload"), ("Upload-Offset", "1"), ("Upload-Complete", "?1"),
        ]
        try await api.send("PATCH", path, headers: headers, body: [2])
        try await api.get(path)
    }

    func questions() async throws {
        scene.origin.serve("/guarded", .text("x"), turns: [[.status(401, [("WWW-Authenticate", "Basic realm=\"r\"")])]])
        try await api.put("/v1/sessions/q")
        try await api.post("/v1/sessions/q/tasks", scene.downloadOf("/guarded"))
        try await api.post("/v1/sessions/q/tasks", scene.downloadOf("/guarded", ["confirmBeforeStart": true]))
        try await eventually("two questions") {
            try await api.get("/v1/questions?session=q&state=open").json["items"].array?.count == 2
        }
        for question in try await api.get("/v1/questions?session=q").json["items"].array ?? [] {
            let path = "/v1/questions/\(question["questionId"].string ?? "")"
            try await api.get(path)
            let isChallenge = question["type"] == "task.didReceiveChallenge"
            let credential: JSON = ["user": "u", "password": "p"]
            try await api.post(
                path + "/answer",
                isChallenge
                    ? ["disposition": "useCredential", "credential": credential] : ["disposition": "cancel"])
            try await api.get(path)
        }
        try await scene.settled("q")
        try await api.get("/v1/sessions/q/events?after=0")
        let space: JSON = ["host": "a.example", "port": 443, "protocol": "https", "authenticationMethod": "HTTPBearer"]
        let made: JSON = ["protectionSpace": space, "credential": ["token": "t"]]
        let credential = try await api.post("/v1/credentials", made).json["credentialIdentifier"].string ?? ""
        try await api.get("/v1/credentials")
        try await api.get("/v1/credentials/\(credential)")
        try await api.delete("/v1/credentials/\(credential)")
        try await api.post("/v1/credentials", made)
        try await api.delete("/v1/credentials?host=a.example&port=443&protocol=https&authenticationMethod=HTTPBearer")
    }

    func launches() async throws {
        try await api.put("/v1/sessions/l")
        try await api.post("/v1/sessions/l/tasks", scene.downloadOf("/missing"))
        let delivery = try await eventually("the launch of l") {
            receiver.deliveries.first { $0.json["data"]["sessionIdentifier"] == "l" }
        }
        let path = "/v1/launches/\(delivery.id ?? "")"
        try await api.get("/v1/launches?session=l")
        try await api.get("/v1/sessions/l")
        try await api.get(path)
        try await api.post(path + "/redeliver")
        try await api.post(
            "/v1/launches/redeliver",
            ["createdAfter": "2026-01-01T00:00:00.000Z", "createdBefore": nil, "session": "l", "state": "pending"])
        try await api.post(path + "/complete")
        try await api.get(path)
        try await api.get("/v1/sessions/l/events?after=0")
    }

    func stalls() async throws {
        scene.origin.serve("/hopeless", .text("x"), always: [.noAnswer(.reset)])
        try await api.put("/v1/sessions/stalled", ["configuration": ["stallInterval": 1]])
        try await api.post("/v1/sessions/stalled/tasks", scene.downloadOf("/hopeless"))
        let launch = try await eventually("the launch of a stall") {
            receiver.deliveries.first { $0.json["data"]["reasons"] == ["tasksStalled"] }
        }
        // The webhook has the event as well.
        #expect(launch.json["data"]["events"].array?.last?["type"] == "session.didStall", "\(launch.json)")
        let events = try await api.get("/v1/sessions/stalled/events?after=0").json["items"].array ?? []
        #expect(events.contains { $0["type"] == "session.didStall" && $0["data"]["errors"].array?.isEmpty == false })
        try await api.get("/v1/launches/\(launch.id ?? "")")
        try await api.delete("/v1/sessions/stalled")
    }

    func refresh() async throws {
        receiver.respond { $0.type == "app.performFetch" ? .json(["result": "newData"]) : .launched }
        try await api.put("/v1/app/background-refresh", ["minimumBackgroundFetchInterval": 3600])
        let launch = try await api.post("/v1/app/background-refresh/simulate").json["launchId"].string ?? ""
        try await eventually("the fetch ends") {
            try await api.get("/v1/launches/\(launch)").json["state"] == "completed"
        }
        try await api.get("/v1/app/background-refresh")
        try await admin.put("/v1/system/conditions", ["backgroundRefreshStatus": "denied"])
        try await receiver.waitForDelivery(type: "app.backgroundRefreshStatusDidChange")
    }

    func system() async throws {
        let window: JSON = ["days": ["monday"], "from": "22:00", "to": "06:00", "bandwidthLimit": 1000]
        try await admin.put("/v1/system/conditions", ["windows": [window], "maximumLoad": 2.5])
        try await admin.get("/v1/system/conditions")
        try await admin.get("/v1/nodes")
        try await admin.get("/metrics")
        for path in [
            "/healthz", "/readyz", "/openapi.json", "/openapi.yaml", "/", "/docs", "/page/icon.svg", "/v1",
            "/problems/not-found",
        ] {
            try await api.with(key: nil).get(path)
            try await api.with(key: nil).send("HEAD", path)
        }
    }

    func ends() async throws {
        try await api.post("/v1/sessions/q/finish-tasks-and-invalidate")
        try await api.post("/v1/sessions/s/invalidate-and-cancel")
        try await eventually("it is invalid") { try await api.get("/v1/sessions/s").json["state"] == "invalid" }
        try await api.get("/v1/sessions/s/events?after=0&limit=1000")
        try await api.delete("/v1/sessions/s")
    }

    /// The last call: no transfer runs afterwards.
    func drain() async throws {
        let node = try await admin.get("/v1/nodes").json["items"][0]["id"].string ?? ""
        try await admin.post("/v1/nodes/\(node)/drain")
    }

    /// Compares the receiver's webhooks with the description.
    func checkWebhooks() {
        let webhooks = Contract.shared.schema.document["webhooks"].object ?? [:]
        let deliveries = receiver.deliveries
        for (type, item) in webhooks {
            let schema = item["post"]["requestBody"]["content"]["application/json"]["schema"]
            let own = deliveries.filter { $0.type == type }
            #expect(!own.isEmpty && !schema.isNull, "\(type)")
            for delivery in own {
                let faults = Contract.shared.schema.faults(of: delivery.json, schema)
                #expect(faults.isEmpty, "\(type): \(faults) \(delivery.json)")
            }
        }
    }
}
