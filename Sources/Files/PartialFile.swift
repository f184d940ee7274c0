package import Base
import Glibc
package import Notation

/// A partial file as disk threads opened it, on its way to the loop.
package struct PartialFile: Sendable {
    package enum Failure: Error {
        case prefixMissing
        case cancelled
        case disk(SystemError)
    }

    package let file: OpenFile
    /// Bytes in it, all of them digested.
    package let length: Int64
    fileprivate let reading: RunningDigest?

    /// Digests that have read the file's bytes; nil where it was empty, so that new ones will do.
    package func takeDigests() -> [Digest]? { reading?.take() }
}

/// A partial file that is being opened: made where it is missing, cut to what is kept, which is read and digested in
/// steps.
package final class PartialFileOpening: Sendable {
    private let path: String
    private let prefix: Int64
    private let sha256: [UInt8]?
    private let algorithms: [DigestAlgorithm]
    private let isWanted: @Sendable () -> Bool
    private let reading = Locked<RunningDigest?>(nil)

    /// - Parameter sha256: The digest of the bytes that were received: with another, these are not they.
    package init(
        _ path: String, prefix: Int64, sha256: [UInt8]?, _ algorithms: [DigestAlgorithm],
        while isWanted: @escaping @Sendable () -> Bool
    ) {
        self.path = path
        self.prefix = prefix
        self.sha256 = sha256
        self.algorithms = algorithms
        self.isWanted = isWanted
    }

    /// Only kept bytes take long to read.
    package var length: DiskWorkLength { prefix > 0 ? .long : .short }

    /// The next step, which blocks. Nil where another has to follow.
    package func step() -> Result<PartialFile, PartialFile.Failure>? {
        do throws(SystemError) {
            guard let reading = reading.withLock({ $0 }) else { return try begin() }
            guard isWanted() else { return .failure(.cancelled) }
            if try reading.step() { return nil }
            return finish(reading)
        } catch {
            return .failure(.disk(error))
        }
    }

    private func begin() throws(SystemError) -> Result<PartialFile, PartialFile.Failure>? {
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
