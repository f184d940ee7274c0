package import Base
import Formats
import Glibc

/// The open file of a body, with the digest state of the bytes before the first one sent.
package struct OpenedBody: Sendable {
    package let file: DirectFile
    /// SHA-256 state of the bytes before the offset.
    package let digest: PausableDigest
}

/// Opens a body's file and digests the bytes before the first one sent, in steps.
package final class BodyOpening: Sendable {
    private struct State {
        var file: DirectFile?
        var digest = PausableDigest(.sha256)
        var position: Int64 = 0
    }

    private let path: String
    private let length: Int64
    private let offset: Int64
    private let disk: DiskQueue
    /// Locked for the whole of a step. Steps follow each other, so no thread waits for the lock.
    private let state = Locked(State())

    /// - Parameters:
    ///   - length: The number of bytes that will be sent.
    ///   - offset: The number of bytes to digest; 0 for none.
    package init(_ path: String, _ length: Int64, digesting offset: Int64, disk: DiskQueue) {
        self.path = path
        self.length = length
        self.offset = offset
        self.disk = disk
    }

    /// Opens the file, then calls `body` on a disk thread. A file shorter than the offset fails with `ENODATA`. After
    /// the queue was closed, `body` is called at once with `ESHUTDOWN`.
    package func begin(then body: @escaping @Sendable (Result<OpenedBody, SystemError>) -> Void) {
        let isTaken = disk.postSteps(offset > 0 ? .long : .short) { [self] in
            do throws(SystemError) {
                guard let opened = try step() else { return true }
                body(.success(opened))
            } catch {
                body(.failure(error))
            }
            return false
        }
        if !isTaken { body(.failure(SystemError("queue", errno: ESHUTDOWN))) }
    }

    /// Performs the next step, which blocks; `nil` if another step must follow.
    private func step() throws(SystemError) -> OpenedBody? {
        try state.withLock { state throws(SystemError) in
            if state.file == nil { state.file = try DirectFile.toRead(path, length) }
            guard let direct = state.file else { return nil }
            let wanted = Int(min(Int64(DiskQueue.stepLength), offset - state.position))
            guard wanted > 0 else { return OpenedBody(file: direct, digest: state.digest) }
            let bytes = try direct.file.bytes(wanted, at: state.position)
            guard bytes.count == wanted else { throw SystemError("pread", errno: ENODATA) }
            bytes.withUnsafeBytes { state.digest.update($0) }
            state.position += Int64(wanted)
            return nil
        }
    }
}
