import Base
import Core
import Formats
import TestSupport
import Testing

/// Reading a content while it is written into the bucket of contents (docs/transfers.md).
@Suite(.enabled(if: TestStore.nodes == 1, "the bucket of contents is the test's"))
struct ArrivingObjectTests {
    private static let part = 8 << 20
    private static let size = 3 * part + 321
    private static let bytes = Content.bytes(seed: 1, length: size)
    private static let path = "/v1/sessions/s/tasks/1/content?arriving=1"

    private let store: ObjectStore
    private let scene: Scene
    /// The number of bytes that the origin sends for now.
    private let pace = Locked(0)

    init() async throws {
        store = try ObjectStore()
        scene = try await Scene(
            store.contents,
            configuration: ["retryPolicy": ["statusCodes": [503], "initialDelay": 0.1, "maximumDelay": 0.2]],
            environment: ["AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"])
    }

    /// Starts a reader.
    private func read(_ headers: (String, String)...) async throws -> FollowedAnswer {
        try await scene.api.begin("GET", Self.path, headers: headers + [("Prefer", "wait=60")]).follow()
    }

    /// Expects that the bucket has the content and nothing else.
    private func expectOneObject() async throws {
        try await eventually("one object is left") { store.objects.count == 1 && store.uploads == 0 }
        #expect(store.objects.values.first?.bytes == Self.bytes)
        #expect(ContentsTests.files(of: scene) == [])
    }

    /// Serves the content at the pace of the test, creates its task, and waits until parts are in the bucket.
    private func begin(_ parts: Int, _ more: [Misbehaviour] = [], etag: String? = "\"v\"") async throws {
        pace.withLock { $0 = parts * Self.part + 1 }
        let resource = Resource(.generated(seed: 1, length: Self.size), etag: etag).with {
            $0.contentType = "video/mp4"
        }
        scene.origin.serve("/a.mp4", resource, always: more + [.leash { [pace] in pace.withLock { $0 } }])
        try await scene.download("/a.mp4")
        try await eventually("\(parts) parts are stored") { store.requests(.part).count == parts }
    }

    @Test(arguments: [true, false])
    func `A reader gets the parts that are stored, and each one that follows`(_ hasLength: Bool) async throws {
        try await begin(1, hasLength ? [] : [.chunked(size: 64 << 10)])
        let reader = try await read()
        let begun = try await reader.bytes(Self.part)
        #expect(begun.status == 200 && begun.fields["Content-Type"] == "video/mp4")
        #expect(begun.fields["Content-Disposition"]?.contains("a.mp4") == true)
        #expect(begun.fields["Content-Length"] == (hasLength ? "\(Self.size)" : nil))
        let tag = try #require(begun.fields["ETag"])
        let late = try await read(("Range", "bytes=\(2 * Self.part)-\(2 * Self.part + 9)"))
        pace.withLock { $0 = 2 * Self.part + 1 }
        #expect(try await reader.bytes(2 * Self.part).body == Array(Self.bytes[..<(2 * Self.part)]))
        let part = try await read(("Range", "bytes=\(Self.part - 5)-\(Self.part + 4)"), ("If-Range", tag)).end()
        #expect(part.status == 206 && part.isWhole)
        #expect(part.body == Array(Self.bytes[(Self.part - 5)..<(Self.part + 5)]))
        #expect(late.now.status == nil && !reader.now.isOver)
        pace.withLock { $0 = .max }
        let whole = try await reader.end()
        #expect(whole.isWhole && whole.body == Self.bytes)
        #expect(try await late.end().body == Array(Self.bytes[(2 * Self.part)...].prefix(10)))
        #expect(try await scene.completed(1)["outcome"] == "succeeded")
        #expect(try await scene.content(1).body == Self.bytes)
        #expect(try await scene.api.get(Self.path, headers: [("If-None-Match", tag)]).status == 304)
        #expect(scene.origin.requests("/a.mp4").count == 1)
        try await expectOneObject()
    }

