package import Base
package import Formats
import Glibc

/// A stretch of a partial file, written in order by one transfer: in pieces, each written and digested on disk threads
/// while the next ones fill. Other transfers may write other stretches of the file.
package final class PartialFile: Sendable {
    /// The end of the complete prefix of the stretch.
    package struct Mark: Sendable, Equatable {
        package var offset: Int64
        /// The digest of the bytes up to the offset, if it is computed.
        package var sha256: [UInt8]?

        package init(offset: Int64, sha256: [UInt8]? = nil) {
            self.offset = offset
            self.sha256 = sha256
        }
    }

    package enum News: Sendable {
        /// The file is written and digested up to this offset.
        case reached(Int64)
        /// A write failed. All later pieces are dropped.
        case failed(SystemError)
        /// The file is durable up to this mark, through a sync of this stretch or another.
        case synced(Result<Mark, SystemError>)
        /// All written bytes are durable, and no work is in flight.
        case closed(Result<Mark, SystemError>)
    }

    private enum Piece {
        case buffer(DiskBuffer)
        case bytes([UInt8], offset: Int64)

        var end: Int64 {
            switch self {
            case .buffer(let buffer): buffer.offset + Int64(buffer.count)
            case .bytes(let bytes, let offset): offset + Int64(bytes.count)
            }
        }
    }

    /// Pieces that wait for one kind of work, which handles one piece after the other.
    private struct Line {
        private var pieces: [Piece] = []
        private var isBusy = false

        /// Adds a piece. Returns whether the work must be started.
        mutating func add(_ piece: Piece) -> Bool {
            pieces.append(piece)
            defer { isBusy = true }
            return !isBusy
        }

        /// The next piece, which stays first until its work is done.
        var next: Piece? { pieces.first }
        var isIdle: Bool { !isBusy }

        /// Removes the first piece. Returns whether there are more.
        mutating func done() -> Bool {
            pieces = Array(pieces.dropFirst())
            isBusy = !pieces.isEmpty
            return isBusy
        }

        mutating func drop() { pieces = [] }
    }

    private struct State {
        var writing = Line()
        var digesting = Line()
        var written: Int64
        /// The marks of pieces that were digested before they were written.
        var digested: [Mark] = []
        var reached: Mark
        var hasFailed = false
        var isClosing = false

        var isIdle: Bool { writing.isIdle && digesting.isIdle }

        mutating func fail() {
            hasFailed = true
            writing.drop()
            digesting.drop()
        }
    }

    private let file: DirectFile
    let disk: DiskQueue
    private let sync: SharedSync
    let tell: @Sendable (News) -> Void
    private let isDigested: Bool
    /// Locked for the whole of a step. Steps follow each other, so the lock is never contended.
    private let digests: Locked<[Digest]>
    private let state: Locked<State>

    /// - Parameters:
    ///   - digests: Their state covers the bytes below `mark`.
    ///   - sync: Shared with the other stretches of the file.
    ///   - tell: Called on disk threads. Must not wait.
    init(
        _ file: DirectFile, _ mark: Mark, _ digests: consuming sending [Digest], disk: DiskQueue,
        sync: SharedSync = SharedSync(), tell: @escaping @Sendable (News) -> Void
    ) {
        self.file = file
        self.disk = disk
        self.sync = sync
        self.tell = tell
        isDigested = !digests.isEmpty
        self.digests = Locked(digests)
        state = Locked(State(written: mark.offset, reached: mark))
        sync.join(self, at: mark.offset)
    }

    /// The end of the written and digested prefix.
    package var reached: Mark { state.withLock(\.reached) }

    /// Writes the next bytes, in a buffer that the caller gives up.
    package func write(_ buffer: DiskBuffer) { add(.buffer(buffer)) }

    /// Writes the next bytes.
    package func write(_ bytes: [UInt8], at offset: Int64) { add(.bytes(bytes, offset: offset)) }

    /// Makes the bytes written so far durable, on a disk thread.
    package func makeDurable() { sync.ask(self) { .synced($0) } }

    /// Makes all bytes durable once they are written.
    package func close() {
        let isIdle = state.withLock { state in
            state.isClosing = true
            return state.isIdle
        }
        if isIdle { syncAtEnd() }
    }

    /// The digests of all written bytes. May be called once, after the end.
    package func finishDigests() -> [DigestAlgorithm: [UInt8]] {
        let digests = digests.withLock { $0.takeAll() }
        return Dictionary(digests.map { ($0.algorithm, $0.finish()) }) { first, _ in first }
    }

    /// Syncs the file, which blocks; `nil` on success.
    func syncNow() -> SystemError? {
        do throws(SystemError) {
            try file.file.sync()
            return nil
        } catch { return error }
    }

    private func syncAtEnd() { sync.ask(self, isLast: true) { .closed($0) } }
}

// MARK: - Work

extension PartialFile {
    private func add(_ piece: Piece) {
        let (writes, digests) = state.withLock { state in
            guard !state.hasFailed else { return (false, false) }
            return (state.writing.add(piece), isDigested && state.digesting.add(piece))
        }
        if writes, !disk.postSteps(.short, writeNext) {
            fail(SystemError("queue", errno: ESHUTDOWN))
            _ = state.withLock { $0.writing.done() }
        }
        if digests, !disk.postSteps(.long, digestNext) { _ = state.withLock { $0.digesting.done() } }
    }

    private func fail(_ error: SystemError) {
        state.withLock { $0.fail() }
        tell(.failed(error))
    }

    /// Writes a piece. Returns whether there are more.
    @Sendable private func writeNext() -> Bool {
        guard let piece = state.withLock({ $0.writing.next }) else { return end { $0.writing.done() } }
        do throws(SystemError) {
            try write(piece)
        } catch {
            fail(error)
            return end { $0.writing.done() }
        }
        return end { state in
            state.written = piece.end
            if !isDigested { state.digested = [Mark(offset: piece.end)] }
            return state.writing.done()
        }
    }

    /// Digests a piece. Returns whether there are more.
    @Sendable private func digestNext() -> Bool {
        guard let piece = state.withLock({ $0.digesting.next }) else { return end { $0.digesting.done() } }
        let sha256 = digests.withLock { digests in
            for digest in digests {
                switch piece {
                case .buffer(let buffer): digest.update(buffer.bytes)
                case .bytes(let bytes, _): digest.update(bytes)
                }
            }
            return digests.sha256
        }
        return end { state in
            state.digested.append(Mark(offset: piece.end, sha256: sha256))
            return state.digesting.done()
        }
    }

    /// Ends a step: updates the end of the prefix, and closes the file after the last step.
    private func end(_ note: (inout State) -> Bool) -> Bool {
        let (hasMore, reached, closes) = state.withLock { state in
            let hasMore = note(&state)
            var reached: Int64?
            while let mark = state.digested.first, mark.offset <= state.written {
                state.reached = state.digested.removeFirst()
                reached = mark.offset
            }
            return (hasMore, reached, state.isClosing && state.isIdle)
        }
        if let reached { tell(.reached(reached)) }
        if closes { syncAtEnd() }
        return hasMore
    }

    private func write(_ piece: Piece) throws(SystemError) {
        switch piece {
        case .buffer(let buffer): try file.write(buffer.bytes, at: buffer.offset)
        case .bytes(let bytes, let offset): try file.file.write(bytes, at: offset)
        }
    }
}

extension [Digest] {
    var sha256: [UInt8]? { first { $0.algorithm == .sha256 }?.soFar() }
}
