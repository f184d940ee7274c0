import Core
import TestSupport
import Testing

/// docs/transfers.md "Retries": the outcomes of responses, and retried ones.
@Suite struct StatusTests {
    private static let quick: JSON = [
        "retryPolicy": ["statusCodes": [503, 429], "maximumAttempts": 4, "initialDelay": 0.1, "maximumDelay": 0.1]
    ]

    struct Case: Sendable, CustomTestStringConvertible {
        var status: Int
        var more: [String: JSON] = [:]
        var outcome: JSON
        var code: JSON = nil
        var testDescription: String { "\(status) \(more.keys.sorted()) → \(outcome)" }
    }

    @Test(arguments: [
        Case(status: 200, outcome: "succeeded"), Case(status: 201, outcome: "succeeded"),
        Case(status: 204, outcome: "succeeded"), Case(status: 304, outcome: "httpError"),
        Case(status: 400, outcome: "httpError"), Case(status: 404, outcome: "httpError"),
        Case(status: 410, outcome: "httpError"), Case(status: 500, outcome: "httpError"),
        Case(status: 999, outcome: "httpError"),
        Case(status: 404, more: ["failOnHTTPError": true], outcome: "failed", code: -1011),
        Case(status: 404, more: ["acceptableStatusCodes": ["200-299", "404"]], outcome: "succeeded"),
        Case(status: 201, more: ["acceptableStatusCodes": ["200"]], outcome: "httpError"),
        Case(status: 200, more: ["failOnHTTPError": true], outcome: "succeeded"),
    ])
    func `The final status decides the outcome`(_ row: Case) async throws {
        let scene = try await Scene(configuration: ["retryPolicy": "apple"])
        let body = row.status == 204 || row.status == 304 ? "" : "the page"
        scene.origin.serve("/a", .text("x"), always: [.status(row.status, [("X-A", "b")], body: body)])
        let number = try await scene.download("/a", row.more)
        let task = try await scene.completed(number)
        #expect(task["outcome"] == row.outcome, "\(task)")
        #expect(task["error"]["code"] == row.code, "\(task)")
        #expect(task["response"]["statusCode"].int == row.status, "\(task)")
        #expect(
            task["response"]["headers"].object?.contains { $0.key.asciiLowercased == "x-a" && $0.value == "b" } == true)
        #expect(scene.origin.requests.count == 1)
        if row.outcome != "failed" {
            let content = try await scene.content(number)
            #expect(content.status == 200 && content.text == body, "\(content.status) \(content.text)")
        }
        let events = try await scene.events()
        expectSound(events)
        #expect(completions(events)[number]?["outcome"] == row.outcome)
        if row.outcome == "failed" { #expect(!events.contains { $0["type"] == "task.didFinishDownloading" }) }
    }

