import Base
import Core
import Files
import Formats
import Glibc

/// The destination of one exchange's kept bytes: memory first, a file when they outgrow it. Bytes for the file are
/// collected in buffers.
///
/// Used on the loop's thread. ``PartialFileOpening`` opens the file, on a disk thread.
final class ContentSink {
    enum Answer: Equatable {
        case taken
        /// No bytes were accepted: they need the file, which is not open yet.
        case needsFile
        /// The end is reached. Bytes up to the end were accepted.
        case full
        case failed(SystemError)
    }

    /// The file for the content; `nil` if it stays in memory.
    let path: String?
    private let limit: Int
    private let algorithms: [DigestAlgorithm]
    private let buffers: BufferPool
    private let pieceLength: Int
    private var memory: [UInt8] = []
    private(set) var file: PartialFile?
    /// Bytes not yet passed to the file.
    private var buffer: DiskBuffer?
    /// The length of the received content.
    private(set) var length: Int64
    /// The length of the prefix that is written and digested.
    private(set) var written: Int64
    /// The durable prefix, and its digest.
    private var durable: PartialFile.Mark
    /// Whether a sync has failed: the kernel may have dropped the bytes that are not durable, and later syncs succeed.
    private var hasLostBytes = false
    /// Content after this offset is not wanted.
    var end = Int64.max
    private(set) var isTruncated = false
    /// Collects parts, if the content is delivered in parts.
    private var gatherer: PartGatherer?

    /// - Parameters:
    ///   - seat: For parts that are longer than usual.
    ///   - maximumUnrecorded: See ``ExchangeRequest/maximumUnrecorded``: the limit has room for several pieces.
    init(_ plan: SinkPlan, _ buffers: BufferPool, _ seat: PartMemory.Seat? = nil, maximumUnrecorded: Int64?) {
        switch plan {
        case .memory(let limit):
            path = nil
            self.limit = limit
            algorithms = []
            length = 0
        case .parts(let plan, let count):
            path = nil
            limit = 0
            algorithms = []
            let plan = plan ?? PartPlan(expected: nil)
            gatherer = PartGatherer(plan, after: count, seat)
            length = plan.offset(ofPart: count + 1)
        case .content(let path, let resumeOffset, _, let threshold, let algorithms):
            self.path = path
            limit = threshold
            self.algorithms = algorithms
            length = resumeOffset
        case .stretch(let path, let offset, let end, _):
            self.path = path
            limit = 0
            algorithms = []
            length = offset
            self.end = end ?? .max
        }
        written = length
        durable = PartialFile.Mark(offset: length)
        self.buffers = buffers
        var pieceLength = DiskBuffer.size
        while pieceLength > 1 << 16, Int64(pieceLength) > (maximumUnrecorded ?? .max) / 3 { pieceLength /= 2 }
        self.pieceLength = pieceLength
    }

    /// Whether content of this length goes to the file from the start.
    func isLarge(_ announced: Int64) -> Bool { path != nil && announced > Int64(limit) }

    /// Discards everything, for content that restarts.
    func restart() {
        memory = []
        buffer = nil
        length = 0
        written = 0
        durable = PartialFile.Mark(offset: 0)
    }

    // MARK: Parts

    /// Starts with the first part of a content of known or unknown length. No effect on other sinks.
    func beginParts(expected: Int64?) {
        gatherer = gatherer?.restarted(PartPlan(expected: expected))
    }

    /// Whether bytes may be accepted now, with `unrecorded` reported bytes not yet recorded.
    func mayTakePart(unrecorded: Int64) -> Bool { gatherer?.mayTake(unrecorded: unrecorded) ?? true }

    var isInParts: Bool { gatherer != nil }

    /// Accepts bytes, and returns the parts that they complete.
    func takeParts(_ bytes: UnsafeRawBufferPointer, ofContent expected: Int64?) -> [ContentPart] {
        length += Int64(bytes.count)
        return gatherer?.take(bytes, ofContent: expected) ?? []
    }

    /// The last part, after the delivered ones.
    func takeLastPart() -> ContentPart? { gatherer?.takeLast() }

