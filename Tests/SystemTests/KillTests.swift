import Base
import Core
import TestSupport
import Testing

/// docs/concepts.md "Guarantees" under SIGKILL: nothing is lost or doubled, at any moment.
@Suite struct KillTests {
    private static let configuration: JSON = [
        "timeoutIntervalForRequest": 5,
        "retryPolicy": ["statusCodes": [503], "initialDelay": 0.1, "maximumDelay": 0.2],
    ]
    private static let large = 40 << 20

    /// A task: its path, and its expected end.
    private struct Wish: Sendable {
        let id: String
        let task: JSON
        let outcome: JSON
        let path: String
        let content: (seed: UInt64, length: Int)?
    }

    @Test(arguments: [1, 2] as [UInt64])
    func `Downloads and uploads survive kills at any moment`(_ seed: UInt64) async throws {
        var random = SeededRandom(seed: seed)
        let receiver = try Receiver { $0.number % 5 == 4 ? .status(500) : .json(["completed": true]) }
        let scene = try await Scene(configuration: Self.configuration)
        try await scene.launches(to: receiver)
        let wishes = Self.wishes(scene, &random)
        let accepted = Locked<[String: Int]>([:])
        let kills = 7
        let moments = (0..<kills).map { _ in Int.random(in: 50...1200, using: &random) }

        async let created: Void = Self.create(wishes, scene, accepted)
        var seen: [Int: JSON] = [:]
        for moment in moments {
            // The moment of the kill is random, not a condition.
            try await stays("the storm goes on", for: .milliseconds(moment)) { true }
            try await scene.service.kill()
            try await scene.service.start()
            for event in stable(try await scene.events()) { seen[event["seq"].int ?? 0] = event }
        }
        try await created
        try await eventually("everything completes", within: .seconds(240)) {
            try await scene.session()["taskCounts"]["completed"].int == wishes.count
        }

        let events = try await scene.events()
        expectSound(events)
        #expect(seen.keys.max() ?? 0 <= events.count)
        for (seq, event) in zip(1..., stable(events)) where seen[seq] != nil {
            #expect(seen[seq] == event, "seq \(seq)")
        }
        let completions = completions(events)
        let identifiers = accepted.withLock { $0 }
        #expect(completions.count == wishes.count && identifiers.count == wishes.count)
        #expect(Set(identifiers.values).count == wishes.count)
        for wish in wishes { try await check(wish, identifiers, completions, scene) }
        #expect(scene.origin.bytesSent("/large") <= Self.large + kills * (16 << 20), "fetched again")
        try await checkLaunches(scene, receiver)
    }

    private static func wishes(_ scene: Scene, _ random: inout SeededRandom) -> [Wish] {
        var wishes: [Wish] = []
        func add(_ path: String, _ task: JSON, _ outcome: JSON = "succeeded", _ content: (UInt64, Int)? = nil) {
            var task = task
            task["clientTaskId"] = .string("c-\(wishes.count)")
            wishes.append(
                Wish(id: "c-\(wishes.count)", task: task, outcome: outcome, path: path, content: content))
        }
        for number in 1...58 {
            let path = "/d\(number)"
            let length = [0, 100, 5000, 65_536, 65_537, 300_000, 2_000_000].randomElement(using: &random) ?? 0
            let resource = Resource.generated(seed: UInt64(number), length: length)
            let troubles: [[[Misbehaviour]]] = [
                [], [[.status(503)]], [[.cut(after: length / 2)]], [[.cut(after: length / 3, .reset)], [.noAnswer()]],
                [[.trickle(size: 20_000, pause: .milliseconds(30))]], [[.chunked(), .cut(after: length / 2)]],
            ]
            scene.origin.serve(path, resource, turns: troubles.randomElement(using: &random) ?? [])
            add(path, scene.downloadOf(path), "succeeded", (UInt64(number), length))
        }
        add("/missing", scene.downloadOf("/missing"), "httpError")
        scene.origin.serve(
            "/large", .generated(seed: 99, length: large), always: [.trickle(size: 256 << 10, pause: .milliseconds(20))]
        )
        add("/large", scene.downloadOf("/large"), "succeeded", (99, large))
        for number in 1...5 {
            let path = "/u\(number)"
            scene.origin.serve(path, .upload(), turns: number == 2 ? [[.noAnswer(.reset)]] : [])
            let text = Content.sha256(seed: UInt64(number), length: 10)
            let upload: JSON = [
                "kind": "upload", "request": ["url": .string(scene.origin.url(path))], "body": ["text": .string(text)],
            ]
            add(path, upload)
        }
        return wishes
    }