    @Test func `A 304 to the app's entity tag is notModified`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .generated(seed: 1, length: 10))
        let number = try await scene.download("/a", ["ifNoneMatch": "\"v1\""])
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "notModified" && task["error"].isNull, "\(task)")
        #expect(scene.origin.requests.first?.fields["If-None-Match"] == "\"v1\"")
        let changed = try await scene.download("/a", ["ifNoneMatch": "\"v0\""])
        #expect(try await scene.completed(changed)["outcome"] == "succeeded")
    }

    @Test func `A transient status is retried, without a stored event`() async throws {
        let scene = try await Scene(configuration: Self.quick)
        scene.origin.serve("/a", .generated(seed: 1, length: 10), turns: [[.status(503)], [.status(429)]])
        let number = try await scene.download("/a")
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded" && task["attempts"]["count"] == 3, "\(task)")
        let types = try await scene.events().compactMap { $0["type"].string }
        #expect(!types.contains("task.willRetry") && types.last == "task.didComplete", "\(types)")
    }

    @Test func `If every retry gets a status, the outcome is that status`() async throws {
        let scene = try await Scene(configuration: Self.quick)
        scene.origin.serve("/a", .text("x"), always: [.status(503, body: "busy")])
        let number = try await scene.download("/a")
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "httpError" && task["error"].isNull, "\(task)")
        #expect(task["response"]["statusCode"] == 503 && task["attempts"]["count"] == 4, "\(task)")
        #expect(scene.origin.requests.count == 4)
        #expect(try await scene.content(number).text == "busy")
    }

    @Test func `Apple's policy accepts the first status`() async throws {
        let scene = try await Scene(configuration: ["retryPolicy": "apple"])
        scene.origin.serve("/a", .text("x"), always: [.status(503)])
        let number = try await scene.download("/a")
        #expect(try await scene.completed(number)["outcome"] == "httpError")
        #expect(scene.origin.requests.count == 1)
    }

    @Test func `The robust policy retries by itself`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .text("x"), turns: [[.status(500)], [.status(408)]])
        let number = try await scene.download("/a")
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded" && task["attempts"]["count"] == 3, "\(task)")
    }

    @Test func `Retry-After is honoured, and resume retries at once`() async throws {
        let scene = try await Scene(configuration: Self.quick)
        scene.origin.serve("/a", .text("x"), turns: [[.status(503, [("Retry-After", "2")])]])
        try await scene.completed(try await scene.download("/a"))
        let requests = scene.origin.requests("/a")
        #expect(requests[1].time - requests[0].time >= .milliseconds(1900))
        scene.origin.serve("/b", .text("x"), turns: [[.status(500, [("Retry-After", "1000")])]])
        try await scene.makeSession("t", ["retryPolicy": ["statusCodes": [500], "maximumAttempts": 3]])
        let number = try await scene.download("/b", in: "t")
        let waiting = try await scene.waitFor("waits", task: number, in: "t") { $0["phase"] == "retryWait" }
        #expect(waiting["attempts"]["nextAt"].string != nil && waiting["waitingFor"][0]["until"].string != nil)
        expect(try await scene.api.post("/v1/sessions/t/tasks/\(number)/resume"), 200)
        #expect(try await scene.completed(number, in: "t")["outcome"] == "succeeded")
    }

    @Test func `An origin with a 429 is paused for all sessions of the app`() async throws {
        let scene = try await Scene(configuration: Self.quick)
        scene.origin.serve("/a", .text("x"), turns: [[.status(429, [("Retry-After", "8")])]])
        scene.origin.serve("/b", .text("x"))
        try await scene.makeSession("t")
        let first = try await scene.download("/a")
        try await scene.waitFor("waits", task: first) { $0["phase"] == "retryWait" }
        let second = try await scene.download("/b", in: "t")
        try await scene.completed(first)
        try await scene.completed(second, in: "t")
        let start = try #require(scene.origin.requests("/a").first).time
        #expect(try #require(scene.origin.requests("/b").first).time - start >= .milliseconds(7500))
    }

    @Test func `The pause of an origin outlasts a kill`() async throws {
        let scene = try await Scene(configuration: Self.quick)
        scene.origin.serve("/a", .text("x"), turns: [[.status(429, [("Retry-After", "600")])]])
        try await scene.makeSession("t")
        let first = try await scene.download("/a")
        try await scene.waitFor("waits", task: first) { $0["phase"] == "retryWait" }
        try await scene.service.restart()
        let second = try await scene.download("/b", in: "t")
        let waiting = try await scene.waitFor("waits", task: second, in: "t") {
            $0["waitingFor"][0]["kind"] == "originPause"
        }
        #expect(waiting["phase"] == "queued" && waiting["waitingFor"][0]["until"].string != nil, "\(waiting)")
        #expect(scene.origin.requests("/b").isEmpty)
    }

    @Test func `A refused connection is retried until it succeeds`() async throws {
        let scene = try await Scene(configuration: ["retryPolicy": ["initialDelay": 0.1, "maximumDelay": 0.3]])
        let gone = try OriginServer()
        gone.stop()
        let request: JSON = ["url": .string(gone.url("/a"))]
        let number = try await scene.download("/a", ["request": request])
        try await scene.waitFor("failed twice", task: number) { $0["attempts"]["count"].int ?? 0 >= 2 }
        let waiting = try await scene.task(number)
        #expect(waiting["state"] == "running" && waiting["outcome"].isNull, "\(waiting)")
        // The port stays the first server's until that is released.
        let back = try OriginServer(port: gone.port, serving: ["/a": .text("x")])
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(back.requests.count == 1 && gone.requests.isEmpty)
    }

    @Test func `A content that is too large ends with -1103`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/announced", .generated(seed: 1, length: 100_000))
        scene.origin.serve("/endless", .text("x"), always: [.endless])
        scene.origin.serve("/fits", .generated(seed: 1, length: 5000))
        for path in ["/announced", "/endless"] {
            let task = try await scene.completed(try await scene.download(path, ["maximumContentLength": 5000]))
            #expect(task["outcome"] == "failed" && task["error"]["code"] == -1103, "\(task)")
            #expect(task["content"].isNull)
        }
        let task = try await scene.completed(try await scene.download("/fits", ["maximumContentLength": 5000]))
        #expect(task["outcome"] == "succeeded")
    }

    @Test func `A wrong digest restarts once, then fails`() async throws {
        let scene = try await Scene(configuration: ["retryPolicy": ["initialDelay": 0.1, "maximumDelay": 0.1]])
        scene.origin.serve("/a", .generated(seed: 1, length: 100_000))
        func digest(_ value: String, _ algorithm: String = "sha-256") -> [String: JSON] {
            ["expectedDigest": ["algorithm": .string(algorithm), "value": .string(value)]]
        }
        let right = Content.sha256(seed: 1, length: 100_000)
        let good = try await scene.completed(try await scene.download("/a", digest(right)))
        #expect(good["outcome"] == "succeeded", "\(good)")
        #expect(good["expectedDigest"]["value"].string == right)
        let bad = try await scene.completed(try await scene.download("/a", digest(Content.sha256(seed: 2, length: 1))))
        #expect(bad["outcome"] == "failed" && bad["error"]["code"] == -1011, "\(bad)")
        #expect(bad["error"]["underlying"]["domain"] == "urlsessiond", "\(bad)")
        #expect(bad["error"]["underlying"]["code"] == "digest-mismatch", "\(bad)")
        #expect(scene.origin.requests.count == 3)
        scene.origin.serve(
            "/b", .generated(seed: 2, length: 100),
            turns: [[.become(.generated(seed: 3, length: 100))], [.become(.generated(seed: 2, length: 100))]])
        let healed = try await scene.completed(
            try await scene.download("/b", digest(Content.sha256(seed: 2, length: 100))))
        #expect(healed["outcome"] == "succeeded", "\(healed)")
    }

    @Test func `The egress policy refuses private addresses`() async throws {
        let origin = try OriginServer()
        let service = try await ServiceProcess(dev: false)
        let key = String(decoding: readFile(service.data.file("data/admin.key")) ?? [], as: UTF8.self).prefix {
            $0 != "\n"
        }
        let admin = service.api.with(key: String(key))
        let app = try #require(try await admin.post("/v1/apps", ["identifier": "a"]).json["apiKey"].string)
        let api = service.api.with(key: app)
        expect(try await api.put("/v1/sessions/s"), 201)
        let urls = [
            origin.url("/a"), "http://localhost:\(origin.port)/", "http://[::1]/", "http://10.0.0.1/",
            "http://169.254.169.254/latest/", "http://192.168.1.1/", "http://[fe80::1]/", "http://0.0.0.0/",
            "http://2130706433:\(origin.port)/", "http://0x7f.1:\(origin.port)/", "http://[::ffff:127.0.0.1]/",
            "http://224.0.0.1/", "http://100.64.0.1/", "http://[64:ff9b::7f00:1]/",
        ]
        var details: Set<String> = []
        for url in urls {
            let answer = try await api.post(
                "/v1/sessions/s/tasks", ["kind": "download", "request": ["url": .string(url)]])
            expect(answer, 201)
            let number = answer.json["taskIdentifier"].int ?? 0
            let task = try await eventually("\(url) completes") { () -> JSON? in
                let task = try await api.get("/v1/sessions/s/tasks/\(number)?wait=5").json
                return task["state"] == "completed" ? task : .none
            }
            #expect(task["outcome"] == "failed" && task["error"]["code"] == -1022, "\(url): \(task)")
            #expect(task["error"]["policy"] == "egress", "\(url): \(task)")
            details.insert(task["error"]["localizedDescription"].string ?? "")
        }
        #expect(details.count == 1, "\(details)")
        #expect(origin.requests.isEmpty && origin.openConnections == 0)
    }

    @Test func `The service's own listener is no origin`() async throws {
        let scene = try await Scene()
        let url = "http://127.0.0.1:\(scene.service.port)/healthz"
        let task = try await scene.completed(try await scene.download("/", ["request": ["url": .string(url)]]))
        #expect(task["error"]["code"] == -1022 && task["error"]["policy"] == "egress", "\(task)")
    }

    @Test func `Plain http is refused if transport must be secure`() async throws {
        let scene = try await Scene(configuration: ["requiresSecureTransport": true])
        let task = try await scene.completed(try await scene.download("/a"))
        #expect(task["outcome"] == "failed" && task["error"]["code"] == -1022, "\(task)")
        #expect(scene.origin.requests.isEmpty)
    }
}
