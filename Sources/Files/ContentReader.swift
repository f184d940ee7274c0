package import Base
package import Formats
import Glibc

/// Reads a file in order while transfers write it, on disk threads: digests the content, and verifies its pieces.
///
/// One read at a time.
package final class ContentReader: Sendable {
    private struct State {
        var file: OpenFile?
        var position: Int64 = 0
        var digests: [Digest]
        /// The states of the digests at the start of the current piece.
        var digestsBefore: [Digest] = []
        var piece: Digest?
    }

    private enum Step {
        case more, done
        case wrong(Range<Int64>)
    }

    private let path: String
    private let disk: DiskQueue
    private let pieces: PieceDigests?
    private let total: Int64
    /// Locked for the whole of a step. Steps follow each other, so the lock is never contended.
    private let state: Locked<State>

    package init(
        _ path: String, _ disk: DiskQueue, total: Int64, _ algorithms: Set<DigestAlgorithm>, _ pieces: PieceDigests?
    ) {
        self.path = path
        self.disk = disk
        self.total = total
        self.pieces = pieces
        state = Locked(State(digests: algorithms.map { Digest($0) }))
    }

    package var position: Int64 { state.withLock { $0.position } }

    /// Reads up to `end`. A wrong piece is punched out of the file, to be downloaded and read again.
    ///
    /// - Returns: The range of a wrong piece, if any.
    package func read(to end: Int64) async throws(SystemError) -> Range<Int64>? {
        while true {
            switch try await disk.run(.long, { () throws(SystemError) in try self.step(to: end) }) {
            case .more: continue
            case .done: return nil
            case .wrong(let piece): return piece
            }
        }
    }

    /// Truncates the file to the length of the content.
    package func truncate() async throws(SystemError) {
        let (path, total) = (path, total)
        try await disk.run { () throws(SystemError) in
            let file = try OpenFile.open(path, O_RDWR)
            guard try file.size() != total else { return }
            try file.truncate(to: total)
            try file.sync()
        }
    }

    /// The digests of the whole content. May be called once.
    package func finish() -> [DigestAlgorithm: [UInt8]] {
        state.withLock { state in
            Dictionary(state.digests.map { ($0.algorithm, $0.finish()) }) { first, _ in first }
        }
    }

    private func step(to end: Int64) throws(SystemError) -> Step {
        try state.withLock { state throws(SystemError) -> Step in try step(to: end, &state) }
    }

    private func step(to end: Int64, _ state: inout State) throws(SystemError) -> Step {
        guard state.position < end else { return .done }
        let piece = pieces.map { bounds(at: state.position, of: $0.length) }
        let last = min(end, piece?.upperBound ?? end)
        try read(min(Int64(DiskQueue.stepLength), last - state.position), &state)
        guard let piece, let pieces, state.position == piece.upperBound else { return .more }
        let found = state.piece.take()?.finish().hexadecimal
        let index = Int(piece.lowerBound / pieces.length)
        if index < pieces.values.count, pieces.values[index] == found { return .more }
        state.position = piece.lowerBound
        state.digests = state.digestsBefore
        try state.file?.punch(piece)
        return .wrong(piece)
    }

    private func read(_ count: Int64, _ state: inout State) throws(SystemError) {
        let file = if let file = state.file { file } else { try OpenFile.open(path, O_RDWR) }
        state.file = file
        var digests = state.digests
        if let pieces {
            let piece = state.piece ?? Digest(pieces.algorithm)
            if state.piece == nil { state.digestsBefore = state.digests.map { $0.copy() } }
            state.piece = piece
            digests.append(piece)
        }
        let found = try file.digest(from: state.position, count: count, into: digests)
        guard found == count else { throw SystemError("pread", errno: EIO) }
        state.position += count
    }

    private func bounds(at offset: Int64, of length: Int64) -> Range<Int64> {
        let start = offset / length * length
        return start..<(total - start > length ? start + length : total)
    }
}
