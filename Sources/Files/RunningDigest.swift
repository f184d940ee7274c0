import Base
import Formats

/// Digests of the start of a file, computed in steps, each on any disk thread.
final class RunningDigest: Sendable {
    private struct State {
        var digests: [Digest]
        var length: Int64 = 0
    }

    let file: OpenFile
    /// The end of the digested range, if the file does not end before.
    private let end: Int64
    /// Locked for the whole of a step. Steps follow each other, so the lock is never contended.
    private let state: Locked<State>

    init(_ file: OpenFile, _ algorithms: [DigestAlgorithm], first end: Int64 = .max) {
        self.file = file
        self.end = end
        state = Locked(State(digests: algorithms.map { Digest($0) }))
    }

    /// Reads the next bytes. False at the end.
    @Sendable func step() throws(SystemError) -> Bool {
        let (file, end) = (file, end)
        return try state.withLock { state throws(SystemError) in
            let wanted = min(Int64(DiskQueue.stepLength), end - state.length)
            let count = try file.digest(from: state.length, count: wanted, into: state.digests)
            state.length += count
            return count == wanted && state.length < end
        }
    }

    /// The number of bytes read so far.
    var length: Int64 { state.withLock { $0.length } }

    /// SHA-256 of the bytes read so far, if it is computed.
    var sha256: [UInt8]? { state.withLock { $0.digests.sha256 } }

    /// The digest states of the bytes read. May be called once.
    func take() -> [Digest] {
        state.withLock { $0.digests.takeAll() }
    }

    func finish() -> (length: Int64, digests: [DigestAlgorithm: [UInt8]]) {
        (length, Dictionary(take().map { ($0.algorithm, $0.finish()) }) { first, _ in first })
    }
}
