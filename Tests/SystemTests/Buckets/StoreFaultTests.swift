import Base
import Core
import TestSupport
import Testing

/// Stores that refuse, corrupt, lose responses, are full or slow.
@Suite struct StoreFaultTests {
    private static let part = 8 << 20
    private static let length = 2 * part + 321
    private static let keys = ["AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"]
    private static let small = 1000

    private static func scene(_ store: ObjectStore, environment: [String: String] = [:]) async throws -> Scene {
        try await Scene(
            store.setting(), configuration: ["retryPolicy": ["initialDelay": 0.1]],
            environment: keys.merging(environment) { $1 })
    }

    /// Downloads to the object `k` and waits for the end.
    private static func download(
        _ length: Int, _ scene: Scene, seed: UInt64 = 1, replace: Bool = true
    ) async throws -> JSON {
        scene.origin.serve("/\(seed)", .generated(seed: seed, length: length))
        let destination: JSON = ["bucket": "b", "key": "k", "replace": .bool(replace)]
        return try await scene.completed(try await scene.download("/\(seed)", ["destination": destination]))
    }

    private static func expectObject(
        _ length: Int, in store: ObjectStore, seed: UInt64 = 1, location: SourceLocation = #_sourceLocation
    ) async throws {
        #expect(store.objects["k"]?.bytes == Content.bytes(seed: seed, length: length), sourceLocation: location)
        try await eventually("no upload is left") { store.uploads == 0 }
    }

    @Test(arguments: [true, false]) func `A lost response to the completion is resolved, and no work is repeated`(
        _ replace: Bool
    ) async throws {
        let store = try ObjectStore()
        let scene = try await Self.scene(store)
        store.next(.complete, [.loseAnswer])
        let task = try await Self.download(Self.length, scene, replace: replace)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(store.requests(.complete).count == 1 && store.requests(.create).count == 1)
        #expect(scene.origin.requests.count == 1)
        try await Self.expectObject(Self.length, in: store)
    }

    @Test(arguments: [true, false]) func `A lost response to a small object is resolved`(_ replace: Bool) async throws {
        let store = try ObjectStore()
        let scene = try await Self.scene(store)
        store.next(.put, [.loseAnswer, .loseAnswer])
        let task = try await Self.download(Self.small, scene, replace: replace)
        #expect(task["outcome"] == "succeeded", "\(task)")
        try await Self.expectObject(Self.small, in: store)
    }

    @Test func `A completion with an error in a success is repeated`() async throws {
        let store = try ObjectStore()
        let scene = try await Self.scene(store)
        store.next(.complete, [.errorInSuccess("InternalError"), .close])
        let task = try await Self.download(Self.length, scene)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(store.requests(.complete).count == 3)
        // Stored bytes were not fetched again.
        #expect(scene.origin.requests.count == 1)
        try await Self.expectObject(Self.length, in: store)
    }

    @Test func `An upload that the store has lost restarts`() async throws {
        let store = try ObjectStore()
        let scene = try await Self.scene(store)
        store.next(.complete, [.refuse(404, "NoSuchUpload")])
        let task = try await Self.download(Self.length, scene)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(store.requests(.create).count == 2 && scene.origin.requests.count == 2)
        try await Self.expectObject(Self.length, in: store)
    }

    @Test func `An upload whose creation had a lost response is aborted`() async throws {
        let store = try ObjectStore()
        let scene = try await Self.scene(store)
        store.next(.create, [.loseAnswer])
        let task = try await Self.download(Self.length, scene)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(store.requests(.create).count == 2)
        try await Self.expectObject(Self.length, in: store)
        #expect(store.requests(.list).count >= 1)
    }

    @Test func `Parts are sent again, each with the digest that the store verifies`() async throws {
        let store = try ObjectStore()
        let scene = try await Self.scene(store)
        store.next(.part, [.refuse(503, "SlowDown"), .close, .refuse(500, "InternalError"), .empty])
        let task = try await Self.download(Self.length, scene)
        #expect(task["outcome"] == "succeeded", "\(task)")
        try await Self.expectObject(Self.length, in: store)
        for request in store.requests(.part) {
            #expect(request.fields["x-amz-content-sha256"]?.count == 64)
            #expect(request.fields["Authorization"]?.hasPrefix("AWS4-HMAC-SHA256 Credential=id/") == true)
        }
    }