    /// Creates all tasks; requests without a response are repeated.
    private static func create(_ wishes: [Wish], _ scene: Scene, _ accepted: Locked<[String: Int]>) async throws {
        for wish in wishes {
            let number = try await eventually("task \(wish.id) is accepted", within: .seconds(120)) { () -> Int? in
                guard let answer = try? await scene.api.post("/v1/sessions/s/tasks", wish.task) else { return nil }
                guard [200, 201].contains(answer.status) else {
                    #expect(answer.status == 503, "\(answer.text)")
                    return nil
                }
                return answer.json["taskIdentifier"].int
            }
            accepted.withLock { $0[wish.id] = number }
        }
    }

    private func check(
        _ wish: Wish, _ identifiers: [String: Int], _ completions: [Int: JSON], _ scene: Scene
    ) async throws {
        let number = try #require(identifiers[wish.id])
        let task = try await scene.task(number)
        #expect(task["clientTaskId"].string == wish.id && task["outcome"] == wish.outcome, "\(task)")
        #expect(completions[number]?["outcome"] == wish.outcome, "\(wish.path)")
        if let (seed, length) = wish.content {
            let sha256 = Content.sha256(seed: seed, length: length)
            #expect(task["content"]["digest"]["value"].string == sha256, "\(wish.path): \(task)")
            let content = try await scene.content(number)
            #expect(Content.sha256(of: content.body) == sha256, "\(wish.path)")
        } else if wish.task["kind"] == "upload" {
            let expected = wish.task["body"]["text"].string ?? ""
            let whole = scene.origin.requests(wish.path).filter { $0.bodySHA256 != nil }
            #expect(!whole.isEmpty && whole.allSatisfy { $0.body == Array(expected.utf8) }, "\(wish.path)")
        }
    }

    /// All launches end, the deliveries of one are equal to the byte, and each completed one has one didFinishEvents.
    private func checkLaunches(_ scene: Scene, _ receiver: Receiver) async throws {
        try await eventually("all is handled", within: .seconds(120)) {
            let session = try await scene.session()
            let events = try await scene.events()
            let last = events.last { $0["type"] == "task.didComplete" }?["seq"].int ?? 0
            return session["launch"].isNull && session["acknowledgedSeq"].int ?? 0 >= last
        }
        let deliveries = Dictionary(grouping: receiver.deliveries) { $0.id ?? "" }
        for (id, same) in deliveries {
            #expect(Set(same.map(\.body)).count == 1, "\(id)")
            #expect(same.allSatisfy { $0.isSigned(with: devSecret) }, "\(id)")
        }
        let events = try await scene.events()
        expectSound(events)
        let finished = events.filter { $0["type"] == "session.didFinishEvents" }.compactMap {
            $0["data"]["launchId"].string
        }
        #expect(Set(finished).count == finished.count && Set(finished).isSubset(of: deliveries.keys), "\(finished)")
        let completed = try await scene.launches().filter { $0["state"] == "completed" }.compactMap {
            $0["launchId"].string
        }
        #expect(Set(completed) == Set(finished))
    }

    @Test func `Kills during the start do no harm`() async throws {
        let scene = try await Scene(configuration: Self.configuration)
        scene.origin.serve(
            "/a", .generated(seed: 1, length: 100_000), always: [.trickle(size: 10_000, pause: .milliseconds(20))])
        let tasks = (0..<20).map { _ in scene.downloadOf("/a") }
        expect(try await scene.api.post("/v1/sessions/s/tasks/batch", ["tasks": .array(tasks)]), 201)
        for _ in 1...8 { try await scene.service.restart() }
        let session = try await scene.settled()
        #expect(session["taskCounts"]["succeeded"] == 20, "\(session)")
        let events = try await scene.events()
        expectSound(events)
        #expect(completions(events).count == 20)
        try await eventually("no partial file is left") { filesBelow(scene.service.data.file("data/partial")).isEmpty }
        if TestStore.nodes == 1 { #expect(filesBelow(scene.service.data.file("data/contents")).count == 1) }
    }

    @Test func `The results of confirmed requests survive a kill at once`() async throws {
        let scene = try await Scene(configuration: nil)
        for round in 1...5 {
            try await scene.makeSession("s\(round)")
            let made = try await scene.download("/a", ["state": "suspended"], in: "s\(round)")
            try await scene.service.restart()
            #expect(try await scene.task(made, in: "s\(round)")["state"] == "suspended")
            expect(try await scene.api.post("/v1/sessions/s\(round)/tasks/\(made)/cancel"), 202)
            try await scene.completed(made, in: "s\(round)")
            try await scene.service.restart()
            #expect(try await scene.task(made, in: "s\(round)")["outcome"] == "cancelled")
            expectSound(try await scene.events("s\(round)"))
        }
    }
}
