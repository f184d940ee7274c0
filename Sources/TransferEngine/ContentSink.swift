import Base
import Glibc

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
        case failed(DiskError)
    }

    /// The file for the content, nil where it stays in memory.
    let path: String?
    private let limit: Int
    private let algorithms: [Digest.Algorithm]
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
    func adopt(_ partial: PartialFile) throws(DiskError) {
        file = partial.file
        if let prefix = partial.takeDigests() {
            digests = prefix
            length = partial.length
            syncRequested = length
        }
        guard !memory.isEmpty else { return }
        let result = memory.withUnsafeBytes { bytes in
            Result { () throws(DiskError) in try partial.file.write(bytes, at: 0) }
        }
        memory = []
        try result.get()
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Answer {
        if let file {
            do throws(DiskError) {
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
    func finishDigests() -> [Digest.Algorithm: [UInt8]] {
        Dictionary(digests.map { ($0.algorithm, $0.finish()) }) { first, _ in first }
    }
}

@available(*, unavailable)
extension ContentSink: Sendable {}

/// A partial file as disk threads opened it, on its way to the loop.
struct PartialFile: Sendable {
    enum Failure: Error {
        case prefixMissing
        case cancelled
        case disk(DiskError)
    }

    let file: OpenFile
    /// Bytes in it, all of them digested.
    let length: Int64
    fileprivate let reading: RunningDigest?

    /// Digests that know the file's bytes; nil when the file was empty and the sink's own are right.
    func takeDigests() -> [Digest]? { reading?.take() }
}

/// A partial file that is being opened: made where it is missing, cut to what is kept, which is read and digested in
/// steps.
final class PartialFileOpening: Sendable {
    private let path: String
    private let prefix: Int64
    private let sha256: [UInt8]?
    private let algorithms: [Digest.Algorithm]
    private let isWanted: @Sendable () -> Bool
    private let reading = Locked<RunningDigest?>(nil)

    /// - Parameter sha256: What the bytes must have; else they are not those that were received.
    init(
        _ path: String, prefix: Int64, sha256: [UInt8]?, _ algorithms: [Digest.Algorithm],
        while isWanted: @escaping @Sendable () -> Bool
    ) {
        self.path = path
        self.prefix = prefix
        self.sha256 = sha256
        self.algorithms = algorithms
        self.isWanted = isWanted
    }

    /// Only what is kept takes long to read.
    var length: DiskWorkLength { prefix > 0 ? .long : .short }

    /// The next step, which blocks. Nil where another has to follow.
    func step() -> Result<PartialFile, PartialFile.Failure>? {
        do throws(DiskError) {
            guard let reading = reading.withLock({ $0 }) else { return try begin() }
            guard isWanted() else { return .failure(.cancelled) }
            if try reading.step() { return nil }
            return finish(reading)
        } catch {
            return .failure(.disk(error))
        }
    }

    private func begin() throws(DiskError) -> Result<PartialFile, PartialFile.Failure>? {
        let file = try OpenFile.open(path, O_RDWR | O_CREAT)
        guard try file.size() >= prefix else { return .failure(.prefixMissing) }
        try file.truncate(to: prefix)
        guard prefix > 0 else { return .success(PartialFile(file: file, length: 0, reading: nil)) }
        let first = RunningDigest(file, algorithms, first: prefix)
        reading.withLock { $0 = first }
        return nil
    }

    private func finish(_ reading: RunningDigest) -> Result<PartialFile, PartialFile.Failure> {
        guard reading.length == prefix else { return .failure(.prefixMissing) }
        if let sha256, let found = reading.sha256, found != sha256 { return .failure(.prefixMissing) }
        return .success(PartialFile(file: reading.file, length: prefix, reading: reading))
    }
}
