package import Base
import Glibc

/// Fetches a range of bytes, and passes on all of them or an error.
package typealias Fetching =
    @Sendable (
        Range<Int64>, @escaping @Sendable (Result<[UInt8], SystemError>) -> Void
    ) -> Void

/// The next bytes of a file or object that is sent in order, read on disk threads or fetched from a bucket in advance.
///
/// The pieces are long while buffers are available and the bytes are consumed quickly. Otherwise they are short, one at
/// a time, in memory of their own: no reader waits for buffers. Used on one thread.
package final class ReadAhead {
    /// The result of reading a piece.
    package struct Arrival: Sendable {
        fileprivate let number: Int
        fileprivate let bytes: Result<DiskBuffer, SystemError>
    }

    private struct Piece {
        let number: Int
        let range: Range<Int64>
        let isLong: Bool
        /// `nil` while the piece is being read.
        var bytes: Result<DiskBuffer, SystemError>?
    }

    /// Reads bytes into a buffer that begins with them, and passes it on. Must not wait.
    private typealias Filling =
        @Sendable (
            DiskBuffer, Range<Int64>, @escaping @Sendable (Result<DiskBuffer, SystemError>) -> Void
        ) -> Void

    /// The maximum number of long pieces of one file in memory.
    package static let depth = 3
    private static let shortLength = 64 * 1024
    /// The time (ms) for one piece after which a sender is too slow to occupy buffers.
    package static let patience: Int64 = 2000
    /// The bytes then sent in short pieces, before long ones are tried again.
    private static let rest: Int64 = 16 << 20

    private let fill: Filling
    private let end: Int64
    private let buffers: BufferPool
    private let tell: @Sendable (Arrival) -> Void
    private var pieces: [Piece] = []
    private var lastNumber = 0
    /// The offset from which pieces may be long.
    private var longFrom: Int64 = 0
    /// When the first piece became ready to be consumed (monotonic ms).
    private var since: Int64 = 0

    /// - Parameters:
    ///   - end: The end of the last byte.
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
    ///   - fetch: Called on the thread that uses this reader. Must not wait.
    ///   - end: The end of the last byte.
    ///   - tell: Called on the threads on which `fetch` calls back. Must not wait.
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

    /// Copies bytes from this offset of the file, and has the following bytes read.
    ///
    /// - Returns: The number of bytes; 0 at the end of the file, `nil` if an ``Arrival`` must come first.
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

    /// When ``giveBack(at:)`` is due.
    package var deadline: Int64 {
        guard let first = pieces.first, first.isLong, first.bytes != nil else { return .max }
        return since + Self.patience
    }

    /// Releases the buffers if their bytes were not consumed in time.
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
