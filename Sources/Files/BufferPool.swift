import Base

/// A pool of buffers for bytes written to the disk or read from it, with a maximum number of buffers.
///
/// A buffer returns with its last reference. While other buffers are in use, returned ones are kept for reuse.
/// Otherwise most of them are freed.
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
    ///   - room: The disk space that counts the buffers' bytes as written already; `nil` for buffers of read bytes.
    ///   - whenFree: Called on any thread when a buffer returned after a request failed.
    package init(limit: Int, room: DiskRoom?, whenFree: @escaping @Sendable () -> Void) {
        self.limit = limit
        self.room = room
        self.whenFree = whenFree
    }

    /// An empty buffer; `nil` if all are in use. Then the closure `whenFree` is called when a buffer returns.
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

    /// The number of buffers in use.
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

/// Memory that direct I/O accepts. Freed with its last reference.
///
/// Unchecked: its owner fills it, and afterwards it is only read.
final class AlignedMemory: @unchecked Sendable {
    let bytes: UnsafeMutableRawBufferPointer

    init(byteCount: Int) { bytes = .allocate(byteCount: byteCount, alignment: DiskBuffer.blockSize) }

    deinit { bytes.deallocate() }
}

/// Bytes of one piece of a file, in memory for direct I/O: a byte has the same offset in its block here as in the file.
///
/// Unchecked: one thread fills it, then passes it on and does not use it again.
package final class DiskBuffer: @unchecked Sendable {
    package static let size = 1 << 20
    /// The number of bytes that a buffer accepts beyond its end, so that no file needs two buffers at once.
    package static let slack = 64 * 1024
    /// The alignment of direct writes: no disk has larger blocks.
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

    /// A buffer outside any pool, for pieces of at most this length.
    init(length: Int) {
        memory = AlignedMemory(byteCount: length)
        pool = nil
    }

    deinit {
        pool?.room?.letGo(count)
        pool?.giveBack(memory)
    }

    /// Starts a piece at this offset of a file, up to the next multiple of `length`, a divisor of ``size``.
    package func begin(at offset: Int64, length: Int) {
        self.offset = offset
        start = Int(offset % Int64(Self.blockSize))
        end = start + length - Int(offset % Int64(length))
        count = 0
    }

    /// Whether the piece is complete.
    package var isFull: Bool { start + count >= end }

    /// Appends bytes, possibly beyond the end. False if they exceed the slack.
    package func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard !isFull, start + count + bytes.count <= end + Self.slack else { return false }
        UnsafeMutableRawBufferPointer(rebasing: memory.bytes[(start + count)...]).copyMemory(from: bytes)
        count += bytes.count
        pool?.room?.gather(bytes.count)
        return true
    }

    /// The number of bytes beyond the end.
    package var surplus: Int { max(0, start + count - end) }

    /// Moves the bytes beyond the end to another buffer, which begins there.
    package func moveSurplus(to other: DiskBuffer) {
        let surplus = surplus
        guard surplus > 0, other.append(UnsafeRawBufferPointer(rebasing: bytes[(count - surplus)...])) else { return }
        count -= surplus
        pool?.room?.letGo(surplus)
    }

    /// The end of the piece in the file.
    var pieceEnd: Int64 { offset + Int64(end - start) }

    /// Reads the piece, up to the end of the file, including the bytes before it in its first block.
    func fill(from file: DirectFile) throws(SystemError) {
        let blocks = UnsafeMutableRawBufferPointer(rebasing: memory.bytes[..<end])
        count = max(0, try file.fill(blocks, at: offset - Int64(start)) - start)
    }

    /// Copies the available bytes from this offset of the file, as far as they fit.
    func copy(from offset: Int64, into target: UnsafeMutableRawBufferPointer) -> Int {
        let begin = Int(offset - self.offset)
        let length = min(target.count, count - begin)
        guard length > 0 else { return 0 }
        target.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[begin..<(begin + length)]))
        return length
    }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory.bytes[start..<(start + count)]) }
}
