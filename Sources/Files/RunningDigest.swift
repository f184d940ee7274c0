import Base
import Formats

/// Digests of a file's start that are computed step by step, each on whatever disk thread has the turn.
final class RunningDigest: Sendable {
    private struct State {
        var digests: [Digest]
        var length: Int64 = 0
    }

    let file: OpenFile
    /// Where it ends, or the end of the file where that comes first.
    private let end: Int64
    /// Held for the whole of a step. Steps follow each other, so the lock is never contended.
    private let state: Locked<State>

    init(_ file: OpenFile, _ algorithms: [DigestAlgorithm], first end: Int64 = .max) {
        self.file = file
        self.end = end
        state = Locked(State(digests: algorithms.map { Digest($0) }))
    }

    /// Reads the next bytes. False when there are no more.
    @Sendable func step() throws(SystemError) -> Bool {
        let (file, end) = (file, end)
        return try state.withLock { state throws(SystemError) in
            let wanted = min(Int64(DiskQueue.stepLength), end - state.length)
            let count = try file.digest(from: state.length, count: wanted, into: state.digests)
            state.length += count
            return count == wanted && state.length < end
        }
    }

    /// Bytes read so far.
    var length: Int64 { state.withLock { $0.length } }

    /// SHA-256 of the bytes read so far, where it is computed.
    var sha256: [UInt8]? { state.withLock { $0.digests.sha256 } }

    /// Digests that know the bytes that were read. Once.
    func take() -> [Digest] {
        state.withLock { $0.digests.takeAll() }
    }

    func finish() -> (length: Int64, digests: [DigestAlgorithm: [UInt8]]) {
        (length, Dictionary(take().map { ($0.algorithm, $0.finish()) }) { first, _ in first })
    }
}