    @Test(arguments: [small, length]) func `An object that the store truncated is detected`(
        _ length: Int
    ) async throws {
        let store = try ObjectStore()
        let scene = try await Self.scene(store)
        store.next(length == Self.small ? .put : .part, [.halve])
        let task = try await Self.download(length, scene)
        #expect(task["outcome"] == "succeeded", "\(task)")
        try await Self.expectObject(length, in: store)
    }

    @Test(arguments: [("QuotaExceeded", 403), ("XMinioStorageFull", 507)])
    func `A download waits while the bucket is full`(
        _ code: String, _ status: Int
    ) async throws {
        let store = try ObjectStore()
        let scene = try await Self.scene(store)
        store.next(.part, Array(repeating: .refuse(status, code), count: 8))
        let task = try await Self.download(Self.length, scene)
        #expect(task["outcome"] == "succeeded", "\(task)")
        try await Self.expectObject(Self.length, in: store)
    }

    @Test func `A bucket that stays full fails the task, with the store's error code`() async throws {
        let store = try ObjectStore()
        let scene = try await Scene(
            store.setting(), configuration: ["retryPolicy": ["initialDelay": 0.1, "maximumAttempts": 2]],
            environment: Self.keys)
        store.next(.put, Array(repeating: .refuse(507, "XMinioStorageFull"), count: 100))
        let task = try await Self.download(Self.small, scene)
        #expect(task["outcome"] == "failed" && task["error"]["name"] == "cannotWriteToFile", "\(task)")
        #expect(task["error"]["underlying"]["code"] == "XMinioStorageFull", "\(task)")
        #expect(task["error"]["underlying"]["message"] == "XMinioStorageFull, so there", "\(task)")
        #expect(task["attempts"]["count"].int == 2)
    }

    @Test(arguments: [Self.small, Self.length]) func `A permanent refusal of the store fails the task at once`(
        _ length: Int
    ) async throws {
        let store = try ObjectStore()
        let scene = try await Self.scene(store)
        store.next(length == Self.small ? .put : .create, [.refuse(404, "NoSuchBucket")])
        let task = try await Self.download(length, scene)
        #expect(task["outcome"] == "failed", "\(task)")
        #expect(task["error"]["underlying"]["code"] == "NoSuchBucket", "\(task)")
        #expect(task["attempts"]["count"].int == 1)
    }

    @Test(arguments: [Self.small, Self.length])
    func `If the store ignores conditions, the object is checked before the write`(
        _ length: Int
    ) async throws {
        let store = try ObjectStore()
        store.ignoreConditions()
        let scene = try await Self.scene(store)
        try await eventually("the operator is told") { scene.service.errors.contains("ignores If-None-Match") }
        #expect(try await Self.download(length, scene, replace: false)["outcome"] == "succeeded")
        let second = try await Self.download(length, scene, seed: 2, replace: false)
        #expect(second["error"]["name"] == "cannotCreateFile", "\(second)")
        try await Self.expectObject(length, in: store)
    }

    @Test func `A slow store slows its own origin, and memory stays small`() async throws {
        let store = try ObjectStore()
        let scene = try await Self.scene(store)
        let gate = Gate()
        store.next(.part, Array(repeating: .hold(gate), count: 3))
        scene.origin.serve("/large", .generated(seed: 5, length: 12 * Self.part))
        let number = try await scene.download(
            "/large", ["destination": ["bucket": "b", "key": "large"]])
        try await eventually("a part is under way") { gate.waiting == 1 }
        try await stays("the origin is not read on", for: .milliseconds(500)) {
            scene.origin.bytesSent("/large") < 4 * Self.part
        }
        // Another app's object in the same bucket is not delayed.
        #expect(try await Self.download(Self.small, scene)["outcome"] == "succeeded")
        gate.open()
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(store.objects["large"]?.bytes == Content.bytes(seed: 5, length: 12 * Self.part))
    }

    @Test func `A service that ends between the parts and the object resumes there`() async throws {
        let store = try ObjectStore()
        let scene = try await Self.scene(store)
        let gate = Gate()
        store.next(.complete, [.hold(gate)])
        scene.origin.serve("/a", .generated(seed: 1, length: Self.length))
        let number = try await scene.download("/a", ["destination": ["bucket": "b", "key": "k"]])
        try await eventually("the completion is under way") { gate.waiting == 1 }
        try await scene.service.kill()
        gate.open()
        try await eventually("it was carried out") { store.objects["k"] != nil }
        try await scene.service.start()
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(scene.origin.requests("/a").count == 1 && store.requests(.complete).count == 1)
        try await Self.expectObject(Self.length, in: store)
        let task = try await scene.task(number)
        #expect(task["response"]["statusCode"] == 200, "\(task)")
    }

