import Core
import Glibc
import TestSupport
import Testing

/// docs/sets.md: sources that the service expands, and versions on disk.
@Suite struct SetSourceTests {
    private static let commit = String(repeating: "c0", count: 20)
    /// Git's name of a file with the bytes `two`.
    private static let blob = "64c5e5885a4b06010b3a0c20edb7900dd0311025"

    /// A hub with one repository, whose list has two pages.
    private func serveHub(_ origin: OriginServer, weights: Resource, config: String = "two") {
        let api = "/api/models/o/n"
        origin.serve(api + "/revision/main", .text(#"{"id":"o/n","sha":"\#(Self.commit)"}"#))
        let size = weights.body.length
        let first: JSON = [
            ["type": "directory", "path": "onnx"],
            [
                "type": "file", "path": "model.safetensors", "size": .integer(size), "oid": "00",
                "lfs": ["oid": .string(weights.sha256), "size": .integer(size)],
            ],
        ]
        let second: JSON = [
            ["type": "file", "path": "config.json", "size": 3, "oid": .string(Self.blob)],
            ["type": "file", "path": "onnx/model.onnx", "size": 3, "oid": .string(Self.blob)],
        ]
        let tree = "\(api)/tree/\(Self.commit)"
        let link = "<\(origin.url(tree))?recursive=true&cursor=2>; rel=\"next\""
        origin.serve(
            tree, Resource.text(first.description).with { $0.fields.append("Link", link) },
            turns: [[], [.become(.text(second.description))]])
        let files = "/o/n/resolve/\(Self.commit)"
        origin.serve(files + "/model.safetensors", weights)
        origin.serve(files + "/config.json", .text(config))
    }

    private func hub(_ origin: OriginServer) -> JSON {
        [
            "kind": "huggingface", "repository": "o/n", "endpoint": .string(origin.url("")),
            "allow": ["*.safetensors", "*.json"], "ignore": ["onnx/*"],
        ]
    }

    @Test func `A repository is published at its commit, each file proved by its digest`() async throws {
        let scene = try await Scene()
        try await scene.makeSet()
        serveHub(scene.origin, weights: .generated(seed: 1, length: 100_000))
        let created = try await scene.send(nil, source: hub(scene.origin))
        expect(created, 201)
        let version = try await scene.version(created.json["versionId"].string ?? "", is: "published")
        #expect(version["commit"].string == Self.commit && version["version"].string == Self.commit, "\(version)")
        #expect(version["source"]["revision"] == "main" && version["source"]["type"] == "model")
        let manifest = try await scene.api.get("/v1/sets/m/manifest").json
        #expect(manifest["commit"].string == Self.commit)
        #expect(manifest["files"].array?.map { $0["path"].string } == ["config.json", "model.safetensors"])
        let expected: JSON = ["algorithm": "git-blob-sha1", "value": .string(Self.blob)]
        #expect(manifest["files"][0]["expectedDigest"] == expected, "\(manifest)")
        #expect(scene.origin.requests.allSatisfy { !$0.path.contains("onnx/model") })
        // Repeated, nothing is transferred again.
        let sent = scene.origin.requests.filter { $0.path.contains("/resolve/") }.count
        serveHub(scene.origin, weights: .generated(seed: 1, length: 100_000))
        let again = try await scene.create("again", source: hub(scene.origin))
        let reused = try await scene.version(again, is: "published")
        #expect(reused["files"]["reused"] == 2 && reused["files"]["fetched"] == 0, "\(reused)")
        #expect(scene.origin.requests.filter { $0.path.contains("/resolve/") }.count == sent)
        #expect(reused["manifestDigest"] != .null)
    }

    @Test func `A file with another digest than the hub's fails the version`() async throws {
        let scene = try await Scene()
        try await scene.makeSet()
        serveHub(scene.origin, weights: .generated(seed: 1, length: 1000), config: "owt")
        let version = try await scene.version(scene.create("1", source: hub(scene.origin)), is: "failed")
        #expect(version["failures"].array?.map { $0["path"].string } == ["config.json"], "\(version)")
        #expect(try await scene.current() == nil)
    }

    @Test func `A list that cannot be made fails the version, and a retry makes it`() async throws {
        let scene = try await Scene(configuration: ["retryPolicy": "apple"])
        try await scene.makeSet()
        let source: JSON = ["kind": "checksums", "url": .string(scene.origin.url("/d/SHA256SUMS"))]
        try await scene.create("1", source: source)
        let failed = try await scene.version("1", is: "failed")
        #expect(failed["failures"][0]["path"] == .null && failed["files"]["total"] == 0, "\(failed)")
        let lines =
            "\(Content.sha256(of: Array("one".utf8)))  a.txt\n\(Content.sha256(of: Array("two".utf8))) *e/b.txt\n"
        scene.origin.serve("/d/SHA256SUMS", .text(lines))
        scene.origin.serve("/d/a.txt", .text("one"))
        scene.origin.serve("/d/e/b.txt", .text("two"))
        expect(try await scene.api.post("/v1/sets/m/versions/1/retry"), 200)
        try await scene.version("1", is: "published")
        let files = try await scene.api.get("/v1/sets/m/manifest").json["files"].array ?? []
        #expect(files.map { $0["path"].string } == ["a.txt", "e/b.txt"])
    }

    @Test func `A page of a hub's list beyond 16 MiB fails the version`() async throws {
        let scene = try await Scene(configuration: ["retryPolicy": "apple"])
        try await scene.makeSet()
        scene.origin.serve("/api/models/o/n/revision/main", .generated(seed: 1, length: 16 << 20 + 1))
        try await scene.create("1", source: hub(scene.origin))
        let failed = try await scene.version("1", is: "failed")
        #expect(failed["failures"][0]["detail"].string?.contains("longer than allowed") == true, "\(failed)")
    }

    @Test func `A manifest of the service is the source of another set`() async throws {
        let scene = try await Scene()
        try await scene.makeSet()
        scene.origin.serve("/a", .generated(seed: 1, length: 100_000))
        try await scene.create("1", files: [scene.file("a", at: "/a"), scene.file("d/b", at: "/a")])
        try await scene.version("1", is: "published")
        let manifest = try await scene.api.get("/v1/sets/m/manifest")
        scene.origin.serve("/manifest.json", .text(manifest.text))
        try await scene.makeSet("copy")
        let source: JSON = ["kind": "manifest", "url": .string(scene.origin.url("/manifest.json"))]
        try await scene.create("1", source: source, in: "copy")
        let copied = try await scene.version("1", is: "published", in: "copy")
        #expect(copied["files"]["reused"] == 2, "\(copied)")
        let own = try await scene.api.get("/v1/sets/copy/manifest").json["files"].array ?? []
        #expect(own.map { $0["path"].string } == ["a", "d/b"])
    }

    // MARK: On disk

    @Test func `A version is a folder, and current is a link that is replaced`() async throws {
        let root = TemporaryFolder()
        let scene = try await Scene(["--files-root", "out=\(root.path)"])
        let destination: JSON = ["root": "out", "path": "deep/m"]
        try await scene.makeSet("m", ["destination": destination])
        for name in ["1", "2"] {
            scene.origin.serve("/a", .generated(seed: UInt64(name) ?? 0, length: 100_000))
            try await scene.create(name, files: [scene.file("d/a.bin", at: "/a")])
            try await scene.version(name, is: "published")
            #expect(Self.link(root.file("deep/m/current"))?.hasSuffix(".versions/\(name)") == true)
            let file = root.file("deep/m/current/d/a.bin")
            #expect(fileSHA256(file) == Content.sha256(seed: UInt64(name) ?? 0, length: 100_000))
            var status = stat()
            #expect(stat(file, &status) == 0 && status.st_mode & 0o222 == 0, "read-only")
        }
        expect(try await scene.api.post("/v1/sets/m/current", ["version": "1"]), 200)
        #expect(Self.link(root.file("deep/m/current"))?.hasSuffix(".versions/1") == true)
        expectProblem(
            try await scene.api.put("/v1/sets/m", ["destination": ["root": "out", "path": "n"]]), 409,
            "set-has-versions")
        expect(try await scene.api.put("/v1/sets/m", ["destination": destination, "keep": 2]), 200)
        expect(try await scene.api.delete("/v1/sets/m?keepFiles=1"), 204)
        try await eventually("the other version is removed", within: .seconds(120)) {
            entries(of: root.file("deep/m/.versions")).map(\.name) == ["1"]
        }
        #expect(fileSHA256(root.file("deep/m/current/d/a.bin")) == Content.sha256(seed: 1, length: 100_000))
    }

    /// A service with the set `m` in the folder `m` of a root.
    private func folder() async throws -> (TemporaryFolder, Scene) {
        let root = TemporaryFolder()
        let scene = try await Scene(["--files-root", "out=\(root.path)"])
        try await scene.makeSet("m", ["destination": ["root": "out", "path": "m"]])
        return (root, scene)
    }

    @Test func `Files of a large version are placed while the last one is fetched`() async throws {
        let (root, scene) = try await folder()
        let gate = Gate()
        scene.origin.serve("/a", .text("one"))
        scene.origin.serve("/held", .text("two"), turns: [[.hold(gate)]])
        var files = (0..<200).map { scene.file("d/\($0)", at: "/a") }
        files.append(scene.file("z", at: "/held"))
        try await scene.create("1", files: files)
        try await eventually("the other files are placed", within: .seconds(60)) {
            entries(of: root.file("m/.versions/.new-1/d")).count == 200
        }
        // The work on another version leaves them in place.
        try await scene.create("2", files: [scene.file("d/1", at: "/a")])
        try await scene.version("2", is: "published")
        #expect(entries(of: root.file("m/.versions")).map(\.name).sorted() == [".new-1", "2"])
        try await scene.create("3", files: files)
        gate.open()
        try await scene.version("1", is: "superseded")
        try await scene.version("3", is: "published")
        #expect(entries(of: root.file("m/current/d")).count == 200)
        #expect(readFile(root.file("m/current/z")) == Array("two".utf8))
        try await eventually("the superseded version leaves nothing") {
            entries(of: root.file("m/.versions")).map(\.name).sorted() == ["2", "3"]
        }
    }

    @Test func `A file that was placed with wrong bytes is replaced after the retry`() async throws {
        let (root, scene) = try await folder()
        let gate = Gate()
        let names = (0..<200).map { "d/\($0)" } + ["config.json", "held"]
        let tree = names.map { name -> JSON in
            ["type": "file", "path": .string(name), "size": 3, "oid": .string(Self.blob)]
        }
        scene.origin.serve("/api/models/o/n/revision/main", .text(#"{"id":"o/n","sha":"\#(Self.commit)"}"#))
        scene.origin.serve("/api/models/o/n/tree/\(Self.commit)", .text(JSON.array(tree).description))
        let files = "/o/n/resolve/\(Self.commit)/"
        for name in names { scene.origin.serve(files + name, .text("two")) }
        scene.origin.serve(files + "held", .text("two"), turns: [[.hold(gate)]])
        scene.origin.serve(files + "config.json", .text("owt"))
        let source: JSON = ["kind": "huggingface", "repository": "o/n", "endpoint": .string(scene.origin.url(""))]
        try await scene.create("1", source: source)
        try await eventually("the wrong bytes are placed") {
            readFile(root.file("m/.versions/.new-1/config.json")) == Array("owt".utf8)
        }
        gate.open()
        let failed = try await scene.version("1", is: "failed")
        #expect(failed["failures"][0]["path"] == "config.json", "\(failed)")
        scene.origin.serve(files + "config.json", .text("two"))
        expect(try await scene.api.post("/v1/sets/m/versions/1/retry"), 200)
        try await scene.version("1", is: "published")
        #expect(readFile(root.file("m/current/config.json")) == Array("two".utf8))
        #expect(entries(of: root.file("m/current/d")).count == 200)
    }

    @Test func `While files are fetched, a destination that cannot be written is no failure`() async throws {
        let (root, scene) = try await folder()
        let gate = Gate()
        scene.origin.serve("/a", .text("one"))
        scene.origin.serve("/held", .text("two"), turns: [[.hold(gate)]])
        root.write([1], to: "m")
        let files = (0..<200).map { scene.file("\($0)", at: "/a") } + [scene.file("z", at: "/held")]
        try await scene.create("1", files: files)
        try await eventually("the reason is logged") {
            scene.service.errors.contains("files of a set could not be placed yet")
        }
        #expect(try await scene.api.get("/v1/sets/m/versions/1").json["state"] == "fetching")
        unlink(root.file("m"))
        gate.open()
        try await scene.version("1", is: "published")
        #expect(entries(of: root.file("m/current")).count == 201)
    }

    @Test(arguments: [false, true])
    func `The cache of huggingface_hub has blobs, a snapshot and its revision`(keepsFiles: Bool) async throws {
        let root = TemporaryFolder()
        let scene = try await Scene(["--files-root", "out=\(root.path)"])
        try await scene.makeSet("m", ["destination": ["root": "out", "path": "hub"], "layout": "hf-cache"])
        expectProblem(try await scene.send("1", files: [scene.file("a", at: "/a")]), 422, "invalid-value")
        let list: JSON = ["kind": "manifest", "url": .string(scene.origin.url("/m"))]
        expectProblem(try await scene.send("1", source: list), 422, "invalid-value", pointer: "/source/kind")
        serveHub(scene.origin, weights: .generated(seed: 1, length: 100_000))
        try await scene.version(scene.create(nil, source: hub(scene.origin)), is: "published")
        let repository = root.file("hub/models--o--n")
        #expect(readFile("\(repository)/refs/main").map { String(decoding: $0, as: UTF8.self) } == Self.commit)
        let snapshot = "\(repository)/snapshots/\(Self.commit)"
        #expect(readFile("\(snapshot)/config.json") == Array("two".utf8))
        #expect(Self.link("\(snapshot)/config.json")?.hasSuffix("blobs/\(Self.blob)") == true)
        let digest = Content.sha256(seed: 1, length: 100_000)
        #expect(fileSHA256("\(repository)/blobs/\(digest)") == digest)
        // Another revision has a ref of its own. With the set both go, or the one that is not current.
        let other = String(repeating: "d1", count: 20)
        scene.origin.serve("/api/models/o/n/revision/dev%2F1", .text(#"{"id":"o/n","sha":"\#(other)"}"#))
        let tree: JSON = [["type": "file", "path": "config.json", "size": 3, "oid": .string(Self.blob)]]
        scene.origin.serve("/api/models/o/n/tree/\(other)", .text(tree.description))
        scene.origin.serve("/o/n/resolve/\(other)/config.json", .text("two"))
        var source = hub(scene.origin)
        source["revision"] = "dev/1"
        try await scene.version(scene.create(nil, source: source), is: "published")
        #expect(readFile("\(repository)/refs/dev/1").map { String(decoding: $0, as: UTF8.self) } == other)
        expect(try await scene.api.delete("/v1/sets/m" + (keepsFiles ? "?keepFiles=1" : "")), 204)
        let left = ["blobs/\(Self.blob)", "refs/dev/1", "snapshots/\(other)/config.json"]
        try await eventually("the other files are removed") {
            filesBelow(root.file("hub")) == (keepsFiles ? left.map { "models--o--n/\($0)" } : [])
        }
    }

    /// The target of a symbolic link.
    private static func link(_ path: String) -> String? {
        var target = [CChar](repeating: 0, count: 4096)
        let count = readlink(path, &target, target.count)
        return count < 0 ? nil : String(decoding: target[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
