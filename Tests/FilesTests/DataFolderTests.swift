import Files
import Glibc
import TestSupport
import Testing

@Suite struct DataFolderTests {
    private let files = TemporaryFolder()
    private let folder: DataFolder

    init() async throws {
        folder = DataFolder(path: files.path, disk: try DiskQueue(threads: 1))
        try await folder.prepare()
    }

    @Test func `A staged file is removed with its value, unless it is adopted`() async throws {
        let (lost, kept) = (folder.body("lost"), folder.body("kept"))
        do {
            let file = folder.stage(folder.partial("kept"))
            try await file.write([1, 2, 3])
            #expect(try await folder.unstagedFiles(in: "partial").isEmpty)
            let moved = try await file.moved(to: kept)
            try await folder.stage(lost).write([4])
            moved.adopt()
        }
        try await eventually("only the adopted file is left") { filesBelow(files.path) == [kept] }
        #expect(try await folder.size(kept) == 3)
        #expect(try await folder.size(lost) == nil)
        // The commit owns an adopted file.
        let area = String(kept.prefix { $0 != "/" }) + "/" + kept.split(separator: "/")[1]
        #expect(try await folder.unstagedFiles(in: area) == [kept])
    }

    @Test func `A reserve that a kill cut short is completed`() async throws {
        let room = DiskRoom(floor: 0)
        room.note(free: 1 << 40, size: 1 << 40, writtenBefore: 0)
        files.write([1], to: "reserve")
        try await folder.keepReserve(within: room)
        #expect(fileLength(files.file("reserve")) == 8 << 20)
    }

    @Test func `A copy without room leaves no file`() async throws {
        let room = DiskRoom(floor: 0)
        room.note(free: 1, size: 100, writtenBefore: 0)
        let source = try await folder.disk.open(files.write([UInt8](repeating: 1, count: 4096), to: "source"))
        await #expect(throws: (any Error).self) {
            try await folder.stage(folder.body("b")).copy(source, within: room)
        }
        try await eventually("the source alone is left") { filesBelow(files.path) == ["source"] }
    }

    @Test func `A complete file without a commit counts as partial`() async throws {
        #expect(folder.recoverPartial(5) == nil)
        try await folder.write([1, 2, 3], to: folder.content(5))
        #expect(folder.recoverPartial(5) == 3)
        #expect(filesBelow(files.path) == [folder.partial(5)])
    }
}
