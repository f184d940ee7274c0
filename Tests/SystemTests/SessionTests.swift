import Core
import TestSupport
import Testing

/// docs/concepts.md "The life of a session".
@Suite struct SessionTests {
    @Test func `One call creates a session, and reconnects`() async throws {
        let scene = try await Scene(configuration: nil)
        let body: JSON = ["configuration": ["httpMaximumConnectionsPerHost": 3], "sessionDescription": "mine"]
        let created = try await scene.api.put("/v1/sessions/com.example.bg", body)
        expect(created, 201)
        #expect(created.fields["Location"] == "/v1/sessions/com.example.bg")
        #expect(created.json["incarnation"] == 1 && created.json["state"] == "active")
        #expect(created.json["sessionDescription"] == "mine")
        #expect(created.json["lastEventSeq"] == 0 && created.json["acknowledgedSeq"] == 0)
        #expect(created.json["attachment"].isNull && created.json["launch"].isNull)
        for again in [body, [:], ["configuration": ["httpMaximumConnectionsPerHost": 3]]] as [JSON] {
            let answer = try await scene.api.put("/v1/sessions/com.example.bg", again)
            expect(answer, 200)
            #expect(answer.json["configuration"] == created.json["configuration"])
        }
        expect(try await scene.api.put("/v1/sessions/com.example.bg"), 200)
        let other: JSON = ["configuration": ["httpMaximumConnectionsPerHost": 4, "isDiscretionary": true]]
        let mismatch = try await scene.api.put("/v1/sessions/com.example.bg", other)
        expectProblem(mismatch, 409, "configuration-mismatch")
        for name in ["httpMaximumConnectionsPerHost", "isDiscretionary"] {
            #expect(mismatch.text.contains(name), "\(mismatch.text)")
        }
        #expect(!mismatch.text.contains("timeoutIntervalForRequest"))
    }

