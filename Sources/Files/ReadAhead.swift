package import Base
import Glibc

/// Fetches some bytes, and hands them on: all of them, or why there are none.
package typealias Fetching =
    @Sendable (
        Range<Int64>, @escaping @Sendable (Result<[UInt8], SystemError>) -> Void
    ) -> Void

/// The next bytes of a file that is sent in order, read on disk threads before they are wanted, or of bytes that are
/// fetched from a bucket.
///
/// Its pieces are long while there are buffers for them and the bytes go soon. Else they are short, one at a time, in
/// memory of their own: no reader waits for another's buffers. Belongs to one thread, which passes it what arrives.
package final class ReadAhead {
    /// A piece that was read, or not.
    package struct Arrival: Sendable {
        fileprivate let number: Int
        fileprivate let bytes: Result<DiskBuffer, SystemError>
    }

    private struct Piece {
        let number: Int
        let range: Range<Int64>
        let isLong: Bool
        /// nil while it is being read.
        var bytes: Result<DiskBuffer, SystemError>?
    }

    /// Reads bytes into a buffer that begins with them, and hands it on. Must not wait.
    private typealias Filling =
        @Sendable (
            DiskBuffer, Range<Int64>, @escaping @Sendable (Result<DiskBuffer, SystemError>) -> Void
        ) -> Void

    /// Long pieces of one file at a time.
    package static let depth = 3
    private static let shortLength = 64 * 1024
    /// Who takes longer for a piece (ms) sends so slowly that others need the buffers more.
    package static let patience: Int64 = 2000
    /// Bytes that go in short pieces then, before long ones are tried again.
    private static let rest: Int64 = 16 << 20

    private let fill: Filling
    private let end: Int64
    private let buffers: BufferPool
    private let tell: @Sendable (Arrival) -> Void
    private var pieces: [Piece] = []
    private var lastNumber = 0
    /// The offset from which on pieces may be long.
    private var longFrom: Int64 = 0
    /// Since when the first piece waits to be taken (monotonic ms).
    private var since: Int64 = 0

    /// - Parameters:
    ///   - end: Where the last of the bytes ends.
    ///   - tell: Called on disk threads. Must not wait.
    package init(
        _ file: DirectFile, to end: Int64, _ disk: DiskQueue, _ buffers: BufferPool,
        tell: @escaping @Sendable (Arrival) -> Void
    ) {
        fill = { buffer, _, then in
            disk.run { () throws(SystemError) in
                try buffer.fill(from: file)
                return buffer
            } then: {
                then($0)
            }
        }
        self.end = end
        self.buffers = buffers
        self.tell = tell
    }

    /// - Parameters:
    ///   - fetch: Called on the thread that this belongs to. Must not wait.
    ///   - end: Where the last of the bytes ends.
    ///   - tell: Called wherever `fetch` calls. Must not wait.
    package init(
        _ fetch: @escaping Fetching, to end: Int64, _ buffers: BufferPool, tell: @escaping @Sendable (Arrival) -> Void
    ) {
        fill = { buffer, range, then in
            fetch(range) { bytes in
                then(
                    bytes.flatMap { bytes in
                        let isTaken = bytes.withUnsafeBytes { buffer.append($0) }
                        return isTaken ? .success(buffer) : .failure(SystemError("read", errno: EMSGSIZE))
                    })
            }
        }
        self.end = end
        self.buffers = buffers
        self.tell = tell
    }

    /// Takes bytes from this offset of the file on, and has those behind them read.
    ///
    /// - Returns: How many; 0 at the end of the file, nil where they come as an ``Arrival`` first.
    package func take(
        at offset: Int64, into target: UnsafeMutableRawBufferPointer, now: Int64
    ) throws(SystemError) -> Int? {
        while let first = pieces.first, !first.range.contains(offset) { removeFirst(at: now) }
        readOn(from: pieces.last?.range.upperBound ?? offset)
        guard let first = pieces.first else { return 0 }
        guard let buffer = try first.bytes?.get() else { return nil }
        let count = buffer.copy(from: offset, into: target)
        if offset + Int64(count) == first.range.upperBound { removeFirst(at: now) }
        return count
    }

    package func take(_ arrival: Arrival, now: Int64) {
        guard let index = pieces.firstIndex(where: { $0.number == arrival.number }) else { return }
        pieces[index].bytes = arrival.bytes
        if index == 0 { since = now }
    }

    /// When ``giveBack(at:)`` has something to do.
    package var deadline: Int64 {
        guard let first = pieces.first, first.isLong, first.bytes != nil else { return .max }
        return since + Self.patience
    }

    /// Gives back the buffers if their bytes are not read.
    package func giveBack(at now: Int64) {
        guard deadline <= now, let first = pieces.first else { return }
        longFrom = first.range.lowerBound + Self.rest
        pieces = []
    }

    private func removeFirst(at now: Int64) {
        pieces.removeFirst()
        since = now
    }

    private func readOn(from offset: Int64) {
        var next = offset
        while pieces.count < Self.depth, next < end {
            let pooled = next < longFrom ? nil : buffers.take()
            guard let buffer = pooled ?? (pieces.isEmpty ? DiskBuffer(length: Self.shortLength) : nil) else { return }
            buffer.begin(at: next, length: pooled == nil ? Self.shortLength : DiskBuffer.size)
            lastNumber += 1
            let number = lastNumber
            let range = next..<min(end, buffer.pieceEnd)
            pieces.append(Piece(number: number, range: range, isLong: pooled != nil))
            next = range.upperBound
            fill(buffer, range) { [tell] in tell(Arrival(number: number, bytes: $0)) }
        }
    }
}

@available(*, unavailable)
extension ReadAhead: Sendable {}
