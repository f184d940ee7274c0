import Base
import CLinux
import Glibc

/// A call to the system that failed, with its name and `errno`.
package struct DiskError: Error, Hashable, Sendable, CustomStringConvertible {
    package let operation: String
    package let errno: Int32

    package init(_ operation: String, errno: Int32) {
        self.operation = operation
        self.errno = errno
    }

    /// The disk or the quota is full.
    package var isFull: Bool { errno == ENOSPC || errno == EDQUOT }

    package var description: String { "\(operation): \(String(cString: strerror(errno)))" }
}

/// An open file. Closed with its last reference.
///
/// Its methods block; they belong on the disk threads, or on a thread that may wait.
package final class OpenFile: Sendable {
    package let descriptor: Int32

    package init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Opens a path without following a symbolic link at its end.
    package static func open(_ path: String, _ flags: Int32, mode: UInt32 = 0o600) throws(DiskError) -> OpenFile {
        let descriptor = Glibc.open(path, flags | O_CLOEXEC | O_NOFOLLOW, mode_t(mode))
        guard descriptor >= 0 else { throw DiskError("open", errno: errno) }
        return OpenFile(descriptor: descriptor)
    }

    package func size() throws(DiskError) -> Int64 { Int64(try status().st_size) }

    package func inode() throws(DiskError) -> UInt64 { UInt64(try status().st_ino) }

    func status() throws(DiskError) -> stat {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw DiskError("fstat", errno: errno) }
        return status
    }

    package func truncate(to length: Int64) throws(DiskError) {
        guard ftruncate(descriptor, off_t(length)) == 0 else { throw DiskError("ftruncate", errno: errno) }
    }

    /// Makes the bytes and the length durable. An error means that nothing is known about either.
    package func sync() throws(DiskError) {
        guard fdatasync(descriptor) == 0 else { throw DiskError("fdatasync", errno: errno) }
    }

    /// Writes all bytes or throws; some may be written then.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(DiskError) {
        var done = 0
        while done < bytes.count {
            guard let base = bytes.baseAddress else { return }
            let count = pwrite(descriptor, base + done, bytes.count - done, off_t(offset) + off_t(done))
            if count < 0 {
                if errno == EINTR { continue }
                throw DiskError("pwrite", errno: errno)
            }
            done += count
        }
    }

    /// Fills as much of `buffer` as there is; 0 at the end of the file.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(DiskError) -> Int {
        while true {
            let count = pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
            if count >= 0 { return count }
            guard errno == EINTR else { throw DiskError("pread", errno: errno) }
        }
    }

    /// Feeds up to `count` bytes from `offset` on to digests. Returns how many there were; fewer at the end of the file.
    func digest(from offset: Int64, count: Int64, into digests: [Digest]) throws(DiskError) -> Int64 {
        let size = 256 * 1024
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
        defer { buffer.deallocate() }
        var done: Int64 = 0
        while done < count {
            let wanted = Int(min(Int64(size), count - done))
            let count = try read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: offset + done)
            guard count > 0 else { break }
            for digest in digests { digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
            done += Int64(count)
        }
        return done
    }
}

/// Digests of a file's start that are computed step by step, each on whatever disk thread has the turn.
final class RunningDigest: Sendable {
    private struct State {
        var digests: [Digest]
        var length: Int64 = 0
    }

    let file: OpenFile
    /// Where it ends, or the end of the file where that comes first.
    private let end: Int64
    /// Held for the whole of a step: one follows the other, so nobody waits for it.
    private let state: Locked<State>

    init(_ file: OpenFile, _ algorithms: [Digest.Algorithm], first end: Int64 = .max) {
        self.file = file
        self.end = end
        state = Locked(State(digests: algorithms.map { Digest($0) }))
    }

    /// Reads the next bytes. False when there are no more.
    @Sendable func step() throws(DiskError) -> Bool {
        let (file, end) = (file, end)
        return try state.withLock { state throws(DiskError) in
            let wanted = min(Int64(DiskQueue.stepLength), end - state.length)
            let count = try file.digest(from: state.length, count: wanted, into: state.digests)
            state.length += count
            return count == wanted && state.length < end
        }
    }

    /// Bytes read so far.
    var length: Int64 { state.withLock { $0.length } }

    /// SHA-256 of the bytes read so far, where it is computed.
    var sha256: [UInt8]? { state.withLock { $0.digests.first { $0.algorithm == .sha256 }?.soFar() } }

    /// Digests that know the bytes that were read. Once.
    func take() -> [Digest] {
        state.withLock { state in
            let taken = state.digests
            state.digests = []
            return taken
        }
    }

    func finish() -> (length: Int64, digests: [Digest.Algorithm: [UInt8]]) {
        (length, Dictionary(take().map { ($0.algorithm, $0.finish()) }) { first, _ in first })
    }
}
