import Base
import Core
import TestSupport
import Testing

/// docs/sets.md: versions, what readers see of them, and their events.
@Suite struct SetTests {
    @Test func `Files are published as one version, and read with ranges`() async throws {
        let scene = try await Scene()
        let made = try await scene.makeSet("m", ["keep": 1])
        #expect(made.fields["Location"] == "/v1/sets/m" && made.etag != nil && made.json["current"] == .null)
        expect(try await scene.api.put("/v1/sets/m", [:]), 200)
        scene.origin.serve("/a", .generated(seed: 1, length: 100_000))
        scene.origin.serve("/b", .text("two"))
        let digest: JSON = ["algorithm": "sha-256", "value": .string(Content.sha256(seed: 1, length: 100_000))]
        let files = [
            scene.file("d/ä b.bin", at: "/a", ["expectedDigest": digest, "length": 100_000]), scene.file("c", at: "/b"),
        ]
        let created = try await scene.send("1", files: files)
        expect(created, 201)
        let id = try #require(created.json["versionId"].string)
        #expect(created.fields["Location"] == "/v1/sets/m/versions/\(id)" && id.hasPrefix("sver_"))
        #expect(created.json["files"]["total"] == 2 && created.json["sessionIdentifier"] == "s")
        let version = try await scene.version("1", is: "published")
        #expect(version["bytes"]["total"] == 100_003 && version["files"]["failed"] == 0, "\(version)")
        #expect(try await scene.api.get("/v1/sets/m/versions/\(id)").json["version"] == "1")
        let tasks = try await scene.api.get("/v1/sessions/s/tasks?group=\(id)").json["items"].array ?? []
        #expect(tasks.count == 2 && tasks.allSatisfy { $0["outcome"] == "succeeded" })

        let manifest = try await scene.api.get("/v1/sets/m/manifest")
        expect(manifest, 200)
        #expect(manifest.json["versionId"].string == id && manifest.json["manifestDigest"] == version["manifestDigest"])
        let listed = manifest.json["files"].array ?? []
        #expect(listed.map { $0["path"].string } == ["c", "d/ä b.bin"])
        #expect(listed.last?["digest"] == digest && listed.last?["length"] == 100_000)
        #expect(listed.last?["url"].string == scene.origin.url("/a") && listed.last?["etag"] == "\"v1\"")
        let tag = try #require(manifest.etag)
        expect(try await scene.api.get("/v1/sets/m/versions/1/manifest", headers: [("If-None-Match", tag)]), 304)

        let bytes = Content.bytes(seed: 1, length: 100_000)
        let moved = try await scene.api.get("/v1/sets/m/files/d/%C3%A4%20b.bin")
        expect(moved, 307)
        #expect(moved.fields["Cache-Control"] == "no-store")
        let place = try #require(moved.fields["Location"])
        #expect(place == "/v1/sets/m/versions/\(id)/files/d/%C3%A4%20b.bin")
        let whole = try await scene.api.get(place)
        #expect(whole.body == bytes && whole.etag == "\"\(digest["value"].string ?? "")\"")
        #expect(whole.fields["Repr-Digest"]?.hasPrefix("sha-256=:") == true)
        let part = try await scene.api.get(
            "/v1/sets/m/versions/1/files/d%2F%C3%A4%20b.bin", headers: [("Range", "bytes=10-19")])
        #expect(part.status == 206 && part.body == Array(bytes[10..<20]))
        expect(try await scene.api.get(place, headers: [("If-None-Match", whole.etag ?? "")]), 304)
        expectProblem(
            try await scene.api.get(place, headers: [("Range", "bytes=100000-")]), 416, "range-not-satisfiable")
        let head = try await scene.api.send("HEAD", place)
        #expect(head.status == 200 && head.fields["Content-Length"] == "100000" && head.body.isEmpty)
        expectProblem(try await scene.api.get("/v1/sets/m/versions/1/files/none"), 404, "not-found")
    }

