import Base
import Buckets
import Core
import Files
import Glibc
import TestSupport
import Testing

@testable import Service

/// Versions of sets in a folder.
struct SetFolderTests {
    private func mode(_ path: String) -> mode_t {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
    }

    private func inode(_ path: String) -> UInt {
        var status = stat()
        return stat(path, &status) == 0 ? UInt(status.st_ino) : 0
    }

    @Test func `Readers see a version once it is complete, and cannot write to it`() async throws {
        let store = try ObjectStore()
        let stage = try PublishedStage(contents: BucketClient.stage(store))
        let set = stage.set()
        let long = Content.bytes(seed: 1, length: 100_000)
        var object = stage.file("o", Content.bytes(seed: 2, length: 70_000))
        store.put("p/k1", Content.bytes(seed: 2, range: 0..<30_000))
        store.put("p/k2", Content.bytes(seed: 2, range: 30_000..<70_000))
        object.storage = .objects([StoredObject(key: "k1", length: 30_000), StoredObject(key: "k2", length: 40_000)])
        try await set.place([stage.stored("deep/er/f", long, as: "1"), stage.file("s", "small")], of: "v:1+2@x")
        try await set.place([object, stage.file("empty", "")], of: "v:1+2@x")
        #expect(stage.text("a/b/.versions/v:1+2@x/s") == nil)
        try await set.seal("v:1+2@x", files: 4)
        #expect(stage.text("a/b/current/s") == nil)
        try await set.point(to: "v:1+2@x")
        let version = "a/b/.versions/v:1+2@x"
        #expect(
            stage.tree
                == ["deep/er/f", "empty", "o", "s"].map { "\(version)/\($0)" } + ["a/b/current -> .versions/v:1+2@x"])
        #expect(stage.text("a/b/current/s") == "small" && stage.text("a/b/current/empty") == "")
        #expect(readFile("\(stage.root)/\(version)/deep/er/f") == long)
        #expect(readFile("\(stage.root)/\(version)/o") == Content.bytes(seed: 2, length: 70_000))
        #expect(inode("\(stage.root)/\(version)/deep/er/f") == inode(stage.data.file("contents/00/1")))
        for name in ["deep/er/f", "empty", "o", "s"] { #expect(mode("\(stage.root)/\(version)/\(name)") == 0o444) }
        for name in ["", "/v:1+2@x/deep/er"] { #expect(mode("\(stage.root)/a/b/.versions\(name)") == 0o755) }
    }

    @Test func `After a kill at any point the steps are repeated`() async throws {
        for kill in 0..<8 {
            let stage = try PublishedStage()
            let set = stage.set()
            let files = [stage.stored("x/f", [1, 2, 3], as: "1"), stage.file("x/g", "g"), stage.file("h", "h")]
            let steps: [() async throws -> Void] = [
                { try await set.place(Array(files[..<2]), of: "v") }, { try await set.place(files, of: "v") },
                { try await set.seal("v", files: 3) }, { try await set.point(to: "v") },
            ]
            try await set.publish([stage.file("h", "old")], as: "old")
            for step in steps.prefix((kill + 1) / 2) { try await step() }
            // The kill left files without a final name behind.
            stage.folder.write([9], to: "a/b/.versions/.tmp-1")
            if kill.isMultiple(of: 2) { try await stage.set().sweep(keeping: ["v", "old"]) }
            for step in steps { try await step() }
            try await set.sweep(keeping: ["v"])
            let expected = ["h", "x/f", "x/g"].map { "a/b/.versions/v/\($0)" } + ["a/b/current -> .versions/v"]
            #expect(stage.tree == expected, "\(kill)")
            #expect(stage.text("a/b/current/x/g") == "g" && stage.text("a/b/current/h") == "h")
        }
    }

    @Test func `Files of an earlier attempt stay only with the right bytes and permissions`() async throws {
        let stage = try PublishedStage()
        let set = stage.set()
        let names = ["right", "wrong", "short", "writable", "link", "own"]
        let files = names.dropLast().map { stage.file($0, "bytes") } + [stage.stored("own", [1, 2], as: "1")]
        try await set.place(files, of: "v")
        let staged = "\(stage.root)/a/b/.versions/.new-v"
        stage.folder.write(Array("outside".utf8), to: "outside")
        for (name, bytes) in [("wrong", "BYTES"), ("short", "byte"), ("writable", "bytes")] {
            unlink("\(staged)/\(name)")
            stage.folder.write(Array(bytes.utf8), to: "a/b/.versions/.new-v/\(name)")
            if name != "writable" { chmod("\(staged)/\(name)", 0o444) }
        }
        unlink("\(staged)/link")
        symlink("../../../../outside", "\(staged)/link")
        let before = names.map { inode("\(staged)/\($0)") }
        try await set.place(files, of: "v")
        for (name, before) in zip(names, before) {
            let isKept = name == "right" || name == "own"
            #expect((inode("\(staged)/\(name)") == before) == isKept, "\(name)")
            if name != "own" { #expect(stage.text("a/b/.versions/.new-v/\(name)") == "bytes", "\(name)") }
            #expect(mode("\(staged)/\(name)") == 0o444, "\(name)")
        }
        #expect(stage.text("outside") == "outside")
        #expect(!stage.tree.contains { $0.contains(".tmp-") || $0.contains("->") })
    }

    @Test func `Symbolic links of other programs are not followed`() async throws {
        for planted in ["a", "a/b", "a/b/.versions", "a/b/.versions/.new-v", "a/b/.versions/.new-v/x"] {
            let stage = try PublishedStage()
            let outside = TemporaryFolder()
            outside.write([1], to: "mine")
            let parent = planted.split(separator: "/").dropLast().joined(separator: "/")
            stage.folder.makeFolder(parent)
            symlink(outside.path, stage.folder.file(planted))
            let set = stage.set()
            await #expect(throws: SystemError.self, "\(planted)") {
                try await set.place([stage.file("x/y/f", "f")], of: "v")
            }
            _ = try? await set.remove("v")
            _ = try? await set.removeAll(keepingCurrent: false)
            #expect(filesBelow(outside.path) == ["mine"], "\(planted)")
        }
    }

    @Test func `A root on another filesystem receives copies`() async throws {
        guard let data = TemporaryFolder().onOtherFilesystem() else { return }
        let stage = try PublishedStage(data: data)
        let files = [stage.stored("f", Content.bytes(seed: 3, length: 300_000), as: "1")]
        for _ in 0..<2 { try await stage.set().publish(files, as: "v") }
        #expect(readFile("\(stage.root)/a/b/current/f") == Content.bytes(seed: 3, length: 300_000))
        #expect(mode("\(stage.root)/a/b/current/f") == 0o444 && mode(data.file("contents/00/1")) == 0o600)
        #expect(filesBelow("\(stage.root)/a/b/.versions") == ["v/f"])
    }

    @Test func `Wrong and missing contents are not published`() async throws {
        let store = try ObjectStore()
        let stage = try PublishedStage(contents: BucketClient.stage(store))
        let set = stage.set()
        store.put("p/k", [1, 2, 4])
        var wrong = stage.file("f", [1, 2, 3])
        for storage in [BodyLocation.Storage.objects([StoredObject(key: "k", length: 3)]), .bytes([1, 2])] {
            wrong.storage = storage
            await #expect(throws: BucketFault.self) { try await set.place([wrong], of: "v") }
        }
        wrong.storage = .file("contents/00/missing")
        await #expect(throws: SystemError.self) { try await set.place([wrong], of: "v") }
        #expect(stage.tree.isEmpty)
        await #expect(throws: SystemError.self) { try await set.point(to: "v") }
        await #expect(throws: SystemError.self) { try await set.seal("w", files: 1) }
    }

    @Test func `A folder with files of another version is made again`() async throws {
        let stage = try PublishedStage()
        let set = stage.set()
        let files = [stage.file("d/f", "new")]
        try await set.place([stage.file("d/other", "old")], of: "v")
        try await set.place(files, of: "v")
        await #expect(throws: SetFolderFault.otherFiles("v")) { try await set.seal("v", files: 1) }
        #expect(stage.tree.isEmpty)
        try await set.publish(files, as: "v")
        #expect(stage.tree == ["a/b/.versions/v/d/f", "a/b/current -> .versions/v"])
    }

    @Test func `While versions switch, a reader finds each of them whole`() async throws {
        let stage = try PublishedStage()
        let set = stage.set()
        func files(_ version: Int) -> [PublishedFile] { (0..<5).map { stage.file("d/\($0)", "\(version)") } }
        try await set.publish(files(0), as: "0")
        let isDone = Locked(false)
        let current = "\(stage.root)/a/b/current"
        async let seen = onThread { () -> (texts: Set<[String?]>, rounds: Int) in
            var (texts, rounds) = (Set<[String?]>(), 0)
            while !isDone.withLock({ $0 }) {
                // A reader of many files resolves the link once.
                let folder = open(current, O_RDONLY | O_DIRECTORY)
                defer { close(folder) }
                texts.insert(
                    (0..<5).map {
                        readFile("/proc/self/fd/\(folder)/d/\($0)").map { String(decoding: $0, as: UTF8.self) }
                    })
                rounds += 1
            }
            return (texts, rounds)
        }
        for version in 1..<20 {
            try await set.publish(files(version), as: "\(version)")
            try await set.point(to: "\(version - 1)")
            try await set.point(to: "\(version)")
        }
        isDone.withLock { $0 = true }
        let (texts, rounds) = try await seen
        #expect(rounds > 1 && texts.count > 1)
        for text in texts { #expect(text == [String?](repeating: text[0], count: 5) && text[0] != nil) }
    }

    @Test func `A file or folder named current is not replaced`() async throws {
        for isFolder in [false, true] {
            let stage = try PublishedStage()
            stage.folder.makeFolder("a/b")
            if isFolder { stage.folder.makeFolder("a/b/current") } else { stage.folder.write([1], to: "a/b/current") }
            stage.folder.write([1], to: "a/b/other")
            let set = stage.set()
            await #expect(throws: SetFolderFault.currentIsNoLink("a/b/current")) {
                try await set.publish([stage.file("f", "f")], as: "v")
            }
            try await set.removeAll(keepingCurrent: false)
            #expect(entries(of: stage.folder.file("a/b")).map(\.name).sorted() == ["current", "other"])
        }
    }

    @Test func `Removal continues after a kill, and removes nothing else`() async throws {
        let stage = try PublishedStage()
        let set = stage.set()
        try await set.publish([stage.file("d/e/f", "f")], as: "v1")
        try await set.publish([stage.file("f", "2")], as: "v2")
        try await set.publish([stage.file("f", "3")], as: "v3")
        stage.folder.makeFolder("a/b/.versions/.trash-1/deep/er")
        stage.folder.write([1], to: "a/b/.versions/.trash-1/deep/er/f")
        stage.folder.write([1], to: "a/b/.versions/.new-file")
        stage.folder.write([1], to: "a/b/mine")
        try await set.place([stage.file("f", "4")], of: "v4")
        try await set.place([stage.file("f", "5")], of: "v5")
        for _ in 0..<2 { try await set.remove("v1") }
        try await set.remove("unknown")
        let kept = ["a/b/.versions/v2/f", "a/b/.versions/v3/f", "a/b/current -> .versions/v3", "a/b/mine"]
        let files = ["a/b/.versions/.new-file", "a/b/.versions/.new-v4/f", "a/b/.versions/.new-v5/f"]
        #expect(stage.tree == files + kept)
        // A store that was restored from a backup knows the current version as little as the others.
        for _ in 0..<2 { try await set.sweep(keeping: ["v2", "v5"]) }
        #expect(stage.tree == ["a/b/.versions/.new-v5/f"] + kept)
        for _ in 0..<2 { try await set.removeAll(keepingCurrent: true) }
        #expect(stage.tree == Array(kept.dropFirst()))
        for _ in 0..<2 { try await set.removeAll(keepingCurrent: false) }
        #expect(stage.tree == ["a/b/mine"])
        #expect(entries(of: stage.folder.file("a/b")).count == 1)
    }

    @Test(arguments: [
        ("v1.0_~:@+-", "v1.0_~:@+-"), (".trash-1", "%2Etrash-1"), ("..", "%2E."), ("a/b", "a%2Fb"), ("%2E", "%252E"),
    ])
    func `A version's name is one part of a path`(_ name: String, _ part: String) {
        #expect(pathPart(ofVersion: name) == part)
    }
}
