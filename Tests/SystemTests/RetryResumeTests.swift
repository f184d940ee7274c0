import Core
import TestSupport
import Testing

/// Retries of failed or cancelled downloads continue with the kept bytes.
@Suite struct RetryResumeTests {
    private static let length = 300_000
    private static let kept = 200_000

    private func scene(_ turns: [[Misbehaviour]]) async throws -> Scene {
        let scene = try await Scene(configuration: ["retryPolicy": ["maximumAttempts": 1]])
        scene.origin.serve("/a", .generated(seed: 1, length: Self.length), turns: turns)
        return scene
    }

    private func storedBytes(_ scene: Scene) async throws -> Int {
        try #require(try await scene.api.get("/v1/app").json["usage"]["storedBytes"].int)
    }

    private func retry(_ number: Int, _ scene: Scene) async throws -> Int {
        let answer = try await scene.api.post("/v1/sessions/s/tasks/\(number)/retry", [:])
        expect(answer, 201)
        #expect(answer.json["retryOf"].int == number)
        return try #require(answer.json["taskIdentifier"].int)
    }

    private func expectWhole(_ number: Int, _ scene: Scene) async throws {
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: Self.length))
    }

    @Test func `The retry of a failed download resumes`() async throws {
        let scene = try await scene([[.cut(after: Self.kept)]])
        let number = try await scene.download("/a")
        #expect(try await scene.completed(number)["outcome"] == "failed")
        #expect(try await storedBytes(scene) == Self.kept)
        let next = try await retry(number, scene)
        try await expectWhole(next, scene)
        #expect(scene.origin.requests("/a").map { $0.fields["Range"] } == [nil, "bytes=\(Self.kept)-"])
        #expect(try await storedBytes(scene) == Self.length)
        let resumed = try await scene.events().filter { $0["type"] == "task.didResumeAtOffset" }
        #expect(resumed.map { $0["data"]["fileOffset"].int } == [Self.kept], "\(resumed)")
        // The bytes were used up.
        try await expectWhole(try await retry(number, scene), scene)
        #expect(scene.origin.requests("/a").last?.fields.contains("Range") == false)
    }

    @Test func `The retry of a cancelled download resumes, one by one and for the session, after a restart too`()
        async throws
    {
        let scene = try await scene([[.stall(after: Self.kept)], [.stall(after: Self.kept)]])
        for _ in 0..<2 {
            let number = try await scene.download("/a")
            try await scene.waitFor("bytes", task: number) { $0["countOfBytesReceived"].int == Self.kept }
            // Received bytes are stored, as at an interruption.
            expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/suspend", [:]), 200)
            try await eventually("it is stored") { scene.origin.inFlight.now == 0 }
            _ = try await scene.service.terminate()
            try await scene.service.start()
            expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/cancel", [:]), 202)
            #expect(try await scene.completed(number)["outcome"] == "cancelled")
        }
        try await expectWhole(try await retry(1, scene), scene)
        expect(try await scene.api.post("/v1/sessions/s/tasks/retry", ["taskIdentifiers": [2]]), 200)
        try await expectWhole(4, scene)
        let ranges = scene.origin.requests("/a").map { $0.fields["Range"] }
        #expect(ranges == [nil, nil, "bytes=\(Self.kept)-", "bytes=\(Self.kept)-"], "\(ranges)")
    }

    @Test func `The retry of a download that was cancelled while it ran continues with its last byte`() async throws {
        let scene = try await scene([[.stall(after: Self.kept)]])
        let number = try await scene.download("/a")
        try await scene.waitFor("bytes", task: number) { $0["countOfBytesReceived"].int == Self.kept }
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/cancel", [:]), 202)
        try await expectWhole(try await retry(number, scene), scene)
        let ranges = scene.origin.requests("/a").map { $0.fields["Range"] }
        #expect(ranges == [nil, "bytes=\(Self.kept)-"], "\(ranges)")
        #expect(try await storedBytes(scene) == Self.length)
    }

    @Test func `A deleted session keeps no bytes for retries`() async throws {
        let scene = try await scene([[.cut(after: Self.kept)]])
        try await scene.completed(try await scene.download("/a"))
        #expect(try await storedBytes(scene) == Self.kept)
        expect(try await scene.api.delete("/v1/sessions/s"), 202)
        try await eventually("the bytes are removed") { try await storedBytes(scene) == 0 }
        try await eventually("the file is removed") { filesBelow(scene.service.data.file("data/partial")).isEmpty }
    }
}
