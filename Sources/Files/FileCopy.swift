import Base
import Formats
import Glibc

/// A copy of a file, made piece by piece on the disk threads: while one piece is written and digested, the next is
/// read. Long files bypass the page cache.
final class FileCopy: Sendable {
    /// Bytes that were read, to be written and digested.
    struct Piece: Sendable {
        fileprivate let offset: Int64
        fileprivate let count: Int
        fileprivate let memory: AlignedMemory

        fileprivate var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory.bytes[..<count]) }
    }

    private let source: DirectFile
    private let target: DirectFile
    private let room: DiskRoom?
    /// Each is locked while a piece is read or digested. Steps follow each other, so the locks are never contended.
    private let reached = Locked<(offset: Int64, isAtEnd: Bool)>((0, false))
    private let digests: Locked<[Digest]>
    private let spare = Locked<[AlignedMemory]>([])

    /// - Parameter room: The disk space for the copy. The copy fails with `ENOSPC` if it is too small.
    init(
        _ source: OpenFile, to target: OpenFile, _ algorithms: [DigestAlgorithm], within room: DiskRoom?
    ) throws(SystemError) {
        let isLong = try source.size() > DiskBuffer.size
        self.source = isLong ? DirectFile(source, for: O_RDONLY) : DirectFile(source, nil)
        self.target = isLong ? DirectFile(target, for: O_WRONLY) : DirectFile(target, nil)
        self.room = room
        digests = Locked(algorithms.map { Digest($0) })
    }

    /// Reads the next bytes; `nil` at the end.
    @Sendable func read() throws(SystemError) -> Piece? {
        let memory = spare.withLock { $0.popLast() } ?? AlignedMemory(byteCount: DiskBuffer.size)
        let (source, room) = (source, room)
        return try reached.withLock { reached throws(SystemError) in
            guard !reached.isAtEnd else { return nil }
            let count = try source.fill(memory.bytes, at: reached.offset)
            if let room, !room.take(count) { throw SystemError("copy", errno: ENOSPC) }
            defer { reached = (reached.offset + Int64(count), count < memory.bytes.count) }
            return Piece(offset: reached.offset, count: count, memory: memory)
        }
    }

    func digest(_ piece: Piece) {
        digests.withLock { digests in
            for digest in digests { digest.update(piece.bytes) }
        }
    }

    func write(_ piece: Piece) throws(SystemError) {
        try target.write(piece.bytes, at: piece.offset)
        // Otherwise the syncs of other files would have to write the rest.
        let isSyncDue = (piece.offset + Int64(piece.count)) % Int64(DiskQueue.stepLength) == 0
        if isSyncDue, !target.isDirect { try target.file.sync() }
    }

    /// Releases the memory of a piece.
    func letGo(_ piece: Piece) { spare.withLock { $0.append(piece.memory) } }

    /// Makes the copy durable. May be called once.
    @Sendable func finish() throws(SystemError) -> (length: Int64, digests: [DigestAlgorithm: [UInt8]]) {
        try target.file.sync()
        let finished = digests.withLock { digests in digests.takeAll().map { ($0.algorithm, $0.finish()) } }
        return (reached.withLock(\.offset), Dictionary(finished) { first, _ in first })
    }
}
