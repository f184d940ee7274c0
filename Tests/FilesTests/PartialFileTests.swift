import Base
import Formats
import Glibc
import TestSupport
import Testing

@testable import Files

@Suite struct PartialFileTests {
    private let disk: DiskQueue
    private let news = Locked<[PartialFile.News]>([])
    private let buffers = BufferPool(limit: 4, room: DiskRoom(floor: 0)) {}

    init() throws { disk = try DiskQueue(threads: 4) }

    private func open(
        _ path: String, _ start: PartialFileOpening.Start, _ algorithms: [DigestAlgorithm] = [.sha256, .md5],
        sync: SharedSync = SharedSync()
    ) async throws -> PartialFile {
        let opening = PartialFileOpening(path, start, algorithms, disk: disk, sync: sync, while: { true }) {
            [news] told in news.withLock { $0.append(told) }
        }
        let outcome = Locked<PartialFileOpening.Outcome?>(nil)
        opening.begin { opened in outcome.withLock { $0 = opened } }
        return try await eventually("the file is open") { outcome.withLock { $0 } }.get()
    }

    /// Writes bytes like the loop, a few at a time, and closes the file.
    ///
    /// - Parameter every: The number of bytes after which the buffer is submitted, even if it is not full.
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
    func `Bytes written in pieces from any offset are complete and digested`(start: Int, every: Int) async throws {
        let folder = TemporaryFolder()
        let whole = Content.bytes(seed: 1, length: start + (3 << 20) + 12_345)
        // Bytes after the offset are unverified, and removed.
        let path = folder.write(Array(whole[..<start]) + [1, 2, 3], to: "partial")
        let file = try await open(path, .behind(Int64(start), sha256: Digest.of(Array(whole[..<start]))))
        let mark = try await write(Array(whole[start...]), to: file, at: start, flushingEvery: every)
        #expect(mark == PartialFile.Mark(offset: Int64(whole.count), sha256: Digest.of(whole)))
        #expect(readFile(path) == whole)
        #expect(file.finishDigests() == [.sha256: Digest.of(whole), .md5: Digest.of(whole, .md5)])
        #expect(buffers.taken == 0)
    }

