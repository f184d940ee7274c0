import Base
import Glibc
import Notation

/// A copy of a file that is made and digested step by step, each on whatever disk thread has the turn. Long files are read
/// and written past the page cache.
final class FileCopy: Sendable {
    private struct State {
        var offset: Int64 = 0
        var digests: [Digest]
        let memory = AlignedMemory(byteCount: DiskBuffer.size)
    }

    private let source: DirectFile
    private let target: DirectFile
    private let room: DiskRoom?
    /// Held for the whole of a step: one follows the other, so nobody waits for it.
    private let state: Locked<State>

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

    /// Copies the next bytes. False when there are no more; then all of them are durable.
    @Sendable func step() throws(SystemError) -> Bool {
        let (source, target, room) = (source, target, room)
        return try state.withLock { state throws(SystemError) in
            let end = state.offset + Int64(DiskQueue.stepLength)
            while state.offset < end {
                let count = try source.fill(state.memory.bytes, at: state.offset)
                let bytes = UnsafeRawBufferPointer(rebasing: state.memory.bytes[..<count])
                if let room, !room.take(count) { throw SystemError("copy", errno: ENOSPC) }
                for digest in state.digests { digest.update(bytes) }
                try target.write(bytes, at: state.offset)
                state.offset += Int64(count)
                if count < state.memory.bytes.count {
                    try target.file.sync()
                    return false
                }
            }
            // What is left unwritten would be for others' syncs to write.
            if !target.isDirect { try target.file.sync() }
            return true
        }
    }

    func finish() -> (length: Int64, digests: [DigestAlgorithm: [UInt8]]) {
        state.withLock { state in
            let digests = state.digests.takeAll().map { ($0.algorithm, $0.finish()) }
            return (state.offset, Dictionary(digests) { first, _ in first })
        }
    }
}
