import Core
import Glibc
import TestSupport
import Testing

/// docs/transfers.md "Content": bodies and content.
@Suite struct BodyTests {
    private func digestField(_ bytes: [UInt8]) -> String {
        let hex = Array(Content.sha256(of: bytes).utf8)
        let raw = stride(from: 0, to: hex.count, by: 2).map {
            UInt8(String(decoding: hex[$0..<$0 + 2], as: UTF8.self), radix: 16) ?? 0
        }
        return "sha-256=:\(Base64Text.encode(raw)):"
    }

    @Test func `A body is stored once and described`() async throws {
        let scene = try await Scene()
        for length in [0, 10, 64 << 10, 3_000_000] {
            let bytes = Content.bytes(seed: 1, length: length)
            let made = try await scene.api.send("POST", "/v1/bodies", body: bytes)
            expect(made, 201)
            let identifier = try #require(made.json["id"].string)
            #expect(identifier.hasPrefix("body_") && made.fields["Location"] == "/v1/bodies/\(identifier)")
            #expect(made.json["length"].int == length)
            #expect(made.json["digest"]["value"].string == Content.sha256(of: bytes), "\(made.text)")
            #expect(made.json["expiresAt"].string != nil)
            let read = try await scene.api.get("/v1/bodies/\(identifier)")
            #expect(read.status == 200 && read.json["length"].int == length, "\(read.text.prefix(200))")
            expect(try await scene.api.send("HEAD", "/v1/bodies/\(identifier)"), 200)
            expect(try await scene.api.delete("/v1/bodies/\(identifier)"), 204)
            expectProblem(try await scene.api.get("/v1/bodies/\(identifier)"), 404, "not-found")
        }
        let chunks = Array("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n".utf8)
        let chunked = try await scene.api.send(
            "POST", "/v1/bodies", headers: [("Transfer-Encoding", "chunked")], body: chunks)
        #expect(chunked.status == 201 && chunked.json["length"] == 5, "\(chunked.text)")
    }

    @Test func `A body with another digest is not stored`() async throws {
        let scene = try await Scene()
        let bytes = Content.bytes(seed: 1, length: 200_000)
        for name in ["Content-Digest", "Repr-Digest"] {
            let good = try await scene.api.send(
                "POST", "/v1/bodies", headers: [(name, digestField(bytes))], body: bytes)
            expect(good, 201)
            expect(try await scene.api.delete("/v1/bodies/\(good.json["id"].string ?? "")"), 204)
            let bad = try await scene.api.send(
                "POST", "/v1/bodies", headers: [(name, digestField([1]))], body: bytes)
            expectProblem(bad, 422, "digest-mismatch")
        }
        try await eventually("no file is left") {
            filesBelow(scene.service.data.file("data/bodies")).isEmpty
                && filesBelow(scene.service.data.file("data/partial")).isEmpty
        }
    }

    @Test func `A client that dies leaves no body`() async throws {
        let scene = try await Scene()
        let exchange = try await scene.api.begin(
            "POST", "/v1/bodies", headers: [("Content-Length", "1000000")],
            body: Content.bytes(seed: 1, length: 500_000))
        try await eventually("bytes arrive") { !filesBelow(scene.service.data.file("data/partial")).isEmpty }
        exchange.abort()
        try await eventually("no file is left") {
            filesBelow(scene.service.data.file("data/partial")).isEmpty
                && filesBelow(scene.service.data.file("data/bodies")).isEmpty
        }
    }

