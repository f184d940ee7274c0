import Core
import Glibc
import TestSupport
import Testing

/// docs/transfers.md "Requests" and "Resuming uploads": uploads and requests with a body.
@Suite struct UploadTests {
    private static let quick: JSON = ["retryPolicy": ["initialDelay": 0.1, "maximumDelay": 0.1]]

    @Test func `Bytes are read from every kind of body`() async throws {
        let files = TemporaryFolder()
        let bytes = Content.bytes(seed: 5, length: 200_000)
        files.makeFolder("dir")
        files.write(bytes, to: "dir/f.bin")
        let scene = try await Scene(["--files-root", "in=\(files.path)"])
        scene.origin.serve("/source", .generated(seed: 6, length: 100_000))
        let stored = try await scene.api.send("POST", "/v1/bodies", body: bytes)
        expect(stored, 201)
        let download = try await scene.download("/source")
        try await scene.completed(download)
        let bodies: [(String, JSON, [UInt8])] = [
            ("/id", ["id": stored.json["id"]], bytes), ("/text", ["text": "grüß\n"], Array("grüß\n".utf8)),
            ("/base64", ["base64": "AAECAw=="], [0, 1, 2, 3]), ("/file", ["root": "in", "path": "dir/f.bin"], bytes),
            ("/relay", ["task": .integer(download)], Content.bytes(seed: 6, length: 100_000)),
            ("/empty", ["text": ""], []),
        ]
        for (path, body, expected) in bodies {
            scene.origin.serve(path, .upload(status: 201, body: "thanks"))
            let number = try await scene.upload(path, body: body)
            let task = try await scene.completed(number)
            #expect(task["outcome"] == "succeeded" && task["kind"] == "upload", "\(path): \(task)")
            #expect(task["countOfBytesSent"].int == expected.count, "\(path): \(task)")
            let request = try #require(scene.origin.requests(path).first)
            #expect(request.method == "PUT" && request.bodyLength == expected.count, "\(path)")
            #expect(request.bodySHA256 ?? Content.sha256(of: []) == Content.sha256(of: expected), "\(path)")
            #expect(request.fields["Content-Length"] == String(expected.count), "\(path)")
            #expect(try await scene.content(number).text == "thanks", "\(path)")
        }
        scene.origin.serve("/json", .upload())
        try await scene.completed(try await scene.upload("/json", body: ["json": ["a": [1, nil, "x"]]]))
        let request = try #require(scene.origin.requests("/json").first)
        #expect(try JSON(parsing: request.body) == ["a": [1, nil, "x"]])
        let events = try await scene.events()
        expectSound(events)
        let uploads = Set(
            events.filter { $0["type"] == "task.didFinishDownloading" }.compactMap { $0["taskIdentifier"].int })
        #expect(uploads == [download])
    }

    @Test func `A source that changes after creation does not change the upload`() async throws {
        let files = TemporaryFolder()
        let bytes = Content.bytes(seed: 5, length: 300_000)
        files.write(bytes, to: "f")
        let scene = try await Scene(["--files-root", "in=\(files.path)"])
        scene.origin.serve("/up", .upload())
        let number = try await scene.upload("/up", body: ["root": "in", "path": "f"], ["state": "suspended"])
        files.write(Content.bytes(seed: 6, length: 1000), to: "f")
        try await scene.service.restart()
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/resume"), 200)
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(scene.origin.requests("/up").first?.bodySHA256 == Content.sha256(of: bytes))
    }

    @Test func `An upload after one with a digest credential arrives complete`() async throws {
        let scene = try await Scene()
        try await scene.makeSession("t")
        let made = try await scene.api.post(
            "/v1/credentials",
            [
                "protectionSpace": [
                    "host": "127.0.0.1", "port": .integer(Int(scene.origin.port)), "protocol": "http", "realm": "r",
                    "authenticationMethod": "HTTPDigest",
                ], "credential": ["user": "u", "password": "p"],
            ])
        expect(made, 201)
        scene.origin.serve("/gone", .text("no", status: 404))
        scene.origin.serve("/up", .upload())
        for path in ["/gone", "/up"] {
            for session in ["s", "t"] {
                let number = try await scene.upload(path, body: ["text": "all of it"], in: session)
                let task = try await scene.completed(number, in: session)
                #expect(task["countOfBytesSent"] == 9, "\(task)")
            }
        }
        #expect(scene.origin.requests.map(\.bodyLength) == [9, 9, 9, 9])
    }