    @Test func `The same request under a name gets the same version, another one is refused`() async throws {
        let scene = try await Scene()
        try await scene.makeSet()
        scene.origin.serve("/a", .text("one"))
        let first = try await scene.create("1", files: [scene.file("a", at: "/a")])
        let again = try await scene.send("1", files: [scene.file("a", at: "/a")])
        #expect(again.status == 200 && again.json["versionId"].string == first && again.fields["Location"] == nil)
        // The same as lines.
        let lines = "{\"session\":\"s\",\"version\":\"1\"}\n\(scene.file("a", at: "/a"))\n"
        let asLines = try await scene.api.send(
            "POST", "/v1/sets/m/versions", headers: [Scene.lines], body: Array(lines.utf8))
        #expect(asLines.status == 200 && asLines.json["versionId"].string == first)
        let other = try await scene.send("1", files: [scene.file("b", at: "/a")])
        expectProblem(other, 409, "set-version-exists", pointer: "/version")
        // Without a name each request is a version.
        let unnamed = try await scene.create(nil, files: [scene.file("a", at: "/a")])
        #expect(try await scene.api.get("/v1/sets/m/versions/\(unnamed)").json["version"].string == unnamed)
        // The name of a failed version is free.
        try await scene.create("2", files: [scene.file("a", at: "/none")])
        try await scene.version("2", is: "failed")
        try await scene.create("2", files: [scene.file("a", at: "/a")])
        try await scene.version("2", is: "published")
    }

    @Test func `Thousands of files are sent as lines, and listed in a manifest`() async throws {
        let scene = try await Scene()
        try await scene.makeSet()
        scene.origin.serve("/a", .text("one"))
        let count = 2000
        let files = (0..<count).reversed().map { scene.file("d\($0 % 10)/\(10_000 + $0)", at: "/a").description }
        let body = (["{\"session\":\"s\",\"version\":\"large\"}"] + files).joined(separator: "\n")
        let created = try await scene.api.send(
            "POST", "/v1/sets/m/versions", headers: [Scene.lines], body: Array(body.utf8))
        expect(created, 201)
        #expect(created.json["files"]["total"].int == count)
        // Three nodes write in turns.
        let limit = Duration.seconds(TestStore.nodes == 1 ? 60 : 180)
        let version = try await scene.version("large", is: "published", within: limit)
        #expect((version["files"]["fetched"].int ?? 0) + (version["files"]["reused"].int ?? 0) == count, "\(version)")
        for headers in [[], [("Accept-Encoding", "gzip")]] {
            // The description is compared with text alone.
            expect(try await scene.service.api.get("/v1/sets/m/manifest", headers: headers), 200)
        }
        let listed = try await scene.api.get("/v1/sets/m/manifest").json["files"].array ?? []
        let paths = listed.compactMap { $0["path"].string }
        #expect(paths.count == count && paths == paths.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
    }

    @Test(arguments: [
        (
            "{\"session\":\"s\"}\n{\"path\":\"a\",\"request\":{\"url\":\"http://h/\"}}\n\n{\"path\":\"../a\"}", 422,
            "Line 4"
        ),
        ("{\"session\":\"s\"}\n{\"path\":", 400, "Line 2"), ("{\"session\":\"s\",\"files\":[]}\n", 422, "Line 1"),
        ("{\"session\":\"s\"}\n", 422, "each following line is a file"), ("", 422, "each following line is a file"),
        ("{\"session\":\"none\"}\n{}", 404, "no session"),
    ])
    func `A refused line is named, and creates nothing`(_ lines: String, _ status: Int, _ said: String) async throws {
        let scene = try await Scene()
        try await scene.makeSet()
        let answer = try await scene.api.send(
            "POST", "/v1/sets/m/versions", headers: [Scene.lines], body: Array(lines.utf8))
        #expect(answer.status == status, "\(answer.text)")
        let texts = [answer.json["detail"].string] + (answer.json["errors"].array ?? []).map { $0["detail"].string }
        #expect(texts.contains { $0?.contains(said) == true }, "\(answer.text)")
        #expect(try await scene.api.get("/v1/sets/m/versions").json["items"] == [])
        #expect(try await scene.session()["taskCounts"]["running"] == 0)
    }

