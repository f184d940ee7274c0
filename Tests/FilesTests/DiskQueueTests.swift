import Base
import Files
import Formats
import Glibc
import TestSupport
import Testing

@Suite struct DiskQueueTests {
    private let folder = TemporaryFolder()
    private let disk: DiskQueue

    init() throws { disk = try DiskQueue(threads: 2) }

    private func failure(_ body: () async throws(SystemError) -> Void) async -> Int32? {
        do throws(SystemError) {
            try await body()
            return nil
        } catch { return error.errno }
    }

    @Test func `Files are moved, copied, measured, digested and removed`() async throws {
        let content = Content.bytes(seed: 1, length: 300_000)
        let first = folder.file("first")
        try await disk.write(content, to: first)
        #expect(await failure { () throws(SystemError) in try await disk.write([1], to: first) } == EEXIST)
        try await disk.copy(disk.open(first), to: folder.file("second"))
        folder.makeFolder("a/b")
        try await disk.move(first, to: folder.file("a/b/third"))
        #expect(try await disk.size(first) == nil)
        #expect(try await disk.size(folder.file("a/b/third")) == 300_000)
        #expect(try await disk.list(folder.path).sorted() == ["a", "second"])
        let (length, digests) = try await disk.digest(disk.open(folder.file("second")), [.sha256, .md5])
        #expect(length == 300_000)
        #expect(digests[.sha256].map(Content.hex) == Content.sha256(seed: 1, length: 300_000))
        #expect(digests.count == 2)
        try await disk.sync(folder.file("second"))
        try await disk.remove(folder.file("second"))
        try await disk.remove(folder.file("second"))
        #expect(filesBelow(folder.path) == ["a/b/third"])
    }

    @Test(arguments: [0, 1, 4096, 1 << 20, (5 << 20) + 3])
    func `A copy is complete, and digested as it is written`(length: Int) async throws {
        let content = Content.bytes(seed: 2, length: length)
        let source = folder.write(content, to: "source")
        let copied = try await disk.copy(disk.open(source), to: folder.file("copy"), [.sha256, .md5])
        #expect(copied.length == Int64(length))
        #expect(copied.digests == [.sha256: Digest.of(content), .md5: Digest.of(content, .md5)])
        #expect(readFile(folder.file("copy")) == content)
    }

    @Test func `Files below a root are read up to a length, each with its own result`() async throws {
        folder.write([1, 2, 3], to: "short")
        folder.write([1, 2, 3, 4], to: "long")
        folder.write([], to: "empty")
        let read = try await disk.readBeneath(
            ["short", "long", "missing", "empty", "short"].map { (folder.path, $0) }, upTo: 3)
        #expect(
            read == [
                .success([1, 2, 3]), .success(nil), .failure(SystemError("openat2", errno: ENOENT)), .success([]),
                .success([1, 2, 3]),
            ])
    }

    @Test func `A move replaces a file only if permitted`() async throws {
        let one = folder.write([1], to: "one")
        let two = folder.write([2], to: "two")
        #expect(await failure { () throws(SystemError) in try await disk.move(one, to: two) } == EEXIST)
        try await disk.move(one, to: two, replace: true)
        #expect(readFile(two) == [1])
    }

    @Test func `Destinations stay below their root`() async throws {
        let root = folder.makeFolder("root")
        folder.makeFolder("root/inner")
        folder.makeFolder("outside")
        symlink(folder.file("outside"), folder.file("root/link"))
        let source = folder.write([1, 2, 3], to: "source")
        for (path, code) in [
            ("../x", EXDEV), ("/x", EINVAL), ("/etc/x", EXDEV), ("inner/../../x", EXDEV), ("link/x", ELOOP),
            ("", EINVAL), ("inner/", EINVAL), ("inner/..", EINVAL), ("link/new/x", ELOOP),
        ] {
            let result = await failure { () throws(SystemError) in
                _ = try await disk.moveBeneath(source: source, root: root, path: path, replace: true)
            }
            #expect(result == code, "\(path)")
        }
        #expect(try await disk.moveBeneath(source: source, root: root, path: "inner/y", replace: false))
        #expect(filesBelow(root) == ["inner/y", "link"])
        #expect(filesBelow(folder.file("outside")).isEmpty)
        let again = folder.write([4], to: "again")
        let taken = await failure { () throws(SystemError) in
            _ = try await disk.moveBeneath(source: again, root: root, path: "inner/y", replace: false)
        }
        #expect(taken == EEXIST)
        #expect(try await disk.moveBeneath(source: again, root: root, path: "inner/y", replace: true))
        #expect(readFile(folder.file("root/inner/y")) == [4])
        let deep = folder.write([5], to: "deep")
        _ = try await disk.moveBeneath(source: deep, root: root, path: "inner/new/newer/z", replace: false)
        #expect(readFile(folder.file("root/inner/new/newer/z")) == [5])
    }

    @Test func `A root on another filesystem receives a copy`() async throws {
        guard let elsewhere = folder.onOtherFilesystem() else { return }
        let root = elsewhere.path
        let source = folder.write([1, 2, 3], to: "source")
        #expect(try await !disk.moveBeneath(source: source, root: root, path: "x", replace: false))
        let inode = try await disk.copyBeneath(source: source, root: root, path: "copy")
        try await disk.renameBeneath(root: root, from: "copy", to: "x", replace: false)
        #expect(readFile(root + "/x") == [1, 2, 3])
        #expect(try await disk.openBeneath(root: root, path: "x").inode() == inode)
        #expect(filesBelow(folder.path) == ["source"])
        try await disk.removeBeneath(root: root, path: "x")
        try await disk.removeBeneath(root: root, path: "x")
        #expect(filesBelow(root).isEmpty)
    }

    @Test func `Only regular files below the root are opened`() async throws {
        folder.write([1, 2, 3], to: "file")
        folder.makeFolder("folder")
        mkfifo(folder.file("pipe"), 0o600)
        symlink("file", folder.file("link"))
        let file = try await disk.openBeneath(root: folder.path, path: "file")
        #expect(try file.size() == 3)
        try await disk.copy(file, to: folder.file("copy"))
        #expect(readFile(folder.file("copy")) == [1, 2, 3])
        for (path, code) in [("folder", EINVAL), ("pipe", EINVAL), ("link", ELOOP), ("../x", EXDEV), ("none", ENOENT)] {
            let result = await failure { () throws(SystemError) in
                _ = try await disk.openBeneath(root: folder.path, path: path)
            }
            #expect(result == code, "\(path)")
        }
    }
}