    @Test func `A body can be sent in parts`() async throws {
        let scene = try await Scene()
        let bytes = Content.bytes(seed: 1, length: 300_000)
        let version = ("Upload-Draft-Interop-Version", "8")
        let made = try await scene.api.send(
            "POST", "/v1/bodies", headers: [version, ("Upload-Complete", "?0")], body: Array(bytes[..<100_000]))
        expect(made, 201)
        let location = try #require(made.fields["Location"])
        let path = String(
            location.drop { $0 != "/" }.hasPrefix("//") ? location.dropFirst(7).drop { $0 != "/" } : location[...])
        let head = try await scene.api.send("HEAD", path, headers: [version])
        #expect([200, 204].contains(head.status) && head.fields["Upload-Offset"] == "100000", "\(head.fields)")
        #expect(head.fields["Upload-Complete"] == "?0")
        func patch(_ offset: Int, _ part: ArraySlice<UInt8>, complete: Bool) async throws -> APIClient.Answer {
            try await scene.api.send(
                "PATCH", path,
                headers: [
                    version, ("Content-Type", "application/partial-upload"), ("Upload-Offset", "\(offset)"),
                    ("Upload-Complete", complete ? "?1" : "?0"),
                ], body: Array(part))
        }
        expectProblem(try await patch(50_000, bytes[50_000..<60_000], complete: false), 409, "upload-offset-mismatch")
        #expect((200..<300).contains(try await patch(100_000, bytes[100_000..<200_000], complete: false).status))
        try await scene.service.restart()
        let kept = try await scene.api.send("HEAD", path, headers: [version])
        #expect(kept.fields["Upload-Offset"] == "200000", "\(kept.fields)")
        let last = try await patch(200_000, bytes[200_000...], complete: true)
        #expect((200..<300).contains(last.status), "\(last.text)")
        scene.origin.serve("/up", .upload())
        let identifier = try #require(path.split(separator: "/").last)
        let number = try await scene.upload("/up", body: ["id": .string(String(identifier))])
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(scene.origin.requests("/up").first?.bodySHA256 == Content.sha256(of: bytes))
    }

    @Test func `A body stays while a task needs it`() async throws {
        let scene = try await Scene()
        let bytes = Content.bytes(seed: 1, length: 200_000)
        let made = try await scene.api.send("POST", "/v1/bodies", body: bytes)
        let identifier = try #require(made.json["id"].string)
        scene.origin.serve("/up", .upload())
        let number = try await scene.upload("/up", body: ["id": .string(identifier)], ["state": "suspended"])
        let deleted = try await scene.api.delete("/v1/bodies/\(identifier)")
        #expect([204, 409].contains(deleted.status), "\(deleted.text)")
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/resume"), 200)
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(scene.origin.requests("/up").first?.bodySHA256 == Content.sha256(of: bytes))
        let unknown: JSON = [
            "kind": "upload", "request": ["url": .string(scene.origin.url("/up"))], "body": ["id": "body_unknown"],
        ]
        #expect([404, 422].contains(try await scene.api.post("/v1/sessions/s/tasks", unknown).status))
    }
}

