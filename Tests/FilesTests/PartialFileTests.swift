import Base
import Glibc
import Notation
import TestSupport
import Testing

@testable import Files

@Suite struct PartialFileTests {
    private let disk: DiskQueue
    private let news = Locked<[PartialFile.News]>([])
    private let buffers = BufferPool(limit: 4, room: DiskRoom(floor: 0)) {}

    init() throws { disk = try DiskQueue(threads: 4) }

    private func open(
        _ path: String, _ start: PartialFileOpening.Start, _ algorithms: [DigestAlgorithm] = [.sha256, .md5]
    ) async throws -> PartialFile {
        let opening = PartialFileOpening(path, start, algorithms, disk: disk, while: { true }) { [news] told in
            news.withLock { $0.append(told) }
        }
        let outcome = Locked<PartialFileOpening.Outcome?>(nil)
        opening.begin { opened in outcome.withLock { $0 = opened } }
        return try await eventually("the file is open") { outcome.withLock { $0 } }.get()
    }

    /// Writes bytes as the loop does, a few at a time, and closes the file.
    ///
    /// - Parameter every: After so many bytes what is gathered is handed over, whole piece or not.
    private func write(
        _ bytes: [UInt8], to file: PartialFile, at start: Int, _ length: Int = DiskBuffer.size, flushingEvery every: Int
    ) async throws -> PartialFile.Mark {
        var (done, gathered) = (0, 0)
        var buffer: DiskBuffer?
        while done < bytes.count {
            let count = min(13_001, bytes.count - done, every - gathered)
            let current = try await eventually("a buffer is free") { buffer ?? buffers.take() }
            if buffer == nil { current.begin(at: Int64(start + done), length: length) }
            #expect(bytes[done..<(done + count)].withUnsafeBytes { current.append($0) })
            (done, gathered, buffer) = (done + count, gathered + count, current)
            guard current.isFull || gathered >= every else { continue }
            (gathered, buffer) = (0, nil)
            file.write(current)
        }
        if let buffer { file.write(buffer) }
        buffer = nil
        file.close()
        return try await eventually("the file is closed") {
            news.withLock { news in
                for case .closed(let result) in news { return result }
                return nil
            }
        }.get()
    }

    @Test(arguments: [0, 1, 4095, 4096, 70_001, 1 << 20, (2 << 20) - 7], [13_001, 300_000, .max])
    func `What is written in pieces from any offset on is whole and digested`(start: Int, every: Int) async throws {
        let folder = TemporaryFolder()
        let whole = Content.bytes(seed: 1, length: start + (3 << 20) + 12_345)
        // What is behind the offset was not known to be whole, and goes.
        let path = folder.write(Array(whole[..<start]) + [1, 2, 3], to: "partial")
        let file = try await open(path, .behind(Int64(start), sha256: Digest.of(Array(whole[..<start]))))
        let mark = try await write(Array(whole[start...]), to: file, at: start, flushingEvery: every)
        #expect(mark == PartialFile.Mark(offset: Int64(whole.count), sha256: Digest.of(whole)))
        #expect(readFile(path) == whole)
        #expect(file.finishDigests() == [.sha256: Digest.of(whole), .md5: Digest.of(whole, .md5)])
        #expect(buffers.taken == 0)
    }

    @Test func `Stretches of one file are written beside each other, and none cuts another`() async throws {
        let folder = TemporaryFolder()
        let whole = Content.bytes(seed: 2, length: 3_000_000)
        let cuts = [0, 1_000_003, 1_000_005, 2_222_222, whole.count]
        let shared = folder.file("partial")
        for (start, end) in zip(cuts, cuts.dropFirst()).reversed() {
            news.withLock { $0 = [] }
            let file = try await open(shared, .among(Int64(start)))
            let mark = try await write(
                Array(whole[start..<end]), to: file, at: start, 1 << 16, flushingEvery: 200_000)
            #expect(mark == PartialFile.Mark(offset: Int64(end)))
        }
        #expect(readFile(shared) == whole)
    }

    @Test func `Whole blocks are not kept in memory, where the filesystem can do without`() async throws {
        let folder = TemporaryFolder()
        let path = folder.file("partial")
        let file = try await open(path, .behind(0))
        // A filesystem in memory takes such writes, and has nowhere else to keep them.
        guard DirectFile(try OpenFile.open(path, O_RDONLY), for: O_WRONLY).isDirect,
            try cachedBytes(of: folder.write([1], to: "synced"), afterDropping: true) == 0
        else { return }
        _ = try await write(
            Content.bytes(seed: 3, length: (4 << 20) + 100), to: file, at: 0, flushingEvery: .max)
        #expect(try cachedBytes(of: path) <= 64 * 1024)
    }

