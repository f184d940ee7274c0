import Base
import Glibc
import TestSupport
import Testing

@testable import Files

@Suite struct ReadAheadTests {
    private let folder = TemporaryFolder()
    private let disk: DiskQueue
    private let buffers = BufferPool(limit: 4, room: nil) {}
    private let arrivals = Locked<[ReadAhead.Arrival]>([])
    private let content = Content.bytes(seed: 1, length: (4 << 20) + 777)

    init() throws { disk = try DiskQueue(threads: 2) }

    private func readAhead(to end: Int? = nil) throws -> ReadAhead {
        let path = folder.write(content, to: "body")
        return readAhead(try DirectFile.toRead(path, Int64(content.count)), to: end ?? content.count)
    }

    private func readAhead(_ file: DirectFile, to end: Int) -> ReadAhead {
        ReadAhead(file, to: Int64(end), disk, buffers) { [arrivals] arrival in
            arrivals.withLock { $0.append(arrival) }
        }
    }

    private func deliver(to ahead: ReadAhead, now: Int64) {
        for arrival in arrivals.withLock({ $0.takeAll() }) { ahead.take(arrival, now: now) }
    }

    /// The next bytes, at most 70,001 of them.
    private func next(_ ahead: ReadAhead, at offset: Int, now: Int64 = 0) async throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 70_001)
        let count = try await eventually("they are read") { () -> Int? in
            deliver(to: ahead, now: now)
            return try bytes.withUnsafeMutableBytes { try ahead.take(at: Int64(offset), into: $0, now: now) }
        }
        return Array(bytes[..<count])
    }

    private func whole(_ ahead: ReadAhead, from start: Int) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let piece = try await next(ahead, at: start + bytes.count)
            guard !piece.isEmpty else { return bytes }
            bytes += piece
        }
    }

    private func allComeBack() async throws {
        try await eventually("all buffers came back") { () -> Bool in
            arrivals.withLock { $0 = [] }
            return buffers.taken == 0
        }
    }

    @Test(arguments: [0, 1, 4096, 70_001, (1 << 20) - 1, (3 << 20) + 5])
    func `Bytes from any offset are those of the file, also on a second read`(start: Int) async throws {
        let ahead = try readAhead()
        #expect(try await whole(ahead, from: start) == Array(content[start...]))
        #expect(buffers.taken == 0)
        let again = min(start, 1000)
        #expect(try await whole(ahead, from: again) == Array(content[again...]))
    }

    @Test func `A read in flight for abandoned bytes is not used for others`() async throws {
        let ahead = try readAhead()
        var others = (0..<4).compactMap { _ in buffers.take() }
        var bytes = [UInt8](repeating: 0, count: 70_001)
        for offset in [0, 2 << 20, 0] {
            // The first read is a short piece, the last a long one from the same offset.
            #expect(try bytes.withUnsafeMutableBytes { try ahead.take(at: Int64(offset), into: $0, now: 0) } == nil)
            others.removeAll()
        }
        #expect(try await whole(ahead, from: 0) == content)
    }

    @Test func `A file that shrank is read to its end`() async throws {
        let ahead = try readAhead(to: content.count + 3_000_000)
        #expect(try await whole(ahead, from: 0) == content)
    }

    @Test func `A read error is thrown at the first affected byte`() async throws {
        let ahead = readAhead(DirectFile(try OpenFile.open(folder.path, O_RDONLY), nil), to: content.count)
        await #expect(throws: SystemError("pread", errno: EISDIR)) { _ = try await next(ahead, at: 0) }
    }

    @Test func `If other readers hold all buffers, bytes arrive in short pieces`() async throws {
        let ahead = try readAhead()
        var others = (0..<4).compactMap { _ in buffers.take() }
        #expect(others.count == 4)
        #expect(try await whole(ahead, from: 777) == Array(content[777...]))
        #expect(try await next(ahead, at: 1 << 16).count == 1 << 16)
        others.removeAll()
        #expect(try await next(ahead, at: 2 << 16).count == 70_001)
        #expect(buffers.taken == ReadAhead.depth)
    }

    @Test func `Bytes that are not read for two seconds are released, and then arrive in short pieces`() async throws {
        let ahead = try readAhead()
        #expect(try await next(ahead, at: 0, now: 10).count == 70_001)
        #expect(ahead.deadline == 2010)
        ahead.giveBack(at: 2009)
        #expect(buffers.taken > 0)
        ahead.giveBack(at: 2010)
        #expect(ahead.deadline == .max)
        try await allComeBack()
        #expect(try await next(ahead, at: 70_001, now: 2010) == Array(content[70_001..<(2 << 16)]))
        #expect(buffers.taken == 0)
    }

    @Test func `The end releases all buffers`() async throws {
        var ahead: ReadAhead? = try readAhead()
        if let ahead { _ = try await next(ahead, at: 0) }
        #expect(buffers.taken > 0)
        ahead = nil
        try await allComeBack()
    }
}
