import Core
import TestSupport
import Testing

/// docs/concepts.md "Stalls".
@Suite struct StallTests {
    /// The JSON that creates a download whose connections the origin resets.
    private func hopeless(_ scene: Scene) -> JSON {
        scene.origin.serve("/hopeless", .text("x"), always: [.noAnswer(.reset)])
        return scene.downloadOf("/hopeless")
    }

    private func stalls(_ scene: Scene) async throws -> [JSON] {
        try await scene.events().filter { $0["type"] == "session.didStall" }
    }

    @Test func `A session whose tasks make no progress reports it to its app, once`() async throws {
        let scene = try await Scene(configuration: ["stallInterval": 2])
        #expect(try await scene.session()["configuration"]["stallInterval"] == 2)
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        try await scene.create(hopeless(scene))
        try await scene.create(hopeless(scene))
        let delivery = try #require(try await receiver.waitForDelivery().first)
        #expect(delivery.json["data"]["reasons"] == ["tasksStalled"], "\(delivery.json)")
        let event = try #require(try await stalls(scene).first)
        let data = event["data"]
        #expect(data["taskCount"] == 2 && data["since"].string != nil && event["taskIdentifier"] == .null, "\(event)")
        let errors = try #require(data["errors"].array)
        #expect(errors.contains { $0["name"] == "networkConnectionLost" }, "\(data)")
        try await stays("one stall", for: .seconds(4)) { try await stalls(scene).count == 1 }
    }

    @Test func `Progress ends a stall, and the next stall is reported again`() async throws {
        let scene = try await Scene(configuration: ["stallInterval": 1, "sessionSendsLaunchEvents": false])
        try await scene.create(hopeless(scene))
        try await eventually("the first stall") { try await stalls(scene).count == 1 }
        scene.origin.serve("/a", .text("x"))
        try await scene.completed(try await scene.download("/a"))
        try await eventually("the second stall") { try await stalls(scene).count == 2 }
        #expect(try await scene.launches().isEmpty)
    }

    @Test func `Bytes in flight, delayed tasks, and sessions without a stall interval are no stall`() async throws {
        let scene = try await Scene(configuration: ["stallInterval": 2])
        // The bytes arrive too slowly to be stored before the end.
        scene.origin.serve(
            "/slow", .generated(seed: 1, length: 60), turns: [[.trickle(size: 4, pause: .milliseconds(500))]])
        try await scene.makeSession("never", ["stallInterval": .null])
        #expect(try await scene.session("never")["configuration"]["stallInterval"] == .null)
        try await scene.makeSession("later", ["stallInterval": 1])
        try await scene.create(hopeless(scene), in: "never")
        try await scene.download("/slow", ["earliestBeginDate": "2100-01-01T00:00:00Z"], in: "later")
        try await scene.completed(try await scene.download("/slow"))
        for session in ["s", "never", "later"] {
            let events = try await scene.events(session)
            #expect(!events.contains { $0["type"] == "session.didStall" }, "\(session): \(events)")
        }
        let defaults = try await scene.makeSession("plain")
        #expect(defaults["configuration"]["stallInterval"] == 3600)
        let refused = try await scene.api.put("/v1/sessions/x", ["configuration": ["stallInterval": 0]])
        #expect(refused.status == 422 && refused.text.contains("/configuration/stallInterval"), "\(refused.text)")
    }

    @Test func `A retry policy ends with its time limit`() async throws {
        let scene = try await Scene(
            configuration: [
                "retryPolicy": ["maximumElapsedTime": 1.5, "initialDelay": 0.2, "maximumDelay": 0.4]
            ])
        #expect(try await scene.session()["configuration"]["retryPolicy"]["maximumElapsedTime"] == 1.5)
        let task = try await scene.create(hopeless(scene))
        let done = try await scene.completed(try #require(task["taskIdentifier"].int))
        #expect(done["outcome"] == "failed" && done["error"]["code"] == -1005, "\(done)")
        #expect(try #require(done["attempts"]["count"].int) > 1)
    }
}