    /// Adopts the opened file, and writes the bytes in memory into it.
    func adopt(_ file: PartialFile) {
        self.file = file
        if memory.isEmpty {
            durable = file.reached
            length = durable.offset
            written = length
        } else {
            file.write(memory.takeAll(), at: 0)
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Answer {
        let rest = Int(clamping: end - length)
        guard bytes.count > rest else { return take(bytes) }
        let answer = take(UnsafeRawBufferPointer(rebasing: bytes[..<max(0, rest)]))
        return answer == .taken ? .full : answer
    }

    private func take(_ bytes: UnsafeRawBufferPointer) -> Answer {
        if let file {
            guard gather(bytes, for: file) else { return .failed(SystemError("write", errno: EMSGSIZE)) }
        } else if memory.count + bytes.count <= limit {
            memory.append(contentsOf: bytes)
        } else if path != nil {
            return .needsFile
        } else {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[..<(limit - memory.count)])
            memory.append(contentsOf: rest)
            length += Int64(rest.count)
            isTruncated = true
            return .full
        }
        length += Int64(bytes.count)
        return .taken
    }

    /// Allocates a buffer for the next bytes of the file. False if none is free.
    func reserve() -> Bool {
        if file != nil, buffer == nil { buffer = newBuffer(at: length) }
        return file == nil || buffer != nil
    }

    /// Appends bytes to a buffer, and passes a full buffer to the file. False without a buffer. libcurl passes at most
    /// 16 KiB (`CURL_MAX_WRITE_SIZE`).
    private func gather(_ bytes: UnsafeRawBufferPointer, for file: PartialFile) -> Bool {
        guard bytes.count > 0 else { return true }
        guard let full = buffer, full.append(bytes) else { return false }
        guard full.isFull else { return true }
        buffer = nil
        if full.surplus > 0, let next = newBuffer(at: length + Int64(bytes.count - full.surplus)) {
            full.moveSurplus(to: next)
            buffer = next
        }
        file.write(full)
        return true
    }

    private func newBuffer(at offset: Int64) -> DiskBuffer? {
        let buffer = buffers.take()
        buffer?.begin(at: offset, length: pieceLength)
        return buffer
    }

    /// Passes collected bytes to the file, even if they do not fill a piece.
    func flush() {
        guard let buffer = buffer.take(), buffer.count > 0 else { return }
        file?.write(buffer)
    }

    var bytesInMemory: Int { memory.count }

    /// Bytes not yet passed to the file.
    var gathered: Int { buffer?.count ?? 0 }

    /// Records that the file is written and digested up to `offset`.
    func reach(_ offset: Int64) { written = max(written, offset) }

    /// Records that the file is durable up to a mark.
    func note(durable mark: PartialFile.Mark) {
        reach(mark.offset)
        if mark.offset > durable.offset { durable = mark }
    }

    /// Records that a sync has failed.
    func loseBytes() { hasLostBytes = true }

    /// Written bytes that are not durable.
    var unsynced: Int64 { written - durable.offset }

    /// Whether no write is in flight.
    var isIdle: Bool { length - Int64(gathered) == written }

    /// Whether there are bytes to sync after the sync interval.
    var isBehind: Bool { unsynced > 0 || gathered > 0 && isIdle }

    /// Whether all received bytes are durable.
    var isSettled: Bool { file == nil || durable.offset == length }

    /// The received content, for the result. `wasKept`: the judge wanted content.
    func content(wasKept: Bool) -> ReceivedContent {
        if isInParts { return wasKept ? .parts(length: length) : .none }
        if let path, file != nil || length > 0 && memory.isEmpty { return .file(path: path, length: length) }
        return wasKept ? .memory(memory) : .none
    }

    /// Reduces the length to the bytes that the file has for certain: after a failure, fewer than received.
    ///
    /// - Returns: Their SHA-256; `nil` if there is no file, or no digest is wanted.
    func settle() -> [UInt8]? {
        buffer = nil
        guard let reached = file?.reached else { return nil }
        let mark = hasLostBytes ? durable : reached
        length = mark.offset
        return mark.sha256
    }

    /// The digests of all content. May be called once.
    func finishDigests() -> [DigestAlgorithm: [UInt8]] {
        if let file { return file.finishDigests() }
        return Dictionary(algorithms.map { ($0, Digest.of(memory, $0)) }) { first, _ in first }
    }
}

@available(*, unavailable)
extension ContentSink: Sendable {}