    @Test(.enabled(if: !TestStore.isOnServer))
    func `A stored body that changed on the disk is not sent`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/source", .generated(seed: 6, length: 200_000))
        scene.origin.serve("/up", .upload())
        let stored = try await scene.api.send("POST", "/v1/bodies", body: Content.bytes(seed: 5, length: 200_000))
        let source = try await scene.download("/source")
        try await scene.completed(source)
        let data = scene.service.data.file("data")
        for folder in ["bodies", "contents"] {
            let files = filesBelow("\(data)/\(folder)")
            #expect(files.count == 1)
            for file in files { try Self.flip("\(data)/\(folder)/\(file)", at: 100_000) }
        }
        for body in [["id": stored.json["id"]], ["task": .integer(source)]] as [JSON] {
            let task = try await scene.completed(try await scene.upload("/up", body: body))
            #expect(task["outcome"] == "failed" && task["error"]["code"] == -1021, "\(task)")
            #expect(task["error"]["underlying"]["code"] == "body-damaged", "\(task)")
            #expect(task["attempts"]["count"] == 1, "\(task)")
        }
        #expect(scene.origin.requests("/up").allSatisfy { $0.bodyLength < 200_000 })
        #expect(scene.service.errors.contains("its file differs from the stored body"))
    }

    private static func flip(_ path: String, at offset: off_t) throws {
        let file = open(path, O_RDWR)
        defer { close(file) }
        var byte: UInt8 = 0
        try #require(pread(file, &byte, 1, offset) == 1)
        byte ^= 1
        try #require(pwrite(file, &byte, 1, offset) == 1)
    }

    @Test func `Files outside the roots are not read`() async throws {
        let files = TemporaryFolder()
        files.makeFolder("root")
        files.write([1], to: "secret")
        let scene = try await Scene(["--files-root", "in=\(files.file("root"))"])
        #expect(makeSymbolicLink(from: files.file("root/link"), to: files.file("secret")))
        let request: JSON = ["url": .string(scene.origin.url("/up"))]
        for (root, path) in [
            ("in", "../secret"), ("in", files.file("secret")), ("in", "link"), ("in", "missing"), ("other", "a"),
            ("in", ""), ("in", "."), ("in", "a\u{0}b"),
        ] {
            let body: JSON = ["root": .string(root), "path": .string(path)]
            let answer = try await scene.api.post(
                "/v1/sessions/s/tasks", ["kind": "upload", "request": request, "body": body])
            expect(answer, 422)
            #expect(answer.pointers.contains { $0.hasPrefix("/body") }, "\(path): \(answer.text)")
        }
        #expect(scene.origin.requests.isEmpty)
    }

    @Test func `A broken upload restarts from its snapshot`() async throws {
        let scene = try await Scene(configuration: Self.quick)
        let bytes = Content.bytes(seed: 5, length: 500_000)
        let identifier = try await scene.api.send("POST", "/v1/bodies", body: bytes).json["id"]
        scene.origin.serve(
            "/up", .upload(), turns: [[.cutUpload(after: 100_000, .reset)], [.noAnswer()], [.status(503)]])
        let number = try await scene.upload("/up", body: ["id": identifier])
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded" && task["attempts"]["count"] == 4, "\(task)")
        #expect(scene.origin.requests("/up").last?.bodySHA256 == Content.sha256(of: bytes))
    }

    @Test func `A non-idempotent upload is retried after a status only with a key`() async throws {
        let scene = try await Scene(configuration: ["retryPolicy": ["statusCodes": [503], "initialDelay": 0.1]])
        for path in ["/plain", "/keyed"] { scene.origin.serve(path, .upload(status: 200), turns: [[.status(503)]]) }
        func post(_ path: String, _ headers: JSON) async throws -> JSON {
            let request: JSON = ["url": .string(scene.origin.url(path)), "method": "POST", "headers": headers]
            return try await scene.completed(try await scene.upload(path, body: ["text": "x"], ["request": request]))
        }
        let plain = try await post("/plain", [:])
        #expect(plain["outcome"] == "httpError" && plain["response"]["statusCode"] == 503, "\(plain)")
        #expect(scene.origin.requests("/plain").count == 1)
        let keyed = try await post("/keyed", ["Idempotency-Key": "k"])
        #expect(keyed["outcome"] == "succeeded", "\(keyed)")
        #expect(scene.origin.requests("/keyed").map { $0.fields["Idempotency-Key"] } == ["k", "k"])
    }

    @Test func `A download may have a request body`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/q", .echo)
        let request: JSON = [
            "url": .string(scene.origin.url("/q")), "method": "POST", "headers": ["Content-Type": "text/plain"],
            "body": ["text": "question"],
        ]
        let number = try await scene.download("/q", ["request": request])
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded" && task["kind"] == "download", "\(task)")
        #expect(try await scene.content(number).text == "question")
        #expect(scene.origin.requests.first?.fields.values("Content-Type") == ["text/plain"])
    }

    @Test func `An upload survives a kill`() async throws {
        let scene = try await Scene(configuration: Self.quick)
        let bytes = Content.bytes(seed: 5, length: 300_000)
        let identifier = try await scene.api.send("POST", "/v1/bodies", body: bytes).json["id"]
        let gate = Gate()
        scene.origin.serve("/up", .upload(), turns: [[.hold(gate)]])
        let number = try await scene.upload("/up", body: ["id": identifier])
        try await eventually("it is sent") { gate.waiting == 1 }
        try await scene.service.restart()
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(scene.origin.requests("/up").last?.bodySHA256 == Content.sha256(of: bytes))
        expectSound(try await scene.events())
    }
}