    @Test func `Unusable requests are refused with pointers`() async throws {
        let scene = try await Scene()
        try await scene.makeSet()
        let api = scene.api
        expectProblem(try await scene.send("1"), 422, "invalid-value")
        let file = scene.file("a", at: "/a")
        let badFiles: [(JSON, String)] = [
            (["path": "a//b", "request": ["url": "http://h/"]], "/files/1/path"),
            (["path": "b", "request": ["url": "http://h:99999/"]], "/files/1/request/url"),
            (["path": "b", "request": ["url": "http://[::1"]], "/files/1/request/url"),
            (["path": "b", "request": ["url": "http://h/", "method": "POST"]], "/files/1/request/method"),
        ]
        for (bad, pointer) in badFiles {
            expectProblem(try await scene.send("1", files: [file, bad]), 422, "invalid-value", pointer: pointer)
        }
        for pair in [("a", "a"), ("a", "a/b"), ("a/b", "a")] {
            let files = [scene.file(pair.0, at: "/a"), scene.file(pair.1, at: "/a")]
            expectProblem(try await scene.send("1", files: files), 422, "invalid-value")
        }
        let hub: JSON = ["kind": "huggingface", "repository": "o/n", "allow": ["["]]
        expectProblem(try await scene.send("1", source: hub), 422, "invalid-value", pointer: "/source/allow/0")
        expectProblem(try await scene.send("1", files: [file], to: "none"), 404, "not-found")
        expectProblem(try await scene.send("1", files: [file], in: "none"), 404, "not-found")
        try await scene.makeSession("over")
        try await api.post("/v1/sessions/over/invalidate-and-cancel")
        expectProblem(try await scene.send("1", files: [file], in: "over"), 409, "session-invalidated")
        expectProblem(
            try await api.put("/v1/sets/n", ["destination": ["root": "none", "path": "p"]]), 422, "invalid-value",
            pointer: "/destination/root")
        #expect(try await api.get("/v1/sets/m/versions").json["items"] == [])
    }

    @Test func `A failed file fails the version, and a retry fetches it alone`() async throws {
        let scene = try await Scene()
        try await scene.makeSet()
        scene.origin.serve("/a", .text("one"))
        try await scene.create("1", files: [scene.file("a", at: "/a")])
        try await scene.version("1", is: "published")
        try await scene.create("2", files: [scene.file("a", at: "/a"), scene.file("b", at: "/later")])
        let failed = try await scene.version("2", is: "failed")
        #expect(failed["files"]["failed"] == 1 && failed["failures"].array?.count == 1, "\(failed)")
        let failure = failed["failures"][0]
        #expect(failure["path"] == "b" && failure["taskIdentifier"].int != nil && failure["detail"].string != nil)
        try await eventually("it is logged") { scene.service.errors.contains("b: The origin answered 404.") }
        #expect(try await scene.current() == "1")
        expectProblem(try await scene.api.get("/v1/sets/m/versions/2/manifest"), 404, "content-not-ready")
        expectProblem(try await scene.api.get("/v1/sets/m/versions/2/files/a"), 404, "content-not-ready")
        expectProblem(try await scene.api.post("/v1/sets/m/current", ["version": "2"]), 409, "set-version-state")
        scene.origin.serve("/later", .text("two"))
        let before = scene.origin.requests("/a").count
        expect(try await scene.api.post("/v1/sets/m/versions/2/retry"), 200)
        try await scene.version("2", is: "published")
        #expect(scene.origin.requests("/a").count == before, "what is there is not fetched again")
        #expect(try await scene.current() == "2")
        expectProblem(try await scene.api.post("/v1/sets/m/versions/2/retry"), 409, "set-version-state")
        // A digest that does not hold fails as well.
        let wrong: JSON = ["algorithm": "sha-256", "value": .string(String(repeating: "0", count: 64))]
        try await scene.create("3", files: [scene.file("a", at: "/a", ["expectedDigest": wrong])])
        try await scene.version("3", is: "failed")
        try await scene.create("4", files: [scene.file("a", at: "/a", ["length": 4])])
        try await scene.version("4", is: "failed")
        #expect(try await scene.current() == "2")
    }