@Suite struct ContentReadingTests {
    @Test(arguments: [1000, 300_000])
    func `Content is read completely, in ranges and with its digest`(_ length: Int) async throws {
        let scene = try await Scene()
        let resource = Resource.generated(seed: 1, length: length).with {
            $0.contentType = "text/csv"
            $0.fields.append("Content-Disposition", "attachment; filename=\"../../table 1.csv\"")
        }
        let gate = Gate()
        scene.origin.serve("/a", resource, turns: [[.hold(gate)]])
        let number = try await scene.download("/a")
        expectProblem(try await scene.content(number), 404, "content-not-ready")
        gate.open()
        try await scene.completed(number)
        let bytes = Content.bytes(seed: 1, length: length)
        let whole = try await scene.content(number)
        #expect(whole.status == 200 && whole.body == bytes)
        #expect(whole.fields["Content-Type"] == "text/csv")
        let disposition = whole.fields["Content-Disposition"] ?? ""
        #expect(disposition.hasPrefix("attachment") && disposition.contains("table"), "\(disposition)")
        #expect(!disposition.contains(".."), "\(disposition)")
        #expect(whole.fields["Accept-Ranges"] == "bytes")
        let etag = try #require(whole.etag)
        let digest = try #require(whole.fields["Repr-Digest"])
        #expect(digest.hasPrefix("sha-256=:"))
        let head = try await scene.api.send("HEAD", "/v1/sessions/s/tasks/\(number)/content")
        #expect(head.status == 200 && head.fields["Content-Length"] == "\(length)" && head.body.isEmpty)
        for (field, range) in [
            ("bytes=0-0", 0..<1), ("bytes=10-", 10..<length), ("bytes=-5", length - 5..<length),
            ("bytes=100-199", 100..<200), ("bytes=0-99999999", 0..<length),
        ] {
            let part = try await scene.content(number, headers: [("Range", field)])
            #expect(part.status == 206 && part.body == Array(bytes[range]), "\(field)")
            let expected = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)"
            #expect(part.fields["Content-Range"] == expected, "\(field)")
            #expect(part.fields["Repr-Digest"] == digest)
        }
        let beyond = try await scene.content(number, headers: [("Range", "bytes=\(length)-")])
        expectProblem(beyond, 416, "range-not-satisfiable")
        #expect(beyond.fields["Content-Range"] == "bytes */\(length)")
        expect(try await scene.content(number, headers: [("If-None-Match", etag)]), 304)
        let stale = try await scene.content(number, headers: [("Range", "bytes=5-"), ("If-Range", "\"other\"")])
        #expect(stale.status == 200 && stale.body.count == length)
        let fresh = try await scene.content(number, headers: [("Range", "bytes=5-"), ("If-Range", etag)])
        expect(fresh, 206)
    }

    @Test func `Content outlives the completion, until it is claimed`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .generated(seed: 1, length: 300_000))
        let number = try await scene.download("/a")
        try await scene.completed(number)
        let last = try #require(try await scene.session()["lastEventSeq"].int)
        expect(try await scene.api.post("/v1/sessions/s/events/ack", ["through": .integer(last)]), 200)
        try await scene.service.restart()
        expect(try await scene.content(number), 200)
        #expect(try await scene.task(number)["content"]["expiresAt"].string != nil)
        let claimed = try await scene.api.post("/v1/sessions/s/tasks/\(number)/content/claim")
        expect(claimed, 200)
        expectProblem(try await scene.content(number), 410, "content-expired")
        #expect(try await scene.task(number)["state"] == "completed")
        try await eventually("the file is removed") { filesBelow(scene.service.data.file("data/contents")).isEmpty }
        #expect(try await scene.session()["lastEventSeq"].int == last)
    }

    @Test(arguments: [100_000, nil] as [Int?])
    func `A content that the disk has lost or truncated is reported at once, and logged once`(
        _ left: Int?
    ) async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .generated(seed: 1, length: 300_000))
        let number = try await scene.download("/a")
        try await scene.completed(number)
        let contents = scene.service.data.file("data/contents")
        let file = "\(contents)/\(try #require(filesBelow(contents).first))"
        #expect((left.map { truncate(file, $0) } ?? unlink(file)) == 0)
        for range in [[], [("Range", "bytes=200000-")], [("Range", "bytes=0-9")]] {
            expectProblem(try await scene.content(number, headers: range), 410, "content-expired")
        }
        expect(try await scene.api.send("HEAD", "/v1/sessions/s/tasks/\(number)/content"), 410)
        // Later log lines arrive later.
        #expect(try await scene.service.terminate() == .exited(0))
        let lines = scene.service.errors.split(separator: "\n").filter {
            $0.contains(#""level":"error""#) && $0.contains(#""length":300000"#)
                && $0.contains(#""found":\#(left ?? 0)"#)
        }
        #expect(lines.count == 1, "\(scene.service.errors)")
    }

    @Test func `A claimed content is missing without a log line`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .generated(seed: 1, length: 300_000))
        let number = try await scene.download("/a")
        try await scene.completed(number)
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/content/claim"), 200)
        expectProblem(try await scene.content(number), 410, "content-expired")
        #expect(try await scene.service.terminate() == .exited(0))
        #expect(!scene.service.errors.contains(#""level":"error""#), "\(scene.service.errors)")
    }

    @Test func `A destination receives the whole file or none`() async throws {
        let files = TemporaryFolder()
        let scene = try await Scene(["--files-root", "out=\(files.path)"])
        scene.origin.serve("/a", .generated(seed: 1, length: 300_000))
        scene.origin.serve("/b", .generated(seed: 2, length: 100))
        func download(_ path: String, _ destination: JSON) async throws -> JSON {
            try await scene.completed(try await scene.download(path, ["destination": destination]))
        }
        let first = try await download("/a", ["root": "out", "path": "dir/sub/a.bin"])
        #expect(first["outcome"] == "succeeded", "\(first)")
        #expect(readFile(files.file("dir/sub/a.bin")) == Content.bytes(seed: 1, length: 300_000))
        let second = try await download("/b", ["root": "out", "path": "dir/sub/a.bin"])
        #expect(second["outcome"] == "failed" && second["error"]["code"] == -3000, "\(second)")
        #expect(second["error"]["name"] == "cannotCreateFile")
        #expect(readFile(files.file("dir/sub/a.bin"))?.count == 300_000)
        let third = try await download("/b", ["root": "out", "path": "dir/sub/a.bin", "replace": true])
        #expect(third["outcome"] == "succeeded", "\(third)")
        #expect(readFile(files.file("dir/sub/a.bin")) == Content.bytes(seed: 2, length: 100))
        #expect(filesBelow(files.path) == ["dir/sub/a.bin"])
    }

    @Test func `A root may be a symbolic link, whose target is found at the start`() async throws {
        let files = TemporaryFolder()
        files.makeFolder("root")
        files.makeFolder("other")
        #expect(makeSymbolicLink(from: files.file("link"), to: files.file("root")))
        let scene = try await Scene(["--files-root", "out=\(files.file("link"))"])
        unlink(files.file("link"))
        #expect(makeSymbolicLink(from: files.file("link"), to: files.file("other")))
        scene.origin.serve("/a", .generated(seed: 1, length: 100))
        let number = try await scene.download("/a", ["destination": ["root": "out", "path": "a.bin"]])
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(filesBelow(files.file("root")) == ["a.bin"] && filesBelow(files.file("other")).isEmpty)
        scene.origin.serve("/up", .upload())
        let upload = try await scene.upload("/up", body: ["root": "out", "path": "a.bin"])
        #expect(try await scene.completed(upload)["outcome"] == "succeeded")
    }

    @Test func `A destination never leaves its root`() async throws {
        let files = TemporaryFolder()
        files.makeFolder("root")
        files.makeFolder("outside")
        let scene = try await Scene(["--files-root", "out=\(files.file("root"))"])
        #expect(makeSymbolicLink(from: files.file("root/link"), to: files.file("outside")))
        scene.origin.serve("/a", .generated(seed: 1, length: 100))
        for path in ["../outside/x", "/etc/x", "a/../../x", "", ".", "a/", "a\u{0}b"] {
            let task = scene.downloadOf("/a", ["destination": ["root": "out", "path": .string(path)]])
            let answer = try await scene.api.post("/v1/sessions/s/tasks", task)
            expect(answer, 422)
            #expect(answer.pointers.contains { $0.hasPrefix("/destination") }, "\(path): \(answer.text)")
        }
        let unknown = scene.downloadOf("/a", ["destination": ["root": "nowhere", "path": "x"]])
        expect(try await scene.api.post("/v1/sessions/s/tasks", unknown), 422)
        let through = try await scene.download(
            "/a", ["destination": ["root": "out", "path": "link/x", "replace": true]])
        let task = try await scene.completed(through)
        #expect(task["outcome"] == "failed" && task["error"]["code"] == -3000, "\(task)")
        #expect(filesBelow(files.file("outside")).isEmpty)
    }
}
