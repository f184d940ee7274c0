import Base

/// Memory for bytes on their way to the disk or from it: so many buffers at most.
///
/// A buffer comes back with its last reference. While one is out, those that came back stay for the next; else most of
/// them go back to the system.
package final class BufferPool: Sendable {
    private struct State {
        var spare: [AlignedMemory] = []
        var taken = 0
        var isAwaited = false
    }

    private static let keptAtRest = 2

    private let limit: Int
    fileprivate let room: DiskRoom?
    private let whenFree: @Sendable () -> Void
    private let state = Locked(State())

    /// - Parameters:
    ///   - room: Where the buffers' bytes count as written already; nil where they were read.
    ///   - whenFree: Called when a buffer came back after one was asked for in vain, wherever that happens.
    package init(limit: Int, room: DiskRoom?, whenFree: @escaping @Sendable () -> Void) {
        self.limit = limit
        self.room = room
        self.whenFree = whenFree
    }

    /// An empty buffer; nil where all are taken. Then ``init(limit:room:whenFree:)``'s closure is called when one is free.
    package func take() -> DiskBuffer? {
        let memory = state.withLock { state -> AlignedMemory? in
            guard state.taken < limit else {
                state.isAwaited = true
                return nil
            }
            state.taken += 1
            return state.spare.popLast() ?? AlignedMemory(byteCount: DiskBuffer.size + DiskBuffer.slack)
        }
        return memory.map { DiskBuffer($0, of: self) }
    }

    /// Buffers that are not free.
    package var taken: Int { state.withLock(\.taken) }

    package var hasFree: Bool { taken < limit }

    fileprivate func giveBack(_ memory: AlignedMemory) {
        let wasAwaited = state.withLock { state in
            state.taken -= 1
            state.spare.append(memory)
            if state.taken == 0 { state.spare.removeLast(max(0, state.spare.count - Self.keptAtRest)) }
            defer { state.isAwaited = false }
            return state.isAwaited
        }
        if wasAwaited { whenFree() }
    }
}

/// Memory that the disk can read by itself. Freed with its last reference.
///
/// Unchecked: its owner fills it, and afterwards it is only read.
final class AlignedMemory: @unchecked Sendable {
    let bytes: UnsafeMutableRawBufferPointer

    init(byteCount: Int) { bytes = .allocate(byteCount: byteCount, alignment: DiskBuffer.blockSize) }

    deinit { bytes.deallocate() }
}

/// Bytes of one piece of a file, in memory that the disk can read by itself: a byte is as far behind a block's start
/// here as in the file.
///
/// Unchecked: one thread fills it, then hands it over and does not touch it again.
package final class DiskBuffer: @unchecked Sendable {
    package static let size = 1 << 20
    /// Bytes that a buffer accepts beyond its end, so that no file needs two buffers at once.
    package static let slack = 64 * 1024
    /// What writes past the page cache are aligned to: no disk has larger blocks.
    package static let blockSize = 4096

    private let memory: AlignedMemory
    private let pool: BufferPool?
    private var start = 0
    private var end = 0
    private(set) var offset: Int64 = 0
    package private(set) var count = 0

    fileprivate init(_ memory: AlignedMemory, of pool: BufferPool) {
        self.memory = memory
        self.pool = pool
    }

    /// For pieces of this length at most, in memory of its own.
    init(length: Int) {
        memory = AlignedMemory(byteCount: length)
        pool = nil
    }

    deinit {
        pool?.room?.letGo(count)
        pool?.giveBack(memory)
    }

    /// Begins a piece at this offset of a file, which ends at the next multiple of `length`: ``size`` or a part of it.
    package func begin(at offset: Int64, length: Int) {
        self.offset = offset
        start = Int(offset % Int64(Self.blockSize))
        end = start + length - Int(offset % Int64(length))
        count = 0
    }

    /// Whether the piece's end is reached.
    package var isFull: Bool { start + count >= end }

    /// Takes bytes, some of them beyond the end. False where they are more than that.
    package func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard !isFull, start + count + bytes.count <= end + Self.slack else { return false }
        UnsafeMutableRawBufferPointer(rebasing: memory.bytes[(start + count)...]).copyMemory(from: bytes)
        count += bytes.count
        pool?.room?.gather(bytes.count)
        return true
    }

    /// How many bytes are beyond the end.
    package var surplus: Int { max(0, start + count - end) }

    /// Moves what is beyond the end to another buffer, which begins there.
    package func moveSurplus(to other: DiskBuffer) {
        let surplus = surplus
        guard surplus > 0, other.append(UnsafeRawBufferPointer(rebasing: bytes[(count - surplus)...])) else { return }
        count -= surplus
        pool?.room?.letGo(surplus)
    }

    /// Where the piece ends in the file.
    var pieceEnd: Int64 { offset + Int64(end - start) }

    /// Reads the piece, or as much of it as there is before the end of the file: with what is before it in its first block.
    func fill(from file: DirectFile) throws(SystemError) {
        let blocks = UnsafeMutableRawBufferPointer(rebasing: memory.bytes[..<end])
        count = max(0, try file.fill(blocks, at: offset - Int64(start)) - start)
    }

    /// Copies what there is from this offset of the file on, as far as it fits.
    func copy(from offset: Int64, into target: UnsafeMutableRawBufferPointer) -> Int {
        let begin = Int(offset - self.offset)
        let length = min(target.count, count - begin)
        guard length > 0 else { return 0 }
        target.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[begin..<(begin + length)]))
        return length
    }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory.bytes[start..<(start + count)]) }
}
