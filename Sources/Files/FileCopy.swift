import Base
import Glibc
import Notation

/// A copy of a file, made piece by piece on the disk threads: while one is written, the next is read and digested. Long
/// files are read and written past the page cache.
final class FileCopy: Sendable {
    /// Bytes that were read and are not written yet.
    struct Piece: Sendable {
        fileprivate let offset: Int64
        fileprivate let count: Int
        fileprivate let memory: AlignedMemory

        fileprivate var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory.bytes[..<count]) }
    }

    private struct State {
        var offset: Int64 = 0
        var isAtEnd = false
        var digests: [Digest]
    }

    private let source: DirectFile
    private let target: DirectFile
    private let room: DiskRoom?
    /// Held while a piece is read: one follows the other, so nobody waits for it.
    private let state: Locked<State>
    private let spare = Locked<[AlignedMemory]>([])

    /// - Parameter room: What may be written. Where it is too little the copy fails as on a full disk.
    init(
        _ source: OpenFile, to target: OpenFile, _ algorithms: [DigestAlgorithm], within room: DiskRoom?
    ) throws(SystemError) {
        let isLong = try source.size() > DiskBuffer.size
        self.source = isLong ? DirectFile(source, for: O_RDONLY) : DirectFile(source, nil)
        self.target = isLong ? DirectFile(target, for: O_WRONLY) : DirectFile(target, nil)
        self.room = room
        state = Locked(State(digests: algorithms.map { Digest($0) }))
    }

    /// Reads and digests the next bytes; nil when there are no more.
    @Sendable func read() throws(SystemError) -> Piece? {
        let memory = spare.withLock { $0.popLast() } ?? AlignedMemory(byteCount: DiskBuffer.size)
        let (source, room) = (source, room)
        return try state.withLock { state throws(SystemError) in
            guard !state.isAtEnd else { return nil }
            let count = try source.fill(memory.bytes, at: state.offset)
            state.isAtEnd = count < memory.bytes.count
            if let room, !room.take(count) { throw SystemError("copy", errno: ENOSPC) }
            let piece = Piece(offset: state.offset, count: count, memory: memory)
            for digest in state.digests { digest.update(piece.bytes) }
            state.offset += Int64(count)
            return piece
        }
    }

    func write(_ piece: Piece) throws(SystemError) {
        try target.write(piece.bytes, at: piece.offset)
        // What is left unwritten would be for others' syncs to write.
        let isSyncDue = (piece.offset + Int64(piece.count)) % Int64(DiskQueue.stepLength) == 0
        if isSyncDue, !target.isDirect { try target.file.sync() }
        spare.withLock { $0.append(piece.memory) }
    }

    /// Makes all that was written durable. Once.
    @Sendable func finish() throws(SystemError) -> (length: Int64, digests: [DigestAlgorithm: [UInt8]]) {
        try target.file.sync()
        return state.withLock { state in
            let digests = state.digests.takeAll().map { ($0.algorithm, $0.finish()) }
            return (state.offset, Dictionary(digests) { first, _ in first })
        }
    }
}