    @Test func `A set switches to a kept version if it is unchanged`() async throws {
        let scene = try await Scene()
        try await scene.makeSet()
        for name in ["1", "2"] {
            scene.origin.serve("/a", .text(name))
            try await scene.create(name, files: [scene.file("a", at: "/a")])
            try await scene.version(name, is: "published")
        }
        let set = try await scene.api.get("/v1/sets/m")
        #expect(set.json["versions"].array?.map { $0["version"].string } == ["2", "1"])
        let tag = try #require(set.etag)
        expect(try await scene.api.get("/v1/sets/m", headers: [("If-None-Match", tag)]), 304)
        let switched = try await scene.api.post("/v1/sets/m/current", ["version": "1"], headers: [("If-Match", tag)])
        expect(switched, 200)
        #expect(switched.json["current"]["version"] == "1" && switched.json["current"]["replacedAt"] == .null)
        expectProblem(
            try await scene.api.post("/v1/sets/m/current", ["version": "2"], headers: [("If-Match", tag)]), 412,
            "precondition-failed")
        expectProblem(try await scene.api.post("/v1/sets/m/current", ["version": "9"]), 404, "not-found")
        #expect(try await scene.api.get("/v1/sets/m/manifest").json["version"] == "1")
        let place = try #require(try await scene.api.get("/v1/sets/m/files/a").fields["Location"])
        #expect(try await scene.api.get(place).text == "1")
        let event = try await scene.event("the switch") { $0["data"]["cause"] == "switched" }
        #expect(event["type"] == "set.didPublish" && event["data"]["version"] == "1" && event["data"]["files"] == 1)
        expectProblem(
            try await scene.api.put("/v1/sets/m", ["destination": ["root": "r", "path": "p"]]), 422, "invalid-value")
        expectProblem(try await scene.api.put("/v1/sets/m", ["layout": "hf-cache"]), 409, "set-has-versions")
    }

    @Test func `A switch is no event of a session that has become invalid`() async throws {
        let scene = try await Scene()
        try await scene.makeSet()
        scene.origin.serve("/a", .text("a"))
        for name in ["1", "2"] {
            try await scene.create(name, files: [scene.file("a", at: "/a", ["length": 1])])
            try await scene.version(name, is: "published")
        }
        expect(try await scene.api.post("/v1/sessions/s/finish-tasks-and-invalidate"), 202)
        _ = try await scene.event("the last event") { $0["type"] == "session.didBecomeInvalid" }
        expect(try await scene.api.post("/v1/sets/m/current", ["version": "1"]), 200)
        #expect(try await scene.current() == "1")
        #expect(try await scene.events().last?["type"] == "session.didBecomeInvalid")
    }

    @Test func `Unneeded versions are removed, and kept ones stay`() async throws {
        let scene = try await Scene()
        try await scene.makeSet("m", ["keep": 1, "grace": 0])
        for name in ["1", "2", "3"] {
            scene.origin.serve("/a", .text(name))
            try await scene.create(name, files: [scene.file("a", at: "/a")])
            try await scene.version(name, is: "published")
        }
        try await eventually("version 1 is removed", within: .seconds(120)) {
            try await scene.api.get("/v1/sets/m/versions/1").status == 404
        }
        let set = try await scene.api.get("/v1/sets/m").json
        #expect(set["versions"].array?.map { $0["version"].string } == ["3", "2"])
        expect(try await scene.api.get("/v1/sets/m/versions/2/files/a"), 200)
    }

    @Test func `A version in flight is cancelled, and a set is deleted with its tasks`() async throws {
        let scene = try await Scene()
        try await scene.makeSet()
        let gate = Gate()
        scene.origin.serve("/held", .text("one"), always: [.hold(gate)])
        let first = try await scene.create("1", files: [scene.file("a", at: "/held")])
        try await scene.origin.waitForRequests(1, path: "/held")
        expectProblem(try await scene.api.get("/v1/sets/m/manifest"), 404, "content-not-ready")
        expect(try await scene.api.post("/v1/sets/m/versions/1/cancel"), 202)
        try await scene.version("1", is: "cancelled")
        expect(try await scene.api.post("/v1/sets/m/versions/1/cancel"), 202)
        try await eventually("its task is cancelled") {
            let tasks = try await scene.api.get("/v1/sessions/s/tasks?group=\(first)").json["items"].array ?? []
            return tasks.allSatisfy { $0["outcome"] == "cancelled" }
        }
        let second = try await scene.create("2", files: [scene.file("a", at: "/held")])
        expect(try await scene.api.delete("/v1/sets/m"), 204)
        expectProblem(try await scene.api.get("/v1/sets/m"), 404, "not-found")
        expectProblem(try await scene.api.delete("/v1/sets/m"), 404, "not-found")
        try await eventually("its task is cancelled") {
            let tasks = try await scene.api.get("/v1/sessions/s/tasks?group=\(second)").json["items"].array ?? []
            return tasks.allSatisfy { $0["outcome"] == "cancelled" }
        }
        // The name is free.
        gate.open()
        scene.origin.serve("/held", .text("one"))
        try await scene.makeSet()
        #expect(try await scene.api.get("/v1/sets/m/versions").json["items"] == [])
        try await scene.create("1", files: [scene.file("a", at: "/held")])
        try await scene.version("1", is: "published")
    }

