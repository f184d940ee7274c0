import Base
import Core
import Glibc
import TestSupport
import Testing

/// docs/scaling.md "Failover": the database server fails, no task is lost or doubled, and the service reports the
/// outage.
@Suite(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
struct StoreOutageTests {
    private static let configuration: JSON = ["retryPolicy": ["initialDelay": 0.1, "maximumDelay": 0.2]]

    /// The first content is stored in the database, the second in a file.
    private static let lengths = ["/d": 20_000, "/f": 80_000]

    /// Creates downloads of contents that take a moment.
    private static func order(_ count: Int, _ scene: Scene) async throws {
        for (path, length) in lengths {
            scene.origin.serve(
                path, .generated(seed: 1, length: length),
                always: [.trickle(size: length / 4, pause: .milliseconds(60))])
        }
        let tasks = (0..<count).map { scene.downloadOf($0 % 2 == 0 ? "/d" : "/f", ["clientTaskId": "\($0)"]) }
        for start in stride(from: 0, to: count, by: 100) {
            let some = Array(tasks[start..<min(start + 100, count)])
            try await eventually("tasks from \(start) are accepted") {
                let answer = try await scene.api.post("/v1/sessions/s/tasks/batch", ["tasks": .array(some)])
                if answer.status != 503 { expect(answer, 201) }
                return answer.status != 503
            }
        }
    }

    private static func requests(_ scene: Scene) -> Int {
        lengths.keys.reduce(0) { $0 + scene.origin.requests($1).count }
    }

    /// Waits for the end: each task has succeeded and has one completion, the log has no gap, and each content is
    /// complete.
    private static func expectEachOnce(_ ordered: Int, others: Int = 0, _ scene: Scene) async throws {
        let count = ordered + others
        let session = try await scene.settled()
        #expect(session["taskCounts"]["succeeded"].int == count, "\(session["taskCounts"])")
        let events = try await scene.events()
        expectSound(events)
        let completions = completions(events)
        #expect(completions.count == count && completions.values.allSatisfy { $0["outcome"] == "succeeded" })
        let tasks = try await scene.api.get("/v1/sessions/s/tasks?limit=1000").json["items"].array ?? []
        let digests = tasks.compactMap { $0["content"]["digest"]["value"].string }
        for length in lengths.values {
            let digest = Content.sha256(seed: 1, length: length)
            #expect(digests.count { $0 == digest } == ordered / 2, "\(length)")
        }
        // The small contents are rows, and the large ones are equal.
        #expect(filesBelow(scene.service.data.file("data/contents")).count == 1)
        try await eventually("no partial file is left") { filesBelow(scene.service.data.file("data/partial")).isEmpty }
    }

    // MARK: A server that ends

    @Test func `A server that is killed and returns fails no download`() async throws {
        let server = try await PostgreSQL()
        let database = try await server.database()
        let receiver = try Receiver { _ in .json(["completed": true]) }
        let scene = try await Scene(["--store", database.connection], configuration: Self.configuration)
        try await scene.launches(to: receiver)
        try await Self.order(200, scene)
        for kill in 1...3 {
            try await eventually("downloads before kill \(kill)") { Self.requests(scene) >= kill * 45 }
            server.kill()
            try await server.start()
        }
        try await Self.expectEachOnce(200, scene)
        try await eventually("the launch is completed") {
            try await scene.launches().map { $0["state"].string } == ["completed"]
        }
        #expect(Set(receiver.deliveries.map(\.type)) == ["session.handleEvents"])
        #expect(Set(receiver.deliveries.map(\.id)).count == 1 && receiver.deliveries.count <= 2)
        #expect(try await scene.events().filter { $0["type"] == "session.didFinishEvents" }.count == 1)
        #expect(Self.requests(scene) == 200, "fetched again")
    }

    @Test func `While the server is away the service reports it, and transfers continue`() async throws {
        let server = try await PostgreSQL()
        let database = try await server.database()
        let scene = try await Scene(["--store", database.connection], configuration: Self.configuration)
        let content = LargeContent(seed: 2, length: 20 << 20)
        let gate = Gate()
        scene.origin.serve(
            "/large", Resource(.large(content), etag: "\"v\""), always: [.holdBody(after: 1 << 20, gate)])
        let large = try await scene.download("/large")
        let kept = try await scene.download("/kept", ["state": "suspended", "clientTaskId": "kept"])
        try await eventually("it is in flight") { gate.waiting == 1 }

        server.kill()
        gate.open()
        let order = scene.downloadOf("/kept", ["state": "suspended", "clientTaskId": "refused"])
        async let refused = scene.api.post("/v1/sessions/s/tasks", order)
        async let readiness = scene.api.get("/readyz")
        for path in ["/v1/sessions/s", "/v1/sessions/s/tasks", "/v1/sessions/s/events?after=0", "/v1/app"] {
            let answer = try await scene.api.get(path)
            expectProblem(answer, 503, "store-unavailable")
            #expect(answer.fields["Retry-After"] == "5")
        }
        try await eventually("the download continues") {
            scene.origin.requests("/large").last?.bytesSent ?? 0 > 6 << 20
        }
        let answer = try await refused
        expectProblem(answer, 503, "store-unavailable")
        #expect(answer.fields["Retry-After"] == "5")
        expectProblem(try await readiness, 503, "store-unavailable")
        expect(try await scene.api.get("/healthz"), 200)
        let listed = try await scene.admin.get("/v1/apps")
        expectProblem(listed, 503, "store-unavailable")

        try await server.start()
        try await eventually("it is ready again", within: .seconds(20)) {
            try await scene.api.get("/readyz").status == 200
        }
        let tasks = try await scene.api.get("/v1/sessions/s/tasks").json["items"].array ?? []
        #expect(Set(tasks.compactMap { $0["taskIdentifier"].int }) == [large, kept])
        #expect(try await scene.api.post("/v1/sessions/s/tasks", order).status == 201)
        let task = try await scene.completed(large)
        #expect(task["content"]["digest"]["value"].string == content.sha256, "\(task)")
        #expect(scene.origin.requests("/large").count == 1, "fetched again")
        expectSound(try await scene.events())
    }

    @Test func `A download into the bucket of contents waits for the server with its first part`() async throws {
        let (server, store) = (try await PostgreSQL(), try ObjectStore())
        let database = try await server.database()
        let scene = try await Scene(
            ["--store", database.connection] + store.contents,
            configuration: ["retryPolicy": ["maximumAttempts": 1]], environment: SeaweedFS.environment)
        let (length, gate) = (20 << 20, Gate())
        scene.origin.serve("/large", .generated(seed: 1, length: length), always: [.holdBody(after: 1 << 20, gate)])
        let number = try await scene.download("/large")
        try await eventually("it is in flight") { gate.waiting == 1 }
        server.kill()
        gate.open()
        // Longer than a commit waits for the server.
        try await stays("nothing is fetched again", for: .seconds(12)) { scene.origin.requests("/large").count == 1 }
        try await server.start()
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(task["content"]["digest"]["value"].string == Content.sha256(seed: 1, length: length))
        #expect(task["attempts"]["count"].int == 1 && scene.origin.requests("/large").count == 1, "\(task)")
    }

    // MARK: Places

    @Test func `A killed service claims its place again at once`() async throws {
        let database = try await SharedPostgreSQL.database()
        let scene = try await Scene(["--store", database.connection], configuration: Self.configuration)
        try await Self.order(40, scene)
        for _ in 1...3 {
            try await scene.service.kill()
            // Shorter than a lease.
            try await scene.service.start(within: .seconds(12))
        }
        try await Self.expectEachOnce(40, scene)
    }

    @Test func `A second service waits for the end of the first`() async throws {
        let database = try await SharedPostgreSQL.database()
        let first = try await ServiceProcess(["--store", database.connection])
        let key = first.data.file("data/master.key")
        let other = TemporaryFolder()
        let arguments = ["--store", database.connection, "--master-key-file", key]
        func refusal() async throws -> String {
            let words = ["serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir", other.file("data")]
            let result = try await ServiceProcess.run(words + arguments)
            #expect(result.status == .exited(75), "\(result)")
            return result.errors
        }
        let refused = try await refusal()
        #expect(refused.contains("holds this store") && refused.contains("stop it first"), "\(refused)")
        expect(try await first.api.put("/v1/sessions/s", [:]), 201)

        // A service that ends leaves its place; the place of a dead one is kept for its lease.
        try await first.terminate()
        let second = try await ServiceProcess(arguments, data: other)
        expect(try await second.api.get("/v1/sessions/s"), 200)
        try await second.kill()
        await #expect(throws: ServiceProcess.NotListening.self) { try await first.start() }
        #expect(first.errors.contains("wait 15 seconds"), "\(first.errors)")
        try await eventually("its lease has expired", within: .seconds(30)) {
            try await Task.sleep(for: .seconds(1))
            do { try await first.start() } catch is ServiceProcess.NotListening { return false }
            return true
        }
        expect(try await first.api.get("/v1/sessions/s"), 200)
    }

    @Test func `A service with another master key leaves the place unchanged`() async throws {
        let database = try await SharedPostgreSQL.database()
        let first = try await ServiceProcess(["--store", database.connection])
        #expect(try await first.terminate() == .exited(0), "\(first.errors)")
        let other = TemporaryFolder()
        let result = try await ServiceProcess.run([
            "serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir", other.file("data"), "--store",
            database.connection,
        ])
        #expect(result.status == .exited(73), "\(result), \(first.errors)")
        for part in ["master.key", "restore", "--new-master-key"] { #expect(result.errors.contains(part), "\(result)") }
        #expect(readFile(other.file("data/master.key")) == nil, "another key was made")
        try await first.start(within: .seconds(12))
    }

    // MARK: Failover

    @Test func `A promoted standby has every acknowledged commit, and the service continues`() async throws {
        let primary = try await PostgreSQL()
        let database = try await primary.database()
        let standby = try await primary.standby()
        let store = database.connection(primary.port, standby.port)
        let scene = try await Scene(["--store", store], configuration: Self.configuration)
        try await Self.order(150, scene)
        let acknowledged = Locked<[Int]>([])
        async let ordering: Void = {
            scene.origin.serve("/late", .text("late"))
            for _ in 1...100 {
                let answer = try await scene.api.post("/v1/sessions/s/tasks", scene.downloadOf("/late"))
                guard answer.status == 201 else {
                    expectProblem(answer, 503, "store-unavailable")
                    return
                }
                acknowledged.withLock { $0.append(answer.json["taskIdentifier"].int ?? 0) }
                try await Task.sleep(for: .milliseconds(50))
            }
        }()
        try await eventually("downloads have begun") { Self.requests(scene) >= 60 }
        primary.kill()
        try await standby.promote()
        try await eventually("it is ready again", within: .seconds(30)) {
            try await scene.api.get("/readyz").status == 200
        }
        try await ordering
        let late = acknowledged.withLock { $0 }
        #expect(Set(late).count == late.count)
        for number in late { try await scene.completed(number) }
        try await Self.expectEachOnce(150, others: late.count, scene)
        #expect(Self.requests(scene) == 150, "fetched again")
    }

    // MARK: The network

    @Test func `Connections that are cut at any moment fail no download`() async throws {
        let server = try await PostgreSQL()
        let database = try await server.database()
        let proxy = try CuttingProxy(to: server.port)
        let store = database.connection(proxy.port)
        let scene = try await Scene(["--store", store], configuration: Self.configuration)
        var random = SeededRandom(seed: 6)
        async let ordered: Void = Self.order(300, scene)
        var cuts = 0
        try await eventually("all have begun", within: .seconds(120)) {
            try await Task.sleep(for: .milliseconds(Int.random(in: 10...250, using: &random)))
            proxy.cut()
            cuts += 1
            return Self.requests(scene) >= 300
        }
        try await ordered
        try await Self.expectEachOnce(300, scene)
        #expect(Self.requests(scene) == 300, "fetched again")
        #expect(cuts > 5)
    }

    @Test(.enabled(if: PgBouncer.isAvailable, "PgBouncer is not installed: scripts/install-packages test"))
    func `The service works behind a pooler that gives each transaction another connection`() async throws {
        let server = try await PostgreSQL()
        let database = try await server.database()
        let pooler = try await PgBouncer(to: server)
        let store = database.connection(pooler.port)
        let scene = try await Scene(["--store", store, "--store-pooled"], configuration: Self.configuration)
        let stream = try await scene.api.openStream("/v1/sessions/s/events")
        try await Self.order(300, scene)
        let told = try await stream.wait("all are told", within: .seconds(120)) { events in
            events.count { $0.type == "task.didComplete" } >= 300
        }
        try await Self.expectEachOnce(300, scene)
        let logged = try await scene.events().filter { $0["type"] == "task.didComplete" }
        let seen = told.filter { $0.type == "task.didComplete" }.map { $0.json["seq"].int }
        #expect(seen == logged.map { $0["seq"].int })
    }
}
