import TestSupport
import Testing

/// Name servers that do not answer delay only the app that uses their names.
// The services run in a network of their own, without servers of other tests.
@Suite(.enabled(if: !TestStore.isOnServer)) struct NameTests {
    private static let crowd = 60
    private static let hooks = 6

    private static var names: [String: JSON] {
        var names: [String: JSON] = [
            "good.test": ["8.8.8.8"], "hook.test": ["203.0.113.200"], "one.test": "silent",
        ]
        for index in 0..<crowd { names["quiet\(index).test"] = "silent" }
        for index in 0..<hooks { names["quiet-hook\(index).test"] = "silent" }
        return names
    }

    private static func url(_ name: String) -> String { "http://\(name).test:\(Island.trapPort)/" }

    private static func download(_ name: String) -> JSON {
        ["kind": "download", "request": ["url": .string(url(name))]]
    }

    private func makeApp(_ island: Island, _ identifier: String, hook: String? = nil) async throws -> APIClient {
        let app = try await island.admin.post("/v1/apps", ["identifier": .string(identifier)])
        let key: String = try #require(app.json["apiKey"].string, "\(app.text)")
        let api = island.admin.with(key: key)
        if let hook {
            expect(try await api.patch("/v1/app", ["webhook": ["url": .string(Self.url(hook))]]), 200)
        }
        let patient: JSON = ["timeoutIntervalForRequest": 600]
        expect(try await api.put("/v1/sessions/s", ["configuration": patient]), 201)
        return api
    }

    @Test(.enabled("a network of one's own is needed (unshare -rmn, ip, python3)") { await Island.canBeHad() })
    func `Unanswered host names of one app delay neither another app's transfer nor its webhook`() async throws {
        // Each look-up is silent for half a minute.
        let island = try await Island(places: [], names: Self.names, options: "timeout:30 attempts:1")
        let crowd = try await makeApp(island, "crowd")
        let tasks: JSON = .array((0..<Self.crowd).map { Self.download("quiet\($0)") })
        expect(try await crowd.post("/v1/sessions/s/tasks/batch", ["tasks": tasks]), 201)
        try await eventually("the crowd's names are looked up") {
            island.questions.keys.count { $0.hasPrefix("quiet") } >= 8
        }
        let pings = Task {
            await withTaskGroup { group in
                for index in 0..<Self.hooks {
                    group.addTask {
                        let app = try? await self.makeApp(island, "hook-\(index)", hook: "quiet-hook\(index)")
                        _ = try? await app?.post("/v1/app/webhook/ping")
                    }
                }
            }
        }
        defer { pings.cancel() }
        try await eventually("the names of silent receivers are looked up") {
            island.questions.keys.count { $0.hasPrefix("quiet-hook") } >= 4
        }

        let other = try await makeApp(island, "other", hook: "hook")
        expect(try await other.post("/v1/sessions/s/tasks", Self.download("good")), 201)
        let done = try await other.get("/v1/sessions/s/tasks/1?wait=60").json
        #expect(done["outcome"] == "succeeded" && done["attempts"]["count"] == 1, "\(done)")
        try await eventually("its webhook arrives") { island.arrivals.contains { $0.address == "203.0.113.200" } }
        let launch = try await eventually("its launch is told") {
            try await other.get("/v1/launches").json["items"].array?.first { $0["attempts"].array?.isEmpty == false }
        }
        #expect(launch["attempts"][0]["statusCode"] == 200, "\(launch)")
        // Meanwhile no look-up of the crowd ended.
        let waiting = try await crowd.get("/v1/sessions/s/tasks?limit=1000").json["items"].array ?? []
        #expect(waiting.map { $0["attempts"]["last"] } == Array(repeating: .null, count: Self.crowd))

        for app in [crowd, other] {
            let same: JSON = .array((0..<6).map { _ in Self.download("one") })
            expect(try await app.post("/v1/sessions/s/tasks/batch", ["tasks": same]), 201)
        }
        try await eventually("the one name is looked up") { island.questions["one.test"] != nil }
        try await stays("one question for twelve tasks", for: .seconds(1)) { island.questions["one.test"] == 1 }
    }
}