    @Test func `Of two versions in flight the newer one wins`() async throws {
        let scene = try await Scene()
        try await scene.makeSet()
        let gate = Gate()
        scene.origin.serve("/old", .text("old"), turns: [[.hold(gate)]])
        scene.origin.serve("/new", .text("new"))
        try await scene.create("old", files: [scene.file("a", at: "/old")])
        try await scene.origin.waitForRequests(1, path: "/old")
        try await scene.create("new", files: [scene.file("a", at: "/new")])
        try await scene.version("new", is: "published")
        gate.open()
        try await scene.version("old", is: "superseded")
        #expect(try await scene.current() == "new")
    }

    @Test func `The app is launched once a version is published or has failed`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver, ["includeEvents": 100])
        try await scene.makeSet()
        scene.origin.serve("/a", .text("one"))
        try await scene.create("1", files: [scene.file("a", at: "/a"), scene.file("b", at: "/a")])
        let published = try #require(try await receiver.waitForDelivery(type: "session.handleEvents").first)
        let data = published.json["data"]
        #expect(data["reasons"].array?.contains("setPublished") == true, "\(data)")
        let event = try #require(data["events"].array?.first { $0["type"] == "set.didPublish" })
        #expect(event["data"]["name"] == "m" && event["data"]["version"] == "1" && event["data"]["files"] == 2)
        #expect(event["data"]["bytes"] == 6 && event["data"]["cause"] == "completed")
        let url = try #require(event["data"]["manifestURL"].string)
        #expect(url.hasPrefix("http://127.0.0.1:\(scene.service.port)/v1/sets/m/versions/sver_"), "\(url)")
        expect(try await scene.api.post("/v1/launches/\(published.id ?? "")/complete"), 200)
        try await scene.create("2", files: [scene.file("a", at: "/none")])
        let failed = try #require(try await receiver.waitForDelivery(count: 2, type: "session.handleEvents").last)
        #expect(failed.json["data"]["reasons"].array?.contains("setFailed") == true, "\(failed.json)")
        let failure = try #require(failed.json["data"]["events"].array?.first { $0["type"] == "set.didFail" })
        #expect(failure["data"]["version"] == "2" && failure["data"]["failures"][0]["path"] == "a")
        expectSound(try await scene.events())
    }

    @Test func `Sets belong to an app, and are listed by page`() async throws {
        let scene = try await Scene()
        for name in ["a", "b", "c"] { try await scene.makeSet(name) }
        let page = try await scene.api.get("/v1/sets?limit=2")
        #expect(page.json["items"].array?.map { $0["name"].string } == ["a", "b"])
        let cursor = try #require(page.json["nextCursor"].string)
        #expect(try await scene.api.get("/v1/sets?limit=2&cursor=\(cursor)").json["items"][0]["name"] == "c")
        let key = try await scene.admin.post("/v1/apps", ["identifier": "other"]).json["apiKey"].string
        let other = scene.api.with(key: key)
        expectProblem(try await other.get("/v1/sets/a"), 404, "not-found")
        #expect(try await other.get("/v1/sets").json["items"] == [])
    }

    @Test func `Versions are fetched and published across a kill`() async throws {
        let scene = try await Scene()
        try await scene.makeSet()
        let gate = Gate()
        scene.origin.serve("/a", .text("one"))
        scene.origin.serve("/held", .text("two"), turns: [[.hold(gate)]])
        try await scene.create("1", files: [scene.file("a", at: "/a"), scene.file("b", at: "/held")])
        try await scene.origin.waitForRequests(1, path: "/held")
        try await scene.service.restart()
        // Another node, which was not restarted, may have the transfer.
        gate.open()
        try await scene.version("1", is: "published")
        #expect(try await scene.api.get("/v1/sets/m/versions/1/files/b").text == "two")
    }
}