    @Test func `The effective configuration is returned`() async throws {
        let scene = try await Scene()
        let configuration = try await scene.session()["configuration"]
        let expected: [String: JSON] = [
            "isDiscretionary": false, "sessionSendsLaunchEvents": true, "httpMaximumConnectionsPerHost": 6,
            "httpAdditionalHeaders": [:], "httpShouldSetCookies": true,
            "httpCookieAcceptPolicy": "onlyFromMainDocumentDomain", "allowsCellularAccess": true,
            "allowsExpensiveNetworkAccess": true, "allowsConstrainedNetworkAccess": true, "waitsForConnectivity": true,
            "tlsMinimumSupportedProtocolVersion": "1.2", "requiresSecureTransport": false, "pinnedPublicKeys": [:],
            "proxy": nil, "authenticationChallenges": "ask", "networkServiceType": "default", "retryPolicy": "robust",
            "bandwidthLimit": nil, "resumableUploads": "auto", "stallInterval": 3600,
            "requestCachePolicy": "reloadIgnoringLocalCacheData",
        ]
        for (name, value) in expected { #expect(configuration[name] == value, "\(name): \(configuration)") }
        #expect(configuration["timeoutIntervalForRequest"].double == 60)
        #expect(configuration["timeoutIntervalForResource"].double == 604_800)
        #expect(Set(configuration.object?.keys.map { $0 } ?? []).count == expected.count + 2)
    }

    @Test func `POST only creates`() async throws {
        let scene = try await Scene()
        expectProblem(try await scene.api.post("/v1/sessions", ["identifier": "s"]), 409, "session-exists")
        let made = try await scene.api.post("/v1/sessions", [:])
        expect(made, 201)
        let identifier = try #require(made.json["identifier"].string)
        #expect(!identifier.isEmpty && made.fields["Location"] == "/v1/sessions/\(identifier)")
        expect(try await scene.api.get("/v1/sessions/\(identifier)"), 200)
        for wrong in ["a b", "", String(repeating: "a", count: 129), "ä", "a/b", "a\u{0}"] {
            let answer = try await scene.api.post("/v1/sessions", ["identifier": .string(wrong)])
            expectProblem(answer, 422, "invalid-value", pointer: "/identifier")
        }
        let longest = String(repeating: "a", count: 118) + ".Az0_-~:@+"
        expect(try await scene.api.post("/v1/sessions", ["identifier": .string(longest)]), 201)
    }

    @Test func `Wrong configurations are refused with a pointer to each fault`() async throws {
        let scene = try await Scene(configuration: nil)
        let faults: [(String, JSON)] = [
            ("timeoutIntervalForRequest", -1), ("timeoutIntervalForResource", "long"),
            ("httpMaximumConnectionsPerHost", 0), ("httpCookieAcceptPolicy", "sometimes"),
            ("tlsMinimumSupportedProtocolVersion", "1.0"), ("isDiscretionary", 1), ("networkServiceType", "fast"),
            ("bandwidthLimit", 0), ("resumableUploads", true), ("retryPolicy", "stubborn"),
        ]
        let all = try await scene.api.put(
            "/v1/sessions/x", ["configuration": .object(Dictionary(uniqueKeysWithValues: faults))])
        expectProblem(all, 422, "invalid-value")
        for (name, _) in faults { #expect(all.pointers.contains("/configuration/\(name)"), "\(name): \(all.text)") }
        for name in ["Host", "content-length", "Connection", "Transfer-Encoding", "Keep-Alive", "TE", "Upgrade"] {
            let configuration: JSON = ["httpAdditionalHeaders": .object([name: "x"])]
            let answer = try await scene.api.put("/v1/sessions/x", ["configuration": configuration])
            expectProblem(answer, 422, "invalid-value", pointer: "/configuration/httpAdditionalHeaders/\(name)")
        }
        let split: JSON = ["httpAdditionalHeaders": ["X-A": "a\r\nX-B: c"]]
        expect(try await scene.api.put("/v1/sessions/x", ["configuration": split]), 422)
        let unknown = try await scene.api.put("/v1/sessions/x", ["configuration": ["isDiscretionery": true]])
        expectProblem(unknown, 422, "unknown-member", pointer: "/configuration/isDiscretionery")
        expect(try await scene.api.get("/v1/sessions/x"), 404)
    }

    @Test func `Description and bandwidth limit can change, and the rest is frozen`() async throws {
        let scene = try await Scene()
        let changed = try await scene.api.patch(
            "/v1/sessions/s", ["sessionDescription": "new", "bandwidthLimit": 1_000_000])
        expect(changed, 200)
        #expect(changed.json["sessionDescription"] == "new")
        #expect(changed.json["configuration"]["bandwidthLimit"] == 1_000_000)
        for name in ["isDiscretionary", "state", "configuration", "identifier"] {
            expectProblem(
                try await scene.api.patch("/v1/sessions/s", .object([name: true])), 422, "unknown-member",
                pointer: "/\(name)")
        }
        expect(try await scene.api.put("/v1/sessions/s", ["configuration": [:]]), 200)
    }

    @Test func `Finishing tasks invalidates the session once they are done`() async throws {
        let scene = try await Scene()
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 10), turns: [[.hold(gate)]])
        let number = try await scene.download("/a")
        try await eventually("it runs") { gate.waiting == 1 }
        let answer = try await scene.api.post("/v1/sessions/s/finish-tasks-and-invalidate")
        expect(answer, 202)
        #expect(answer.json["state"] == "invalidating")
        expectProblem(
            try await scene.api.post("/v1/sessions/s/tasks", scene.downloadOf("/a")), 409, "session-invalidated")
        expectProblem(try await scene.api.put("/v1/sessions/s"), 409, "session-invalidated")
        gate.open()
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        try await eventually("it is invalid") { try await scene.session()["state"] == "invalid" }
        let events = try await scene.events()
        expectSound(events)
        #expect(events.last?["type"] == "session.didBecomeInvalid")
        #expect(events.last?["data"]["error"].isNull == true)
        #expect(events.last.map { $0.has("taskIdentifier") && !$0["taskIdentifier"].isNull } == false)
        expectProblem(
            try await scene.api.post("/v1/sessions/s/tasks", scene.downloadOf("/a")), 409, "session-invalidated")
        expect(try await scene.content(number), 200)
    }

