import Base
import Core
import TestSupport
import Testing

/// Reading the content of a task that waits for another task's transfer (docs/transfers.md).
@Suite(.enabled(if: TestStore.nodes == 1, "the bytes are at the node that transfers them"))
struct ArrivingFollowerTests {
    private static let size = 12 << 20
    private static let bytes = Content.bytes(seed: 1, length: size)
    private static let resource = Resource.generated(seed: 1, length: size)

    private let scene: Scene
    private let gate = Gate()

    init() async throws {
        scene = try await Scene(configuration: ["requestCachePolicy": "useProtocolCachePolicy"])
    }

    private func path(_ number: Int) -> String { "/v1/sessions/s/tasks/\(number)/content?arriving=1" }

    private func read(_ number: Int, _ headers: (String, String)...) async throws -> FollowedAnswer {
        try await scene.api.begin("GET", path(number), headers: headers + [("Prefer", "wait=60")]).follow()
    }

    /// Creates a leader and two followers.
    private func fly() async throws {
        try await scene.download("/a")
        try await scene.origin.waitForRequests(1)
        for _ in 2...3 { try await scene.download("/a") }
        for number in 2...3 {
            try await eventually("task \(number) follows") {
                try await scene.task(number)["waitingFor"][0]["kind"] == "sameTransfer"
            }
        }
    }

    @Test func `A reader of a task that follows afterwards gets the leader's bytes at once`() async throws {
        scene.origin.serve("/a", Self.resource, always: [.holdBody(after: Self.size / 2, gate)])
        try await scene.download("/a")
        _ = try await read(1).bytes(Self.size / 3)
        for number in 2...5 {
            try await scene.download("/a")
            let reader = try await scene.api.begin("GET", path(number), headers: [("Prefer", "wait=10")]).follow()
            #expect(try await reader.bytes(Self.size / 3).status == 200)
        }
        gate.open()
        try await scene.completed(5)
        #expect(scene.origin.requests("/a").count == 1)
    }

    @Test func `A reader of a follower gets the leader's bytes as they arrive, under the follower's tag`()
        async throws
    {
        scene.origin.serve("/a", Self.resource, always: [.holdBody(after: Self.size / 2, gate)])
        try await fly()
        let reader = try await read(2)
        let begun = try await reader.bytes(Self.size / 3)
        #expect(begun.status == 200 && begun.fields["Content-Length"] == "\(Self.size)")
        let tag = try #require(begun.fields["ETag"])
        #expect(try await read(1).bytes(1).fields["ETag"] != tag)
        let part = try await read(2, ("If-Match", tag), ("Range", "bytes=1000-1999")).end()
        #expect(part.status == 206 && part.isWhole && part.body == Array(Self.bytes[1000..<2000]))
        gate.open()
        let whole = try await reader.end()
        #expect(whole.isWhole && whole.body == Self.bytes)
        #expect(try await scene.completed(2)["cacheStatus"] == "collapsed")
        let after = try await scene.api.get(path(2), headers: [("Range", "bytes=5-9"), ("If-Range", tag)])
        #expect(after.status == 206 && after.body == Array(Self.bytes[5..<10]) && after.etag == tag)
        #expect(scene.origin.requests("/a").count == 1)
    }

    @Test(arguments: ["cancel", "suspend"])
    func `Readers of followers continue when another task takes over`(_ verb: String) async throws {
        scene.origin.serve(
            "/a", Self.resource, turns: [[.holdBody(after: 6 << 20, gate)], [.holdBody(after: 1 << 20, gate)]])
        try await fly()
        let readers = [try await read(2), try await read(3)]
        for reader in readers { try await reader.bytes(3 << 20) }
        #expect(try await [200, 202].contains(scene.api.post("/v1/sessions/s/tasks/1/\(verb)").status))
        try await scene.origin.waitForRequests(2)
        #expect(scene.origin.requests("/a")[1].fields["Range"] != nil)
        gate.open()
        for (number, reader) in zip(2...3, readers) {
            let whole = try await reader.end()
            #expect(whole.isWhole && whole.body == Self.bytes, "task \(number)")
            #expect(try await scene.completed(number)["outcome"] == "succeeded")
            #expect(try await scene.api.get(path(number)).etag == whole.fields["ETag"], "task \(number)")
        }
    }

    @Test(arguments: ["cancel", "suspend"])
    func `Readers are cut off when the task that takes over receives other bytes`(_ verb: String) async throws {
        let before = Content.bytes(seed: 2, length: Self.size)
        scene.origin.serve(
            "/a", .generated(seed: 2, length: Self.size),
            turns: [[.holdBody(after: 6 << 20, Gate())], [.hold(gate), .become(Self.resource)]])
        try await fly()
        let readers = [try await read(2), try await read(3)]
        for reader in readers { try await reader.bytes(3 << 20) }
        #expect(try await [200, 202].contains(scene.api.post("/v1/sessions/s/tasks/1/\(verb)").status))
        try await scene.origin.waitForRequests(2)
        gate.open()
        for (number, reader) in zip(2...3, readers) {
            let cut = try await reader.end()
            #expect(!cut.isWhole && cut.body == Array(before[..<cut.body.count]), "task \(number)")
            let tag = try #require(cut.fields["ETag"])
            let again = try await read(number, ("Range", "bytes=\(cut.body.count)-"), ("If-Range", tag)).end()
            #expect(again.status == 200 && again.isWhole && again.body == Self.bytes, "task \(number)")
        }
    }
}
