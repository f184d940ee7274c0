import TestSupport
import Testing

/// The nodes of a service as its operator sees them, and their roles.
@Suite struct NodeTests {
    private static let all: JSON = ["api", "transfer", "launch"]

    /// The only node, once it has published its figures.
    private func node(_ scene: Scene) async throws -> JSON {
        try await eventually("the node is listed") { () -> JSON? in
            let answer = try await scene.admin.get("/v1/nodes")
            expect(answer, 200)
            #expect(answer.json["nextCursor"].isNull)
            let nodes = answer.json["items"].array ?? []
            #expect(nodes.count == 1, "\(nodes)")
            return nodes.first?["roles"].array?.isEmpty == false ? nodes.first : .none
        }
    }

    @Test func `A single service is one node`() async throws {
        let scene = try await Scene(["--max-transfers", "7"], configuration: nil)
        let node = try await node(scene)
        #expect((node["id"] == "local") != TestStore.isOnServer, "\(node)")
        #expect(node["state"] == "active" && node["roles"] == Self.all, "\(node)")
        #expect(node["transfersRunning"] == 0 && node["maximumTransfers"] == 7, "\(node)")
        #expect(node["version"] == Contract.shared.schema.document["info"]["version"], "\(node)")
        #expect(node["url"].string == "http://127.0.0.1:\(scene.service.port)", "\(node)")
        let (start, heartbeat) = (node["startedAt"].string ?? "", node["heartbeatAt"].string ?? "")
        #expect(start.hasPrefix("20") && start <= heartbeat, "\(node)")
    }

    @Test func `The operator lists the existing nodes`() async throws {
        let scene = try await Scene(configuration: nil)
        let path = "/v1/nodes/\(try await node(scene)["id"].string ?? "")/drain"
        expectProblem(try await scene.api.get("/v1/nodes"), 403, "insufficient-scope")
        expectProblem(try await scene.api.post(path), 403, "insufficient-scope")
        expectProblem(try await scene.admin.post("/v1/nodes/nobody/drain"), 404, "not-found")
        expectProblem(try await scene.admin.post(path, ["now": true]), 422, "unknown-member")
        let page = try await scene.admin.get("/v1/nodes?limit=1")
        #expect(page.json["items"].array?.count == 1 && page.json["nextCursor"].isNull, "\(page.text)")
        expectProblem(try await scene.admin.get("/v1/nodes?limit=0"), 422, "invalid-value")
        expect(try await scene.api.get("/readyz"), 200)
        #expect(try await node(scene)["state"] == "active")
    }

