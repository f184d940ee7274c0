import Core
import TestSupport
import Testing

/// Lines of ``AcceptanceTests`` that no other suite covers.
@Suite struct NaiveTests {
    @Test func `No event of a task follows its completion on any stream`() async throws {
        let scene = try await Scene()
        let streams = try await (
            scene.api.openStream("/v1/sessions/s/events"), scene.api.openStream("/v1/sessions/s/events")
        )
        for number in 0..<20 {
            let path = "/\(number)"
            scene.origin.serve(
                path, .generated(seed: 1, length: 300_000),
                always: [.trickle(size: 30_000, pause: .milliseconds(10 + number))])
        }
        let tasks = (0..<20).map { scene.downloadOf("/\($0)") }
        expect(try await scene.api.post("/v1/sessions/s/tasks/batch", ["tasks": .array(tasks)]), 201)
        for number in [3, 7] { try await scene.api.post("/v1/sessions/s/tasks/\(number)/cancel") }
        try await scene.settled()
        for stream in [streams.0, streams.1] {
            let done = { (events: [EventStream.Event]) in
                events.count { $0.json["type"] == "task.didComplete" } == 20
            }
            let events = try await stream.wait("twenty completions", until: done).map(\.json)
            var over: Set<Int> = []
            for event in events {
                guard let task = event["taskIdentifier"].int else { continue }
                #expect(!over.contains(task), "\(event)")
                if event["type"] == "task.didComplete" { over.insert(task) }
            }
        }
    }

    @Test func `The resource timeout ends a trickling body`() async throws {
        let scene = try await Scene(configuration: ["timeoutIntervalForResource": 3, "timeoutIntervalForRequest": 60])
        scene.origin.serve("/a", .text("x"), always: [.endless, .trickle(size: 2, pause: .milliseconds(200))])
        let task = try await scene.completed(try await scene.download("/a"))
        #expect(task["outcome"] == "failed" && task["error"]["code"] == -1001, "\(task)")
    }

    @Test func `Below the floor of free disk space new content waits and writes are refused`() async throws {
        let data = TemporaryFolder()
        let first = try await Scene(data: data)
        first.origin.serve("/a", .generated(seed: 1, length: 300_000))
        let suspended = try await first.download("/a", ["state": "suspended"])
        try await first.service.terminate()
        let full = try await ServiceProcess(["--free-disk-floor", "4000000000000000000"], data: data)
        expect(try await full.api.get("/readyz"), 503)
        expect(try await full.api.get("/healthz"), 200)
        expectProblem(
            try await full.api.send("POST", "/v1/bodies", body: Content.bytes(seed: 1, length: 100_000)), 507,
            "insufficient-storage")
        expectProblem(
            try await full.api.post("/v1/sessions/s/tasks", first.downloadOf("/a")), 507, "insufficient-storage")
        expect(try await full.api.get("/v1/sessions/s/tasks/\(suspended)"), 200)
        try await full.terminate()
        try await first.service.start()
        expect(try await first.api.get("/readyz"), 200)
        expect(try await first.api.post("/v1/sessions/s/tasks/\(suspended)/resume"), 200)
        #expect(try await first.completed(suspended)["outcome"] == "succeeded")
    }

    @Test func `Held requests end within a second of their clients`() async throws {
        let scene = try await Scene()
        var held: [APIClient.Exchange] = []
        for _ in 0..<50 { held.append(try await scene.api.begin("GET", "/v1/sessions/s/events?wait=60")) }
        try await eventually("they are attached") { try await scene.session()["attachment"]["kind"] == "wait" }
        for exchange in held { exchange.abort() }
        try await eventually("none is attached", within: .seconds(40)) {
            try await scene.session()["attachment"].isNull
        }
    }
}