    @Test func `Reading continues after kills, and no stored part is fetched again`() async throws {
        try await begin(1)
        try await read().bytes(1)
        for parts in 2...3 {
            try await scene.service.kill()
            try await scene.service.start()
            pace.withLock { $0 = parts * Self.part + 1 }
            let reader = try await read()
            #expect(try await reader.bytes(parts * Self.part).body == Array(Self.bytes[..<(parts * Self.part)]))
        }
        pace.withLock { $0 = .max }
        #expect(try await scene.completed(1)["outcome"] == "succeeded")
        #expect(try await scene.content(1).body == Self.bytes)
        #expect(scene.origin.bytesSent("/a.mp4") <= Self.size + 2 * Self.part, "fetched again")
        try await expectOneObject()
    }

    @Test func `Another version cuts its readers off, and its objects are removed`() async throws {
        try await begin(1, etag: nil)
        let reader = try await read()
        try await reader.bytes(Self.part)
        try await scene.service.kill()
        try await scene.service.start()
        let cut = try await reader.end()
        #expect(!cut.isWhole && cut.body == Array(Self.bytes[..<cut.body.count]))
        let second = try await read()
        #expect(try await second.bytes(Self.part).fields["ETag"] != cut.fields["ETag"])
        pace.withLock { $0 = .max }
        #expect(try await second.end().body == Self.bytes)
        #expect(try await scene.completed(1)["outcome"] == "succeeded")
        try await expectOneObject()
    }

    @Test func `The objects of a cancelled task are removed`() async throws {
        try await begin(1)
        let reader = try await read()
        try await reader.bytes(Self.part)
        pace.withLock { $0 = 2 * Self.part + 1 }
        try await reader.bytes(2 * Self.part)
        #expect(store.objects.count == 2)
        expect(try await scene.api.post("/v1/sessions/s/tasks/1/cancel"), 202)
        #expect(try await !reader.end().isWhole)
        try await eventually("nothing is left") { store.objects.isEmpty && store.uploads == 0 }
    }

    @Test func `A lost response to the joining of the first parts is resolved`() async throws {
        try await begin(1)
        store.next(.complete, [.loseAnswer])
        let reader = try await read()
        try await reader.bytes(Self.part)
        pace.withLock { $0 = .max }
        #expect(try await reader.end().body == Self.bytes)
        #expect(scene.origin.requests("/a.mp4").count == 1)
        try await expectOneObject()
    }

    @Test func `A process that ends once the first parts are joined loses no part`() async throws {
        try await begin(1)
        let joined = Gate()
        defer { joined.open() }
        store.next(.head, [.hold(joined)])
        _ = try await read()
        try await eventually("the parts are joined") { store.objects.count == 1 }
        try await scene.service.kill()
        joined.open()
        try await scene.service.start()
        pace.withLock { $0 = .max }
        #expect(try await scene.completed(1)["outcome"] == "succeeded")
        #expect(try await scene.content(1).body == Self.bytes)
        #expect(scene.origin.bytesSent("/a.mp4") <= Self.size + Self.part, "fetched again")
        try await expectOneObject()
    }

    @Test func `A store that does not copy gets the whole content from the service`() async throws {
        try await begin(1)
        store.next(.copy, Array(repeating: .refuse(501, "NotImplemented"), count: 4))
        let reader = try await read()
        try await reader.bytes(Self.part)
        pace.withLock { $0 = .max }
        #expect(try await reader.end().body == Self.bytes)
        #expect(try await scene.completed(1)["outcome"] == "succeeded")
        try await expectOneObject()
    }

    @Test func `The bytes of an error page are not readable before its end`() async throws {
        let gate = Gate()
        scene.origin.serve(
            "/a", .generated(seed: 1, length: Self.size).with { $0.status = 404 },
            always: [.holdBody(after: 3 * Self.part, gate)])
        try await scene.download("/a")
        try await eventually("parts are stored") { store.requests(.part).count >= 2 }
        expectProblem(try await scene.api.get(Self.path, headers: [("Prefer", "wait=1")]), 503, "content-not-ready")
        gate.open()
        #expect(try await scene.completed(1)["outcome"] == "httpError")
        #expect(try await scene.api.get(Self.path).body == Self.bytes)
    }
}
