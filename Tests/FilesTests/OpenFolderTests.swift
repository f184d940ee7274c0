import Base
import Files
import Glibc
import TestSupport
import Testing

struct OpenFolderTests {
    private let folder = TemporaryFolder()

    private func open(_ path: String = ".") throws -> OpenFolder {
        try #require(try OpenFolder.open(root: folder.path, path: path, creates: true))
    }

    private func failure(_ body: () throws(SystemError) -> Void) -> Int32? {
        do throws(SystemError) {
            try body()
            return nil
        } catch { return error.errno }
    }

    private func mode(_ name: String) -> mode_t {
        var status = stat()
        return lstat(folder.file(name), &status) == 0 ? status.st_mode & 0o777 : 0
    }

    @Test func `Nothing outside of the folder is reached`() throws {
        folder.makeFolder("outside")
        folder.write([1], to: "outside/file")
        let inside = try open("inside")
        symlink(folder.file("outside"), folder.file("inside/link"))
        symlink("../outside/file", folder.file("inside/linked"))
        for (path, code) in [("link", ELOOP), ("../outside", EXDEV), ("/tmp", EXDEV)] {
            #expect(failure { () throws(SystemError) in _ = try inside.folder(path) } == code, "\(path)")
            #expect(failure { () throws(SystemError) in _ = try inside.makeFolder("\(path)/new") } == code, "\(path)")
            let set = failure { () throws(SystemError) in
                try inside.setSymbolicLink("\(path)/new", to: "x", through: inside, "temporary")
            }
            #expect(set == code, "\(path)")
        }
        #expect(try inside.regularFile("linked") == nil && inside.regularFile("link/file") == nil)
        #expect(try inside.folder("missing") == nil)
        #expect(try OpenFolder.open(root: folder.path, path: "missing", creates: false) == nil)
        #expect(filesBelow(folder.file("outside")) == ["file"])
    }

    @Test func `All users may read published files and folders, whatever the process permits`() throws {
        let top = try open()
        _ = try top.makeFolder("a/b")
        let made = try top.create("file")
        try made.write([1, 2], at: 0)
        #expect(try !made.isReadOnly() && mode("file") == 0o600)
        try made.makeReadOnly()
        #expect(try made.isReadOnly() && mode("file") == 0o444)
        chmod(folder.file("a"), 0o700)
        try top.folder("a")?.publish()
        #expect(mode("a") == 0o755 && mode("a/b") == 0o755)
    }

    @Test func `A file has a further name only on its own filesystem`() throws {
        let top = try open()
        let source = folder.write([1, 2, 3], to: "source")
        #expect(try top.link(source, as: "second"))
        #expect(try top.regularFile("second")?.isNamed(source) == true)
        #expect(try top.regularFile("second")?.isNamed(folder.file("missing")) == false)
        #expect(failure { () throws(SystemError) in _ = try top.link(source, as: "second") } == EEXIST)
        #expect(failure { () throws(SystemError) in _ = try top.link(folder.file("no"), as: "third") } == ENOENT)
        guard let elsewhere = folder.onOtherFilesystem() else { return }
        let other = try #require(try OpenFolder.open(root: elsewhere.path, path: ".", creates: true))
        #expect(try !other.link(source, as: "second"))
        #expect(filesBelow(elsewhere.path).isEmpty)
    }

    @Test func `A symbolic link replaces a link or a file, but no folder`() throws {
        let top = try open()
        try top.setSymbolicLink("a/link", to: "one", through: top, "temporary")
        try top.setSymbolicLink("a/link", to: "two", through: top, "temporary")
        try top.setSymbolicLink("a/link", to: "two", through: top, "temporary")
        folder.write([1], to: "file")
        try top.setSymbolicLink("file", to: "three", through: top, "temporary")
        #expect(try top.symbolicLink("file") == "three" && top.symbolicLink("missing") == nil)
        let onFolder = failure { () throws(SystemError) in
            try top.setSymbolicLink("a", to: "x", through: top, "temporary")
        }
        #expect(onFolder == EISDIR)
        #expect(try top.remove("temporary") && top.symbolicLink("a") == nil)
        #expect(filesBelow(folder.path) == ["a/link", "file"])
        let inner = try #require(try top.folder("a"))
        #expect(try inner.symbolicLink("link") == "two")
        #expect(try Set(top.entries().map { "\($0.text) \($0.kind)" }) == ["a folder", "file symbolicLink"])
    }

    @Test func `An entry is moved into folders that are created`() throws {
        let top = try open()
        folder.write([1], to: "file")
        #expect(try top.move("file", to: top, as: "x/y/z") && !top.move("file", to: top, as: "x/y/z"))
        #expect(filesBelow(folder.path) == ["x/y/z"])
        // A combining character after a slash.
        folder.write([1], to: "file")
        try top.move("file", to: top, as: "x/\u{301}y/z")
        #expect(filesBelow(folder.path).count == 2)
    }

    @Test func `A tree of any shape is removed in steps, and links are not followed`() throws {
        let top = try open()
        folder.makeFolder("outside")
        folder.write([1], to: "outside/file")
        folder.makeFolder((0..<300).map { _ in "d" }.reduce("tree") { "\($0)/\($1)" })
        for index in 0..<25 { folder.write([1], to: "tree/d/\(index)") }
        symlink(folder.file("outside"), folder.file("tree/d/link"))
        symlink("../blobs/x", folder.file("tree/other"))
        // A name that is no text.
        let name = folder.file("tree/").utf8.map { CChar(bitPattern: $0) } + [-1, 0]
        #expect(mkdir(name, 0o700) == 0)
        var (names, links, steps, count) = (["tree"], [String](), 0, 0)
        while let name = names.last {
            let moved = try top.removeSome(of: name, limit: 10) {
                count += 1
                return "t\(count)"
            } onLink: {
                links.append($0)
            }
            if moved == nil { names.removeLast() }
            names += moved ?? []
            steps += 1
        }
        #expect(steps > 300 && links.sorted() == ["../blobs/x", folder.file("outside")].sorted())
        #expect(filesBelow(folder.path) == ["outside/file"] && entries(of: folder.path).count == 1)
        // A file, and no entry at all.
        folder.write([1], to: "file")
        for _ in 0..<2 {
            let moved = try top.removeSome(of: "file", newName: { "t" }, onLink: { links.append($0) })
            #expect(moved == nil)
        }
    }

    @Test func `Folders are removed as far as they are empty`() throws {
        let top = try open()
        _ = try top.makeFolder("a/b/c/d")
        folder.write([1], to: "a/file")
        try top.removeEmptyFolders("a/b/c/d")
        try top.removeEmptyFolders("a/b/c/d")
        #expect(entries(of: folder.file("a")).map(\.name) == ["file"])
    }
}