    @Test func `A download that is suspended while its last part is refused is completed later`() async throws {
        let store = try ObjectStore()
        let scene = try await Self.scene(store)
        let gate = Gate()
        store.next(.part, [.well, .hold(gate), .refuse(403, "AccessDenied")])
        scene.origin.serve("/a", .generated(seed: 1, length: Self.length))
        let number = try await scene.download("/a", ["destination": ["bucket": "b", "key": "k"]])
        try await eventually("all has come but what is held") {
            gate.waiting == 1 && scene.origin.bytesSent("/a") == Self.length
        }
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/suspend"), 200)
        gate.open()
        try await eventually("the last part was refused") { store.requests(.part).count == 3 }
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/resume"), 200)
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(store.requests(.complete).count == 1)
        try await Self.expectObject(Self.length, in: store)
    }

    @Test func `Credentials come from the machine's role, and are renewed before they expire`() async throws {
        let store = try ObjectStore()
        let metadata = try OriginServer()
        func role(_ id: String, expires: String) -> Resource {
            .text(
                #"{"AccessKeyId": "\#(id)", "SecretAccessKey": "s", "Token": "t-\#(id)", "Expiration": "\#(expires)"}"#)
        }
        metadata.serve("/latest/api/token", .upload(status: 200, body: "proof"))
        metadata.serve("/latest/meta-data/iam/security-credentials/", .text("role\n"))
        let path = "/latest/meta-data/iam/security-credentials/role"
        metadata.serve(
            path, role("second", expires: "2099-01-01T00:00:00Z"),
            turns: [
                [.become(role("first", expires: "2020-01-01T00:00:00Z"))],
                [.become(role("second", expires: "2099-01-01T00:00:00Z"))],
            ])
        let scene = try await Scene(
            ["--bucket", "b=s3://bucket/?endpoint=http://127.0.0.1:\(store.port)&credentials=instance"],
            environment: ["AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:\(metadata.port)"])
        #expect(try await Self.download(Self.small, scene)["outcome"] == "succeeded")
        let request = try #require(store.requests(.put).last)
        #expect(request.fields["Authorization"]?.contains("Credential=second/") == true, "\(request.fields)")
        #expect(request.fields["x-amz-security-token"] == "t-second")
        let asked = metadata.requests
        #expect(asked.first?.method == "PUT")
        #expect(asked.filter { $0.path == path }.allSatisfy { $0.fields["X-aws-ec2-metadata-token"] == "proof" })
    }

    @Test func `Reading a source in a bucket resumes after an interruption, signed each time`() async throws {
        let origin = try OriginServer()
        let length = 9 << 20
        origin.serve("/bucket/in/k", .generated(seed: 3, length: length), turns: [[.cut(after: 5 << 20, .reset)]])
        let scene = try await Scene(
            ["--bucket", "b=s3://bucket/in?endpoint=http://127.0.0.1:\(origin.port)"],
            configuration: ["retryPolicy": ["initialDelay": 0.1]], environment: Self.keys)
        let source: JSON = ["kind": "download", "request": ["bucket": "b", "key": "k"]]
        let number = try #require(try await scene.create(source)["taskIdentifier"].int)
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        let requests = origin.requests("/bucket/in/k").filter { $0.method == "GET" }
        #expect(requests.count == 2 && requests[1].fields["Range"] != nil)
        for request in requests {
            #expect(request.fields["Authorization"]?.hasPrefix("AWS4-HMAC-SHA256 Credential=id/") == true)
        }
        #expect(try await scene.content(number).body == Content.bytes(seed: 3, length: length))
    }

    @Test func `A bucket that the operator removed is reported`() async throws {
        let data = TemporaryFolder()
        let origin = try OriginServer(serving: ["/in": .text("in"), "/out": .upload()])
        do {
            let first = try await Scene(
                ["--bucket", "b=s3://bucket/?endpoint=http://127.0.0.1:9"], environment: Self.keys, data: data)
            let request: JSON = ["url": .string(origin.url("/in"))]
            let object: JSON = ["bucket": "b", "key": "k"]
            try await first.create([
                "kind": "download", "state": "suspended", "request": request, "destination": object,
            ])
            try await first.create(["kind": "download", "state": "suspended", "request": object])
            try await first.create(
                [
                    "kind": "upload", "state": "suspended", "request": ["url": .string(origin.url("/out"))],
                    "body": object,
                ])
            try await first.service.terminate()
        }
        let scene = try await Scene(configuration: nil, data: data)
        for number in 1...3 {
            expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/resume"), 200)
            let task = try await scene.completed(number)
            #expect(task["outcome"] == "failed", "\(task)")
            #expect(task["error"]["underlying"]["code"] == "NoSuchBucket", "\(task)")
        }
        #expect(origin.requests.isEmpty)
    }

    @Test(arguments: [10, 100_000]) func `An error page of a server does not become the object`(
        _ length: Int
    ) async throws {
        let store = try ObjectStore()
        let scene = try await Self.scene(store)
        let page = String(repeating: "n", count: length)
        scene.origin.serve("/a", .text(page, status: 404))
        let number = try await scene.download("/a", ["destination": ["bucket": "b", "key": "k"]])
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "httpError" && task["response"]["statusCode"] == 404, "\(task)")
        #expect(store.objects["k"] == nil && store.requests(.put).isEmpty && store.requests(.create).isEmpty)
        // The service has its first 64 KiB.
        #expect(try await scene.content(number).body == Array(page.utf8.prefix(65_536)))
    }

