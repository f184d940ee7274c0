package import Base
package import Formats
import Glibc

/// Opens a partial file: creates a missing file, truncates it to the kept bytes, and digests these in steps.
package final class PartialFileOpening: Sendable {
    package enum Failure: Error {
        case prefixMissing
        case cancelled
        case disk(SystemError)
    }

    package typealias Outcome = Result<PartialFile, Failure>

    /// The part of the file that is kept, and the offset of the new bytes.
    package enum Start: Sendable {
        /// Keeps and digests the first bytes. If their SHA-256 is not the given one, the opening fails.
        case behind(Int64, sha256: [UInt8]? = nil)
        /// Keeps everything, because other transfers write to the file as well. Nothing is digested.
        case among(Int64)

        package var offset: Int64 {
            switch self {
            case .behind(let offset, _), .among(let offset): offset
            }
        }
    }

    private let path: String
    private let start: Start
    private let algorithms: [DigestAlgorithm]
    private let isWanted: @Sendable () -> Bool
    private let disk: DiskQueue
    private let sync: SharedSync
    private let tell: @Sendable (PartialFile.News) -> Void
    private let reading = Locked<RunningDigest?>(nil)

    /// - Parameters:
    ///   - sync: Shared with the other stretches of the file.
    ///   - tell: Receives the news of the open file.
    package init(
        _ path: String, _ start: Start, _ algorithms: [DigestAlgorithm], disk: DiskQueue,
        sync: SharedSync = SharedSync(), while isWanted: @escaping @Sendable () -> Bool,
        tell: @escaping @Sendable (PartialFile.News) -> Void
    ) {
        self.path = path
        self.start = start
        self.algorithms = algorithms
        self.isWanted = isWanted
        self.disk = disk
        self.sync = sync
        self.tell = tell
    }

    /// Opens the file, then calls `body` on a disk thread. After the queue was closed, `body` gets `ESHUTDOWN` at once.
    package func begin(then body: @escaping @Sendable (Outcome) -> Void) {
        let isTaken = disk.postSteps(length) { [self] in
            guard let outcome = step() else { return true }
            body(outcome)
            return false
        }
        if !isTaken { body(.failure(.disk(SystemError("open", errno: ESHUTDOWN)))) }
    }

    /// Only kept bytes take long to read.
    private var length: DiskWorkLength {
        if case .behind(1..., _) = start { .long } else { .short }
    }

    /// Performs the next step, which blocks; `nil` if another step must follow.
    private func step() -> Outcome? {
        do throws(SystemError) {
            guard let reading = reading.withLock({ $0 }) else { return try open() }
            guard isWanted() else { return .failure(.cancelled) }
            if try reading.step() { return nil }
            return finish(reading)
        } catch {
            return .failure(.disk(error))
        }
    }

    private func open() throws(SystemError) -> Outcome? {
        let file = try OpenFile.open(path, O_RDWR | O_CREAT)
        guard case .behind(let prefix, _) = start else { return .success(opened(file, nil, [])) }
        let size = try file.size()
        guard size >= prefix else { return .failure(.prefixMissing) }
        if size > prefix {
            try file.truncate(to: prefix)
            // No byte may follow, and a power cut would bring the old bytes back.
            try file.sync()
        }
        guard prefix > 0 else { return .success(opened(file, nil, algorithms.map { Digest($0) })) }
        let first = RunningDigest(file, algorithms, first: prefix)
        reading.withLock { $0 = first }
        return nil
    }

    private func finish(_ reading: RunningDigest) -> Outcome {
        guard case .behind(let prefix, let expected) = start, reading.length == prefix else {
            return .failure(.prefixMissing)
        }
        let found = reading.sha256
        if let expected, let found, found != expected { return .failure(.prefixMissing) }
        return .success(opened(reading.file, found, reading.take()))
    }

    private func opened(_ file: OpenFile, _ sha256: [UInt8]?, _ digests: consuming sending [Digest]) -> PartialFile {
        PartialFile(
            DirectFile(file, for: O_WRONLY), PartialFile.Mark(offset: start.offset, sha256: sha256), digests,
            disk: disk, sync: sync, tell: tell)
    }
}