    @Test func `Invalidating and cancelling cancels all tasks`() async throws {
        let scene = try await Scene()
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 10), always: [.hold(gate)])
        let running = try await scene.download("/a")
        let suspended = try await scene.download("/a", ["state": "suspended"])
        let delayed = try await scene.download("/a", ["earliestBeginDate": "2099-01-01T00:00:00Z"])
        try await eventually("it runs") { gate.waiting == 1 }
        expect(try await scene.api.post("/v1/sessions/s/invalidate-and-cancel"), 202)
        for number in [running, suspended, delayed] {
            let task = try await scene.completed(number)
            #expect(task["outcome"] == "cancelled" && task["error"]["code"] == -999, "\(task)")
        }
        try await eventually("it is invalid") { try await scene.session()["state"] == "invalid" }
        let events = try await scene.events()
        expectSound(events)
        #expect(completions(events).count == 3)
        #expect(events.last?["type"] == "session.didBecomeInvalid")
    }

    @Test func `An invalid session is replaced by a new one of its identifier`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .generated(seed: 1, length: 10))
        for _ in 1...2 { try await scene.completed(try await scene.download("/a")) }
        expect(try await scene.api.post("/v1/sessions/s/finish-tasks-and-invalidate"), 202)
        try await eventually("it is invalid") { try await scene.session()["state"] == "invalid" }
        let made = try await scene.api.put("/v1/sessions/s", ["configuration": ["isDiscretionary": true]])
        expect(made, 201)
        #expect(made.json["incarnation"] == 2 && made.json["lastEventSeq"] == 0)
        #expect(made.json["configuration"]["isDiscretionary"] == true)
        #expect(made.json["taskCounts"]["completed"] == 0)
        #expect(try await scene.download("/a", ["state": "suspended"]) == 1)
        #expect(try await scene.events().isEmpty)
    }

    @Test func `A deleted session is gone`() async throws {
        let scene = try await Scene()
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 100_000), turns: [[], [.hold(gate)]])
        try await scene.completed(try await scene.download("/a"))
        try await scene.download("/a")
        try await eventually("it runs") { gate.waiting == 1 }
        expect(try await scene.api.delete("/v1/sessions/s"), 202)
        try await eventually("it is gone") { try await scene.api.get("/v1/sessions/s").status == 404 }
        try await eventually("the transfer ends") { gate.waiting == 0 }
        try await eventually("its files are gone") {
            filesBelow(scene.service.data.file("data/contents")).isEmpty
                && filesBelow(scene.service.data.file("data/partial")).isEmpty
        }
        try await scene.makeSession("s")
        #expect(try await scene.session()["taskCounts"]["completed"] == 0)
    }

    @Test func `Additional headers are sent, and the request's own take precedence`() async throws {
        let scene = try await Scene(configuration: ["httpAdditionalHeaders": ["X-A": "session", "X-B": "session"]])
        scene.origin.serve("/a", .text("x"))
        let request: JSON = ["url": .string(scene.origin.url("/a")), "headers": ["x-a": "request"]]
        try await scene.completed(try await scene.download("/a", ["request": request]))
        let sent = try #require(scene.origin.requests("/a").first)
        #expect(sent.fields.values("X-A") == ["request"])
        #expect(sent.fields.values("X-B") == ["session"])
    }

    @Test func `Cookies are kept for the session, through a restart, until a reset`() async throws {
        let scene = try await Scene(configuration: ["httpCookieAcceptPolicy": "always"])
        scene.origin.serve("/set", .text("x"), turns: [[.header("Set-Cookie", "a=1; Path=/; Max-Age=1000")]])
        scene.origin.serve("/get", .text("x"))
        try await scene.completed(try await scene.download("/set"))
        try await scene.completed(try await scene.download("/get"))
        try await scene.service.restart()
        try await scene.completed(try await scene.download("/get"))
        let reset = try await scene.api.post("/v1/sessions/s/reset")
        expect(reset, 200)
        try await scene.completed(try await scene.download("/get"))
        try await scene.makeSession("t")
        try await scene.completed(try await scene.download("/get", in: "t"), in: "t")
        #expect(scene.origin.requests("/get").map { $0.fields["Cookie"] } == ["a=1", "a=1", nil, nil])
    }

    @Test func `A session without cookies sends none`() async throws {
        let scene = try await Scene(configuration: ["httpShouldSetCookies": false])
        scene.origin.serve("/a", .text("x"), always: [.header("Set-Cookie", "a=1; Path=/")])
        for _ in 1...2 { try await scene.completed(try await scene.download("/a")) }
        #expect(scene.origin.requests("/a").allSatisfy { !$0.fields.contains("Cookie") })
    }

    @Test func `Counts and byte totals add up`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .generated(seed: 1, length: 1000))
        scene.origin.serve("/up", .upload())
        try await scene.completed(try await scene.download("/a"))
        try await scene.completed(try await scene.download("/nowhere"))
        try await scene.completed(try await scene.upload("/up", body: ["text": "hello"]))
        try await scene.download("/a", ["state": "suspended"])
        let session = try await scene.session()
        let counts: [String: JSON] = [
            "suspended": 1, "running": 0, "canceling": 0, "completed": 3, "succeeded": 2, "httpError": 1, "failed": 0,
            "cancelled": 0, "notModified": 0,
        ]
        #expect(session["taskCounts"] == .object(counts), "\(session)")
        #expect(session["countOfBytesReceived"].int ?? 0 >= 1000, "\(session)")
        #expect(session["countOfBytesSent"] == 5, "\(session)")
    }

    @Test func `Every resource survives a kill`() async throws {
        let scene = try await Scene(configuration: ["httpMaximumConnectionsPerHost": 2])
        scene.origin.serve("/a", .generated(seed: 1, length: 100_000))
        let number = try await scene.download("/a")
        try await scene.completed(number)
        try await scene.download("/a", ["state": "suspended", "clientTaskId": "kept"])
        let before = (try await scene.session(), try await scene.events(), try await scene.task(number))
        try await scene.service.restart()
        #expect(try await scene.session()["configuration"] == before.0["configuration"])
        #expect(try await scene.session()["taskCounts"] == before.0["taskCounts"])
        #expect(stable(try await scene.events()) == stable(before.1))
        #expect(try await scene.task(number) == before.2)
        expect(try await scene.api.put("/v1/sessions/s"), 200)
        #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: 100_000))
    }
}