    @Test func `A long copy is not kept in memory, nor what it is made of`() async throws {
        let folder = TemporaryFolder()
        let (source, copy) = (
            folder.write(Content.bytes(seed: 6, length: (4 << 20) + 100), to: "source"), folder.file("copy")
        )
        guard DirectFile(try OpenFile.open(source, O_RDONLY), for: O_RDONLY).isDirect,
            try cachedBytes(of: source, afterDropping: true) == 0
        else { return }
        try await disk.copy(disk.open(source), to: copy)
        #expect(try cachedBytes(of: source) == 0)
        #expect(try cachedBytes(of: copy) <= 64 * 1024)
    }

    @Test func `A filesystem that gives nothing but by the page cache is read by that`() throws {
        let folder = TemporaryFolder()
        let whole = Content.bytes(seed: 7, length: (1 << 20) - 100)
        let file = try OpenFile.open(folder.write(whole, to: "source"), O_RDONLY)
        // A file that answers EINVAL to an odd number of bytes.
        let direct = DirectFile(file, try OpenFile.open("/proc/self/pagemap", O_RDONLY))
        let memory = AlignedMemory(byteCount: 1 << 20)
        let odd = UnsafeMutableRawBufferPointer(rebasing: memory.bytes.dropLast())
        #expect(try direct.fill(odd, at: 0) == whole.count)
        #expect(Array(odd[..<whole.count]) == whole)
        #expect(!direct.isDirect)
    }

    @Test func `A filesystem that takes nothing but by the page cache is written by that`() async throws {
        let folder = TemporaryFolder()
        let whole = Content.bytes(seed: 4, length: 2_500_000)
        let path = folder.file("partial")
        // A file that answers EINVAL to such bytes, as some filesystems do to writes past the page cache.
        let picky = try OpenFile.open("/proc/self/oom_score_adj", O_WRONLY)
        let direct = DirectFile(try OpenFile.open(path, O_RDWR | O_CREAT), picky)
        let file = PartialFile(
            direct, PartialFile.Mark(offset: 0), [Digest()], disk: disk
        ) { [news] told in news.withLock { $0.append(told) } }
        let mark = try await write(whole, to: file, at: 0, flushingEvery: .max)
        #expect(mark.sha256 == Digest.of(whole))
        #expect(readFile(path) == whole)
        #expect(!direct.isDirect)
    }

    @Test func `A full disk is told, and how far the file is whole`() async throws {
        let file = PartialFile(
            DirectFile(try OpenFile.open("/dev/full", O_RDWR), nil), PartialFile.Mark(offset: 0), [Digest()], disk: disk
        ) { [news] told in news.withLock { $0.append(told) } }
        _ = try? await write(Content.bytes(seed: 5, length: 3 << 20), to: file, at: 0, flushingEvery: .max)
        let faults = news.withLock { $0.compactMap { if case .failed(let error) = $0 { error.errno } else { nil } } }
        #expect(faults.first == ENOSPC)
        #expect(file.reached.offset == 0)
        #expect(buffers.taken == 0)
    }

    @Test func `A pool gives so many buffers, and says when one came back`() {
        let rings = Locked(0)
        let pool = BufferPool(limit: 2, room: DiskRoom(floor: 0)) { rings.withLock { $0 += 1 } }
        var first = pool.take()
        let second = pool.take()
        #expect(first != nil && second != nil && pool.take() == nil && !pool.hasFree)
        first = nil
        #expect(rings.withLock { $0 } == 1 && pool.hasFree)
        #expect(pool.take() != nil)
        // Nobody asked in vain since.
        #expect(rings.withLock { $0 } == 1)
    }

    /// How much of a file the page cache has, perhaps after it was asked to drop it.
    private func cachedBytes(of path: String, afterDropping drops: Bool = false) throws -> Int {
        let file = try OpenFile.open(path, O_RDONLY)
        if drops {
            try file.sync()
            posix_fadvise(file.descriptor, 0, 0, POSIX_FADV_DONTNEED)
        }
        let length = Int(try file.size())
        let memory = try #require(mmap(nil, length, PROT_READ, MAP_SHARED, file.descriptor, 0))
        defer { munmap(memory, length) }
        let page = Int(sysconf(Int32(_SC_PAGESIZE)))
        var pages = [UInt8](repeating: 0, count: (length + page - 1) / page)
        try #require(mincore(memory, length, &pages) == 0)
        return pages.count { $0 & 1 == 1 } * page
    }
}
