import TestSupport
import Testing

/// The operator's log: the lines of each task, and of each request if configured.
@Suite struct LogTests {
    private func lines(_ scene: Scene, _ matches: (JSON) -> Bool) -> [JSON] {
        scene.service.errors.split(separator: "\n").compactMap { try? JSON(parsing: Array($0.utf8)) }.filter(matches)
    }

    @Test func `The log lines of a task have the names that its app uses`() async throws {
        let scene = try await Scene(configuration: [
            "retryPolicy": ["statusCodes": [503], "maximumAttempts": 4, "initialDelay": 0.1, "maximumDelay": 0.1]
        ])
        scene.origin.serve("/first", .text("x"))
        scene.origin.serve("/a", .text("bytes"), turns: [[.status(503)]])
        try await scene.completed(try await scene.download("/first"))
        let number = try await scene.download("/a?secret=1", ["clientTaskId": "mine"])
        try await scene.completed(number)
        func story() -> [JSON] { lines(scene) { $0["clientTaskId"] == "mine" } }
        try await eventually("the delegate receives the completion") {
            story().contains { $0["message"] == "task completed" }
        }
        let told = story()
        #expect(
            told.map { $0["message"].string } == [
                "task created", "task started", "task will be retried", "task started", "task completed",
            ])
        for line in told {
            #expect(line["level"] == "info", "\(line)")
            #expect(line["app"] == "dev" && line["session"] == "s" && line["task"] == .integer(number), "\(line)")
        }
        try #require(told.count == 5)
        #expect(told[0]["kind"] == "download")
        #expect(told[2]["status"] == 503 && told[2]["nextAt"].string?.hasSuffix("Z") == true, "\(told[2])")
        #expect(told[3]["attempt"] == 2)
        #expect(told[4]["outcome"] == "succeeded" && told[4]["status"] == 200, "\(told[4])")
        #expect(!scene.service.errors.contains("secret"))
    }

    @Test func `The log has the address for metrics`() async throws {
        let scene = try await Scene(["--metrics-listen", "127.0.0.1:0"], nodes: 1)
        let line = try await eventually("it is logged") {
            lines(scene) { $0["message"] == "listening for metrics" }.first
        }
        let port = try #require(line["address"].string?.split(separator: ":").last.flatMap { UInt16($0) })
        expect(try await APIClient(port: port).with(key: nil).get("/metrics"), 200)
    }

    @Test func `A stop right after a start logs no warning`() async throws {
        for _ in 0..<3 {
            let service = try await ServiceProcess()
            try await service.terminate()
            #expect(!service.errors.contains("warning"), "\(service.errors)")
        }
    }

    @Test func `The last log line of a cancelled task has the reason`() async throws {
        let scene = try await Scene()
        let task = try await scene.create(scene.downloadOf("/a", ["state": "suspended"]))
        let number = try #require(task["taskIdentifier"].int)
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/cancel"), 202)
        try await eventually("the delegate receives the completion") {
            lines(scene) {
                $0["message"] == "task completed" && $0["outcome"] == "cancelled" && $0["error"] == "cancelled"
            }
            .count == 1
        }
    }

    @Test func `Each request is logged at debug level with its X-Request-Id`() async throws {
        let scene = try await Scene(["--log-level", "debug"])
        let answer = try await scene.api.get(
            "/v1/sessions/none?limit=secret", headers: [("X-Request-Id", "my-request")])
        #expect(answer.status == 422 || answer.status == 404)
        let line = try await eventually("the request is reported") { () -> JSON? in
            lines(scene) { $0["request"] == "my-request" && $0["message"] == "request answered" }.first
        }
        #expect(line["level"] == "debug" && line["method"] == "GET" && line["path"] == "/v1/sessions/none", "\(line)")
        #expect(line["status"] == .integer(answer.status))
        #expect(!scene.service.errors.contains("limit=secret"))
    }
}
