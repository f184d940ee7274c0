import Base
import Files
import Glibc
import Notation

/// Where kept bytes of one exchange go: memory first, a file when they outgrow it.
///
/// Belongs to the loop's thread. Opens nothing itself: ``PartialFile`` does, on a disk thread.
final class ContentSink {
    enum Answer: Equatable {
        case taken
        /// Nothing was taken: the bytes need the file, which is not open yet.
        case needsFile
        /// The memory limit is reached; what fits was taken.
        case full
        case failed(SystemError)
    }

    /// The file for the content, nil where it stays in memory.
    let path: String?
    private let limit: Int
    private let algorithms: [DigestAlgorithm]
    private var digests: [Digest]
    private var memory: [UInt8] = []
    private(set) var file: OpenFile?
    /// Bytes of content at hand.
    private(set) var length: Int64
    /// Up to where a sync has been asked for.
    var syncRequested: Int64
    private(set) var isTruncated = false

    init(_ plan: SinkPlan) {
        switch plan {
        case .memory(let limit):
            path = nil
            self.limit = limit
            algorithms = []
            length = 0
        case .content(let path, let resumeOffset, _, let threshold, let algorithms):
            self.path = path
            limit = threshold
            self.algorithms = algorithms
            length = resumeOffset
        }
        syncRequested = length
        digests = algorithms.map { Digest($0) }
    }

    /// Whether content of this length belongs into the file from the start.
    func isLarge(_ announced: Int64) -> Bool { path != nil && announced > Int64(limit) }

    /// Forgets everything, for content that begins anew.
    func restart() {
        memory = []
        length = 0
        syncRequested = 0
        digests = algorithms.map { Digest($0) }
    }

    /// Takes the opened file, and writes into it what is in memory.
    func adopt(_ partial: PartialFile) throws(SystemError) {
        file = partial.file
        if let prefix = partial.takeDigests() {
            digests = prefix
            length = partial.length
            syncRequested = length
        }
        guard !memory.isEmpty else { return }
        try partial.file.write(memory.takeAll(), at: 0)
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Answer {
        if let file {
            do throws(SystemError) {
                try file.write(bytes, at: length)
            } catch { return .failed(error) }
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
        for digest in digests { digest.update(bytes) }
        length += Int64(bytes.count)
        return .taken
    }

    var bytesInMemory: Int { memory.count }

    /// Bytes that no sync has been asked for.
    var unsynced: Int64 { file == nil ? 0 : length - syncRequested }

    /// Of the bytes in the file; nil where there is none, or nobody wants the digest.
    var sha256: [UInt8]? {
        file == nil ? nil : digests.first { $0.algorithm == .sha256 }?.soFar()
    }

    /// What is at hand, for the result. `wasKept`: the judge wanted content.
    func content(wasKept: Bool) -> ReceivedContent {
        if let path, file != nil || length > 0 && memory.isEmpty { return .file(path: path, length: length) }
        return wasKept ? .memory(memory) : .none
    }

    /// The digests of all content. Once.
    func finishDigests() -> [DigestAlgorithm: [UInt8]] {
        Dictionary(digests.map { ($0.algorithm, $0.finish()) }) { first, _ in first }
    }
}

@available(*, unavailable)
extension ContentSink: Sendable {}
