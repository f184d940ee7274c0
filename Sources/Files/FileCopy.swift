import Base
import Glibc
import Notation

/// A copy of a file that is made and digested step by step, each on whatever disk thread has the turn. It goes through the
/// page cache: copies are read soon, bodies of uploads above all.
final class FileCopy: Sendable {
    private struct State {
        var offset: Int64 = 0
        var digests: [Digest]
        let memory = AlignedMemory(byteCount: DiskBuffer.size)
    }

    private let source: OpenFile
    private let target: OpenFile
    private let room: DiskRoom?
    /// Held for the whole of a step: one follows the other, so nobody waits for it.
    private let state: Locked<State>

    /// - Parameter room: What may be written. Where it is too little the copy fails as on a full disk.
    init(_ source: OpenFile, to target: OpenFile, _ algorithms: [DigestAlgorithm], within room: DiskRoom?) {
        self.source = source
        self.target = target
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
                    try target.sync()
                    return false
                }
            }
            // What is left unwritten would be for others' syncs to write.
            try target.sync()
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