    @Test func `A drained node hands over its work, claims no more, and still answers requests`() async throws {
        let scene = try await Scene()
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 10), turns: [[.hold(gate)]])
        scene.origin.serve("/b", .generated(seed: 2, length: 10))
        let held = try await scene.download("/a")
        try await eventually("it is in flight") { gate.waiting == 1 }

        let path = "/v1/nodes/\(try await node(scene)["id"].string ?? "")/drain"
        let drained = try await scene.admin.post(path)
        expect(drained, 202)
        #expect(drained.json["state"] == "draining", "\(drained.text)")
        let back = try await scene.waitFor("is requeued", task: held) { $0["phase"] == "queued" }
        #expect(back["state"] == "running" && back["attempts"]["count"] == 0, "\(back)")
        expectProblem(try await scene.api.get("/readyz"), 503, "shutting-down")
        expect(try await scene.api.get("/healthz"), 200)
        expect(try await scene.admin.post(path), 202)
        try await eventually("no transfer is in flight") { try await node(scene)["transfersRunning"] == 0 }

        let late = try await scene.download("/b")
        let waiting = try await scene.api.get("/v1/sessions/s/tasks/\(late)?wait=1")
        #expect(waiting.json["state"] == "running" && waiting.json["phase"] == "queued", "\(waiting.text)")
        #expect(scene.origin.requests("/a").count == 1 && scene.origin.requests("/b").isEmpty)

        try await scene.service.restart()
        expect(try await scene.api.get("/readyz"), 200)
        #expect(try await node(scene)["state"] == "active")
        for number in [held, late] {
            let task = try await scene.completed(number)
            #expect(task["outcome"] == "succeeded" && task["attempts"]["count"] == 1, "\(task)")
        }
        expectSound(try await scene.events())
    }

    @Test func `A node has one or more of three roles, and fewer than all only with a shared store`() async throws {
        func check(_ words: String..., environment: [String: String] = [:]) async throws -> (Bool, String) {
            let result = try await ServiceProcess.run(["check-config"] + words, environment: environment)
            #expect(result.status == .exited(0) || result.status == .exited(64), "\(result)")
            return (result.status == .exited(0), result.output + result.errors)
        }
        let store = "postgresql://urlsessiond@db.example/urlsessiond"
        for words in ["walk", "api,walk", "API"] {
            let (isTaken, text) = try await check("--roles", words, "--store", store)
            #expect(!isTaken && text.contains("roles: is some of api, transfer and launch"), "\(words): \(text)")
        }
        for words in ["api", "transfer,launch"] {
            let (isTaken, text) = try await check("--roles", words)
            #expect(!isTaken && text.contains("roles: require --store"), "\(text)")
        }
        for (words, told) in [
            ("api", "api"), ("launch,api", "api,launch"), ("transfer,launch,api", "api,transfer,launch"),
        ] {
            let (isTaken, text) = try await check("--store", store, environment: ["URLSESSIOND_ROLES": words])
            #expect(isTaken && text.contains("roles = \(told)\n"), "\(text)")
        }
        let (isTaken, text) = try await check("--roles", "api", "--roles", "transfer,launch")
        #expect(isTaken && text.contains("roles = api,transfer,launch\n"), "\(text)")
    }

    @Test(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
    func `A node acts in its roles only`() async throws {
        let database = try await SharedPostgreSQL.database()
        let receiver = try Receiver { _ in .json(["completed": true]) }
        let data = TemporaryFolder()
        let store = ["--store", database.connection]

        // One after the other in the same place: each has the state of the one before.
        let front = try await Scene(store + ["--roles", "api"], data: data)
        try await front.launches(to: receiver)
        front.origin.serve("/a", .generated(seed: 1, length: 10))
        let number = try await front.download("/a")
        let task = try await front.api.get("/v1/sessions/s/tasks/\(number)?wait=1")
        #expect(task.json["phase"] == "queued" && front.origin.requests("/a").isEmpty, "\(task.text)")
        let node = try await node(front)
        #expect(node["roles"] == ["api"] && node["maximumTransfers"] == 0, "\(node)")
        try await front.service.terminate()

        let back = try await ServiceProcess(store + ["--roles", "transfer,launch"], data: data)
        try await eventually("the app is launched") { !receiver.deliveries.isEmpty }
        #expect(front.origin.requests("/a").count == 1)
        for path in ["/v1/sessions", "/v1/sessions/s/tasks/\(number)", "/v1/app", "/", "/docs"] {
            expectProblem(try await back.api.get(path), 404, "not-found")
        }
        expectProblem(try await back.admin.get("/v1/apps"), 404, "not-found")
        for path in ["/healthz", "/readyz", "/openapi.json", "/openapi.yaml"] {
            expect(try await back.api.with(key: nil).get(path), 200)
        }
        expect(try await back.admin.get("/metrics"), 200)
        let other = Scene(back, front.origin)
        let roles = try await self.node(other)["roles"]
        #expect(roles == ["transfer", "launch"], "\(roles)")
        try await back.terminate()

        try await front.service.start()
        #expect(try await front.completed(number)["outcome"] == "succeeded")
        #expect(try await front.launches().map { $0["state"].string } == ["completed"])
    }

    @Test(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
    func `Of two processes of one name the one that lost its place reports so and ends`() async throws {
        let database = try await SharedPostgreSQL.database()
        let first = try await ServiceProcess(["--store", database.connection])
        let copy = TemporaryFolder()
        try await ChildProcess.run(["/bin/cp", "-a", first.data.file("data"), copy.path])
        let second = try await ServiceProcess(["--store", database.connection], data: copy)
        #expect(try await first.waitForExit() == .exited(70), "\(first.errors)")
        #expect(first.errors.contains("another process has this node's name"), "\(first.errors)")
        expect(try await second.api.put("/v1/sessions/s", [:]), 201)
        #expect(try await second.admin.get("/v1/nodes").json["items"].array?.count == 1)
    }
}