    @Test func `Several ranges of one file are written concurrently, and none truncates another`() async throws {
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

    /// The durable offsets that syncs reported to the files, in order.
    private var synced: [Int64] {
        news.withLock { news in
            news.compactMap { if case .synced(.success(let mark)) = $0 { mark.offset } else { nil } }
        }
    }

    @Test func `One sync reports the durable offset of every range`() async throws {
        let folder = TemporaryFolder()
        let (path, sync) = (folder.file("partial"), SharedSync())
        let first = try await open(path, .among(0), sync: sync)
        let second = try await open(path, .among(1 << 20), sync: sync)
        let other = try await open(path, .among(2 << 20), sync: sync)
        first.write([UInt8](repeating: 1, count: 1000), at: 0)
        second.write([UInt8](repeating: 2, count: 3000), at: 1 << 20)
        try await eventually("both are written") { first.reached.offset == 1000 && second.reached.offset == 1_051_576 }
        second.makeDurable()
        try await eventually("both are told") { synced.count == 2 }
        // The requesting file always gets a report, other files if their offset has grown.
        #expect(Set(synced) == [1000, 1_051_576])
        second.makeDurable()
        try await eventually("who asked is told once more") { synced.count == 3 }
        #expect(synced.last == 1_051_576)
        // A closed file gets no further reports.
        first.close()
        try await eventually("it is closed") {
            news.withLock { $0.contains { if case .closed = $0 { true } else { false } } }
        }
        #expect(other.reached.offset == 2 << 20 && synced.count == 3)
    }

    @Test func `A failed sync fails for every writer of the file, then and later`() async throws {
        let (folder, sync) = (TemporaryFolder(), SharedSync())
        func device() throws -> PartialFile {
            // The device accepts bytes and cannot be synced.
            let file = DirectFile(try OpenFile.open("/dev/null", O_RDWR), nil)
            return PartialFile(file, PartialFile.Mark(offset: 0), [], disk: disk, sync: sync) { [news] told in
                news.withLock { $0.append(told) }
            }
        }
        var failures: Int { news.withLock { $0.count { if case .synced(.failure) = $0 { true } else { false } } } }
        let files = [try device(), try device()]
        files[0].makeDurable()
        try await eventually("both are told") { failures == 2 }
        // A second descriptor of the same file could be synced.
        let later = PartialFile(
            DirectFile(try OpenFile.open(folder.file("a"), O_RDWR | O_CREAT), nil),
            PartialFile.Mark(offset: 0), [], disk: disk, sync: sync
        ) { [news] told in news.withLock { $0.append(told) } }
        later.makeDurable()
        try await eventually("so is who comes later") { failures >= 3 }
        #expect(synced.isEmpty)
    }

    @Test func `Bytes outside of the given ranges are counted and removed`() async throws {
        let files = TemporaryFolder()
        files.makeFolder("partial")
        let folder = DataFolder(path: files.path, disk: disk)
        let file = try OpenFile.open(files.file("partial/7"), O_RDWR | O_CREAT)
        let block = [UInt8](repeating: 1, count: 4096)
        for offset in [0, 3, 4, 20, 21, 40] as [Int64] { try file.write(block, at: offset * 4096) }
        let all: [Range<Int64>] = [0..<4096, 12_288..<20_480, 81_920..<90_112, 163_840..<167_936]
        guard folder.written(outside: [], of: 7) == 6 * 4096 else { return }  // The filesystem reports no holes.
        #expect(folder.written(outside: all, of: 7) == 0)
        #expect(folder.written(outside: [0..<100, 200..<4000], of: 7) == 5 * 4096)
        #expect(folder.written(outside: [0..<4096, 16_384..<86_016], of: 7) == 3 * 4096)
        try await folder.keep([100..<4096, 16_384..<86_016], of: "partial/7")
        #expect(folder.written(outside: [], of: 7) == 3 * 4096)
        let bytes = readFile(files.file("partial/7")) ?? []
        #expect(bytes.count == 86_016)
        #expect(bytes[99] == 0 && bytes[100] == 1 && bytes[16_383] == 0 && bytes[16_384] == 1)
    }

    @Test func `Whole blocks bypass the page cache if the filesystem supports it`() async throws {
        let folder = TemporaryFolder()
        let path = folder.file("partial")
        let file = try await open(path, .behind(0))
        // A filesystem in memory accepts direct writes, and uses the page cache for them.
        guard DirectFile(try OpenFile.open(path, O_RDONLY), for: O_WRONLY).isDirect,
            try cachedBytes(of: folder.write([1], to: "synced"), afterDropping: true) == 0
        else { return }
        _ = try await write(
            Content.bytes(seed: 3, length: (4 << 20) + 100), to: file, at: 0, flushingEvery: .max)
        #expect(try cachedBytes(of: path) <= 64 * 1024)
    }

    @Test func `A long copy bypasses the page cache on both sides`() async throws {
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

    @Test func `A filesystem without direct reads is read through the page cache`() throws {
        let folder = TemporaryFolder()
        let whole = Content.bytes(seed: 7, length: (1 << 20) - 100)
        let file = try OpenFile.open(folder.write(whole, to: "source"), O_RDONLY)
        // A file that returns EINVAL for an odd number of bytes.
        let direct = DirectFile(file, try OpenFile.open("/proc/self/pagemap", O_RDONLY))
        let memory = AlignedMemory(byteCount: 1 << 20)
        let odd = UnsafeMutableRawBufferPointer(rebasing: memory.bytes.dropLast())
        #expect(try direct.fill(odd, at: 0) == whole.count)
        #expect(Array(odd[..<whole.count]) == whole)
        #expect(!direct.isDirect)
    }

    @Test func `A filesystem without direct writes is written through the page cache`() async throws {
        let folder = TemporaryFolder()
        let whole = Content.bytes(seed: 4, length: 2_500_000)
        let path = folder.file("partial")
        // A file that returns EINVAL for these bytes, as some filesystems do for direct writes.
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

    @Test func `A full disk is reported with the durable offset`() async throws {
        let file = PartialFile(
            DirectFile(try OpenFile.open("/dev/full", O_RDWR), nil), PartialFile.Mark(offset: 0), [Digest()], disk: disk
        ) { [news] told in news.withLock { $0.append(told) } }
        _ = try? await write(Content.bytes(seed: 5, length: 3 << 20), to: file, at: 0, flushingEvery: .max)
        let faults = news.withLock { $0.compactMap { if case .failed(let error) = $0 { error.errno } else { nil } } }
        #expect(faults.first == ENOSPC)
        #expect(file.reached.offset == 0)
        #expect(buffers.taken == 0)
    }

    @Test func `A pool hands out a fixed number of buffers, and signals each return`() {
        let rings = Locked(0)
        let pool = BufferPool(limit: 2, room: DiskRoom(floor: 0)) { rings.withLock { $0 += 1 } }
        var first = pool.take()
        let second = pool.take()
        #expect(first != nil && second != nil && pool.take() == nil && !pool.hasFree)
        first = nil
        #expect(rings.withLock { $0 } == 1 && pool.hasFree)
        #expect(pool.take() != nil)
        // No claim has failed since.
        #expect(rings.withLock { $0 } == 1)
    }

    /// The bytes of a file in the page cache, optionally after a request to drop them.
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
