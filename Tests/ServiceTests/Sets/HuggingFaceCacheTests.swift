import Base
import Buckets
import Core
import Files
import Glibc
import TestSupport
import Testing

@testable import Service

/// Versions in the cache of huggingface_hub.
struct HuggingFaceCacheTests {
    private static let python = "\(repository)/.build/venv/hf-cache/bin/python"

    private let stage: PublishedStage
    private let one: PublishedFile
    private let two: PublishedFile

    init() throws {
        stage = try PublishedStage()
        one = stage.stored("deep/er/weights", Content.bytes(seed: 1, length: 70_000), as: "1")
        two = stage.file("config.json", "{}")
    }

    private func set(_ revision: String = "main", type: SetSource.RepositoryType = .model) -> SetFolder {
        stage.set(.hfCache(repository: "org/name", type: type, revision: revision), path: "hub")
    }

    @Test func `A snapshot has relative links to blobs, and the ref comes last`() async throws {
        let set = set("refs/pr/1", type: .dataset)
        try await set.place([one], of: "c0ffee")
        try await set.place([two, stage.file("again", "{}")], of: "c0ffee")
        let base = "hub/datasets--org--name"
        #expect(entries(of: stage.folder.file("\(base)/snapshots")).isEmpty)
        for _ in 0..<2 { try await set.seal("c0ffee", files: 3) }
        #expect(stage.text("\(base)/refs/refs/pr/1") == nil)
        for _ in 0..<2 { try await set.point(to: "c0ffee") }
        #expect(
            stage.tree == [
                "\(base)/blobs/\(min(one.blobName, two.blobName))", "\(base)/blobs/\(max(one.blobName, two.blobName))",
                "\(base)/refs/refs/pr/1",
                "\(base)/snapshots/c0ffee/again -> ../../blobs/\(two.blobName)",
                "\(base)/snapshots/c0ffee/config.json -> ../../blobs/\(two.blobName)",
                "\(base)/snapshots/c0ffee/deep/er/weights -> ../../../../blobs/\(one.blobName)",
            ])
        #expect(stage.text("\(base)/refs/refs/pr/1") == "c0ffee")
        #expect(readFile("\(stage.root)/\(base)/snapshots/c0ffee/deep/er/weights")?.count == 70_000)
    }

    @Test func `A version is removed with the blobs that no other snapshot uses`() async throws {
        let set = set()
        let base = "hub/models--org--name"
        try await set.publish([one, two], as: "v1")
        try await set.publish([two, stage.file("x", "x")], as: "v2")
        try await set.place([two, stage.file("y", "y")], of: "v3")
        // Another program's own snapshot, and one that it has not completed.
        stage.folder.makeFolder("\(base)/snapshots/theirs")
        symlink("../../blobs/\(one.blobName)", stage.folder.file("\(base)/snapshots/theirs/w"))
        stage.folder.makeFolder("\(base)/snapshots/v3")
        symlink("../../blobs/none", stage.folder.file("\(base)/snapshots/v3/part"))
        func blobs() -> Set<String> { Set(entries(of: stage.folder.file("\(base)/blobs")).map(\.name)) }
        let (x, y) = (stage.file("x", "x").blobName, stage.file("y", "y").blobName)
        for _ in 0..<2 { try await set.remove("v1") }
        #expect(blobs() == [one.blobName, two.blobName, x, y])
        try await set.seal("v3", files: 2)
        #expect(filesBelow(stage.folder.file("\(base)/snapshots/v3")) == ["config.json", "y"])
        try await set.point(to: "v3")
        try await set.sweep(keeping: [])
        #expect(blobs() == [one.blobName, two.blobName, y])
        unlink(stage.folder.file("\(base)/snapshots/theirs/w"))
        rmdir(stage.folder.file("\(base)/snapshots/theirs"))
        try await set.removeAll(keepingCurrent: true)
        #expect(stage.text("\(base)/refs/main") == "v3")
        #expect(filesBelow(stage.folder.file("\(base)/snapshots")) == ["v3/config.json", "v3/y"])
        for _ in 0..<2 { try await set.removeAll(keepingCurrent: false) }
        // The blob of the other program stays.
        #expect(stage.tree == ["\(base)/blobs/\(one.blobName)"])
    }

    @Test func `Nothing is left of a repository`() async throws {
        let set = set("a/b")
        try await set.publish([one, two], as: "v1")
        stage.folder.makeFolder("hub/models--org--name/.versions/.trash-1")
        symlink("../../blobs/gone", stage.folder.file("hub/models--org--name/.versions/.trash-1/l"))
        try await set.removeAll(keepingCurrent: false)
        #expect(entries(of: stage.folder.file("hub")).isEmpty)
        // A kill between the removal of the last folders.
        for name in ["blobs", "refs/a", "snapshots"] { stage.folder.makeFolder("hub/models--org--name/\(name)") }
        try await set.removeAll(keepingCurrent: false)
        #expect(entries(of: stage.folder.file("hub")).isEmpty)
    }

    @Test(
        .enabled(
            if: access(Self.python, X_OK) == 0,
            "huggingface_hub is not installed: scripts/venv hf-cache 'huggingface_hub==2.*'"))
    func `The library of Hugging Face loads the current version`() async throws {
        let program = """
            import sys
            from huggingface_hub import hf_hub_download, scan_cache_dir, snapshot_download
            from huggingface_hub.errors import LocalEntryNotFoundError
            cache, known = sys.argv[1], dict(local_files_only=True, cache_dir=sys.argv[1])
            print(snapshot_download("org/name", **known))
            print(snapshot_download("org/name", revision="c0ffee" + "0" * 34, **known))
            print(open(hf_hub_download("org/name", "deep/er/weights", **known), "rb").read().__len__())
            print(open(hf_hub_download("org/name", "config.json", revision="pr/1", **known)).read())
            try: snapshot_download("org/name", revision="0" * 40, **known)
            except LocalEntryNotFoundError: print("staged")
            found = scan_cache_dir(cache)
            print(found.warnings, [(repo.repo_id, repo.repo_type, repo.nb_files) for repo in found.repos])
            """
        let commit = "c0ffee" + String(repeating: "0", count: 34)
        try await set().publish([one, two], as: commit)
        try await set("pr/1").point(to: commit)
        try await set().place([two], of: String(repeating: "0", count: 40))
        let output = try await ChildProcess.run([Self.python, "-c", program, stage.folder.file("hub")])
        let snapshot = "\(stage.root)/hub/models--org--name/snapshots/\(commit)"
        #expect(
            String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init) == [
                snapshot, snapshot, "70000", "{}", "staged", "[] [('org/name', 'model', 2)]",
            ])
    }
}
