import TestSupport
import Testing

/// docs/transfers.md "Concurrency" and the limits of a session, seen from the origin.
@Suite struct LimitTests {
    /// Concurrent downloads, each in its own session.
    private struct Flow {
        let scene: Scene
        let tasks: [(session: String, number: Int)]

        /// The received bytes of each.
        func received() async throws -> [Int] {
            var counts: [Int] = []
            for (session, number) in tasks {
                counts.append(try await scene.task(number, in: session)["countOfBytesReceived"].int ?? 0)
            }
            return counts
        }

        /// The total rate in bytes a second, over three seconds or more.
        func rate() async throws -> Double {
            let (start, before) = (ContinuousClock.now, try await received())
            try await Task.sleep(for: .seconds(3))
            let grown = try await received().reduce(0, +) - before.reduce(0, +)
            return Double(grown) / ((ContinuousClock.now - start) / .seconds(1))
        }
    }

    @Test func `A session's bandwidth limit applies, and can be changed during a transfer`() async throws {
        let scene = try await Scene(configuration: ["bandwidthLimit": 100_000])
        let length = 8_000_000
        var tasks: [(String, Int)] = []
        for path in ["/a", "/b"] {
            scene.origin.serve(path, .generated(seed: 1, length: length))
            tasks.append(("s", try await scene.download(path)))
        }
        let flow = Flow(scene: scene, tasks: tasks)
        try await eventually("both flow") { try await flow.received().allSatisfy { $0 > 0 } }
        // The first second's bytes may arrive at once.
        let low = try await flow.rate()
        #expect(low > 10_000 && low < 220_000, "\(low) bytes a second")
        expect(try await scene.api.patch("/v1/sessions/s", ["bandwidthLimit": 600_000]), 200)
        try await eventually("more flows") { try await flow.rate() > 280_000 }
        let high = try await flow.rate()
        #expect(high < 1_300_000, "\(high) bytes a second")
        expect(try await scene.api.patch("/v1/sessions/s", ["bandwidthLimit": nil]), 200)
        for (_, number) in tasks {
            let task = try await scene.completed(number)
            #expect(task["content"]["digest"]["value"].string == Content.sha256(seed: 1, length: length))
        }
    }

    @Test func `A time window limits all sessions together, from its begin to its end`() async throws {
        let scene = try await Scene(configuration: nil)
        scene.origin.serve(
            "/a", .generated(seed: 2, length: 60_000_000), always: [.trickle(size: 20_000, pause: .milliseconds(10))])
        var tasks: [(String, Int)] = []
        for session in ["s", "t"] {
            try await scene.makeSession(session)
            tasks.append((session, try await scene.download("/a", in: session)))
        }
        let flow = Flow(scene: scene, tasks: tasks)
        try await eventually("both flow unhindered") { try await flow.rate() > 500_000 }
        let window: JSON = ["from": "00:00", "to": "24:00", "bandwidthLimit": 100_000]
        expect(try await scene.admin.put("/v1/system/conditions", ["windows": [window]]), 200)
        try await eventually("the window holds both back") { try await flow.rate() < 220_000 }
        let before = try await flow.received()
        #expect(try await flow.rate() < 220_000)
        // Slowed down, but not stopped.
        try await eventually("both go on") {
            try await zip(flow.received(), before).allSatisfy { $0 > $1 }
        }
        expect(try await scene.admin.put("/v1/system/conditions", [:]), 200)
        try await eventually("they flow again") { try await flow.rate() > 500_000 }
        for session in ["s", "t"] {
            expect(try await scene.api.post("/v1/sessions/\(session)/invalidate-and-cancel"), 202)
        }
    }

    @Test(.enabled(if: Nginx.isAvailable, "nginx and openssl are needed"))
    func `With HTTP/2 a host has at most the session's limit of transfers at a time`() async throws {
        let scene = try await Scene(configuration: ["httpMaximumConnectionsPerHost": 3])
        let nginx = try await Nginx(
            "location / { proxy_pass http://127.0.0.1:\(scene.origin.port); proxy_buffering off; }")
        let gate = Gate()
        scene.origin.serve("/a", .text("content"), always: [.hold(gate)])
        let space: JSON = [
            "host": "127.0.0.1", "port": .integer(Int(nginx.port(.http2))), "protocol": "https",
            "authenticationMethod": "ServerTrust",
        ]
        let credential: JSON = ["trustPublicKey": .string(try await nginx.pin())]
        expect(try await scene.api.post("/v1/credentials", ["protectionSpace": space, "credential": credential]), 201)
        let task: JSON = ["kind": "download", "request": ["url": .string(nginx.url("/a", .http2))]]
        let made = try await scene.api.post(
            "/v1/sessions/s/tasks/batch", ["tasks": .array(Array(repeating: task, count: 12))])
        expect(made, 201)
        try await eventually("three are under way") { gate.waiting == 3 }
        try await stays("no more than three", for: .seconds(1)) { gate.waiting == 3 }
        gate.open()
        let session = try await scene.settled()
        #expect(session["taskCounts"]["succeeded"] == 12 && scene.origin.inFlight.peak == 3, "\(session)")
        let metrics = try await scene.events().filter { $0["type"] == "task.didFinishCollectingMetrics" }
        #expect(metrics.allSatisfy { $0["data"]["transactionMetrics"][0]["networkProtocolName"] == "h2" })
        #expect(metrics.contains { $0["data"]["transactionMetrics"][0]["isReusedConnection"] == true })
    }

    @Test func `A session with many tasks at a host leaves slots to another session there`() async throws {
        let scene = try await Scene(["--max-transfers-per-host", "2"])
        try await scene.makeSession("t")
        let gate = Gate()
        scene.origin.serve("/a", .text("x"), always: [.hold(gate), .delayHead(.milliseconds(50))])
        scene.origin.serve("/b", .text("x"))
        let many = try await scene.api.post(
            "/v1/sessions/s/tasks/batch?return=minimal",
            ["tasks": .array(Array(repeating: scene.downloadOf("/a"), count: 60))])
        expect(many, 201)
        try await scene.origin.waitForRequests(2, path: "/a")
        let other = try await scene.download("/b", in: "t")
        gate.open()
        try await scene.completed(other, in: "t")
        let before = scene.origin.requests.prefix { $0.path == "/a" }.count
        #expect(before < 40, "\(before) of the other session's 60 came first")
        #expect(scene.origin.inFlight.peak <= 2)
        #expect(try await scene.settled()["taskCounts"]["succeeded"] == 60)
    }

    @Test func `A head of 200 KiB is read, and one of 300 KiB fails the task`() async throws {
        let scene = try await Scene()
        for (path, lines) in [("/large", 2000), ("/huge", 3000)] {
            let fields = (0..<lines).map { "X-\($0 + 1000): \(String(repeating: "v", count: 92))\r\n" }.joined()
            scene.origin.serve(
                path, .text("x"), always: [.raw("HTTP/1.1 200 OK\r\n\(fields)Content-Length: 2\r\n\r\nok")])
        }
        let large = try await scene.completed(try await scene.download("/large"))
        #expect(large["outcome"] == "succeeded" && large["response"]["headers"].object?.count ?? 0 > 100)
        #expect(large["response"]["droppedHeaders"].array?.isEmpty == false)
        let huge = try await scene.completed(try await scene.download("/huge"))
        #expect(huge["outcome"] == "failed" && huge["error"]["code"] == -1017, "\(huge["error"])")
        #expect(scene.origin.requests("/huge").count == 1)
    }
}