    @Test func `A redirect away from the store does not forward the signature`() async throws {
        let (origin, other) = (try OriginServer(), try OriginServer())
        other.serve("/x", .generated(seed: 4, length: 100))
        origin.serve("/bucket/k", .text(""), always: [.redirect(other.url("/x"))])
        let scene = try await Scene(
            ["--bucket", "b=s3://bucket/?endpoint=http://127.0.0.1:\(origin.port)"], environment: Self.keys)
        let source: JSON = ["kind": "download", "request": ["bucket": "b", "key": "k"]]
        let number = try #require(try await scene.create(source)["taskIdentifier"].int)
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        let request = try #require(other.requests("/x").first)
        #expect(request.fields["Authorization"] == nil && request.fields["x-amz-date"] == nil, "\(request.fields)")
    }

    @Test(arguments: [
        (#"{"request": {"bucket": "c", "key": "k"}}"#, "/request/bucket"),
        (#"{"request": {"bucket": "b"}}"#, "/request/key"),
        (#"{"request": {"bucket": "b", "key": "a/../b"}}"#, "/request/key"),
        (#"{"request": {"bucket": "b", "key": "k", "url": "http://a/"}}"#, "/request/url"),
        (#"{"request": {"bucket": "b", "key": "k", "method": "HEAD"}}"#, "/request/method"),
        (#"{"request": {"bucket": "b", "key": "k", "headers": {"X-Amz-Date": "1"}}}"#, "/request/headers/X-Amz-Date"),
        (#"{"request": {"bucket": "b", "key": "k"}, "segments": 4}"#, "/segments"),
        (#"{"request": {}}"#, "/request/url"),
        (#"{"request": {"url": "http://a/"}, "destination": {"bucket": "c", "key": "k"}}"#, "/destination/bucket"),
        (#"{"request": {"url": "http://a/"}, "destination": {"bucket": "b", "key": ".."}}"#, "/destination/key"),
        (#"{"request": {"url": "http://a/"}, "destination": {"bucket": "b", "path": "k"}}"#, "/destination"),
        (#"{"request": {"url": "http://a/"}, "destination": {"key": "k"}}"#, "/destination/bucket"),
        (
            #"{"request": {"url": "http://a/"}, "destination": {"bucket": "b", "key": "k", "metadata": {"a": "\u00e9"}}}"#,
            "/destination/metadata/a"
        ),
        (
            #"{"request": {"url": "http://a/"}, "destination": {"bucket": "b", "key": "k", "metadata": {"Urlsessiond": "x"}}}"#,
            "/destination/metadata/Urlsessiond"
        ),
        (
            #"{"request": {"url": "http://a/"}, "destination": {"bucket": "b", "key": "k"}, "mirrors": ["http://b/"]}"#,
            "/mirrors"
        ),
    ])
    func `An invalid order is refused with its position`(_ task: String, _ pointer: String) async throws {
        let scene = try await Scene(
            ["--bucket", "b=s3://bucket/?endpoint=http://127.0.0.1:9"], environment: Self.keys)
        let json = #"{"kind": "download", "# + task.dropFirst()
        let answer = try await scene.api.send(
            "POST", "/v1/sessions/s/tasks", headers: [("Content-Type", "application/json")], body: Array(json.utf8))
        expectProblem(answer, 422, "invalid-value", pointer: pointer)
    }
}
