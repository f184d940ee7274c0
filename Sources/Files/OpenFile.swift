package import Base
import CLinux
import Glibc

/// An open file. Closed with its last reference.
///
/// Its methods block and must be called on the disk threads, or on a thread that may wait.
package final class OpenFile: Sendable {
    package let descriptor: Int32

    package init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Opens a path without following a symbolic link at its end.
    package static func open(_ path: String, _ flags: Int32, mode: UInt32 = 0o600) throws(SystemError) -> OpenFile {
        let descriptor = Glibc.open(path, flags | O_CLOEXEC | O_NOFOLLOW, mode_t(mode))
        guard descriptor >= 0 else { throw SystemError("open", errno: errno) }
        return OpenFile(descriptor: descriptor)
    }

    package func size() throws(SystemError) -> Int64 { Int64(try status().st_size) }

    package func inode() throws(SystemError) -> UInt64 { UInt64(try status().st_ino) }

    /// Whether `path` names this file.
    package func isNamed(_ path: String) throws(SystemError) -> Bool {
        var named = stat()
        guard lstat(path, &named) == 0 else { return false }
        let own = try status()
        return own.st_ino == named.st_ino && own.st_dev == named.st_dev
    }

    /// Whether all users may read the file, and none may write it.
    package func isReadOnly() throws(SystemError) -> Bool { try status().st_mode & 0o7777 == Self.readOnly }

    /// Permits all users to read the file, and none to write it, and makes that, the bytes and the length durable.
    package func makeReadOnly() throws(SystemError) {
        guard fchmod(descriptor, Self.readOnly) == 0 else { throw SystemError("fchmod", errno: errno) }
        // fdatasync leaves the permissions out.
        guard fsync(descriptor) == 0 else { throw SystemError("fsync", errno: errno) }
    }

    private static let readOnly: mode_t = 0o444

    func status() throws(SystemError) -> stat {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw SystemError("fstat", errno: errno) }
        return status
    }

    package func truncate(to length: Int64) throws(SystemError) {
        guard ftruncate(descriptor, off_t(length)) == 0 else { throw SystemError("ftruncate", errno: errno) }
    }

    /// Makes the bytes and the length durable. After an error the state of both is unknown.
    package func sync() throws(SystemError) {
        guard fdatasync(descriptor) == 0 else { throw SystemError("fdatasync", errno: errno) }
    }

    /// Writes all bytes, or throws after writing some of them.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) {
        var done = 0
        while done < bytes.count {
            guard let base = bytes.baseAddress else { return }
            let count = pwrite(descriptor, base + done, bytes.count - done, off_t(offset) + off_t(done))
            if count < 0 {
                if errno == EINTR { continue }
                throw SystemError("pwrite", errno: errno)
            }
            done += count
        }
    }

    package func write(_ bytes: [UInt8], at offset: Int64) throws(SystemError) {
        try bytes.withUnsafeBufferPointer { bytes throws(SystemError) in
            try write(UnsafeRawBufferPointer(bytes), at: offset)
        }
    }

    /// Reads up to the size of `buffer`; 0 at the end of the file.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError) -> Int {
        while true {
            let count = pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
            if count >= 0 { return count }
            guard errno == EINTR else { throw SystemError("pread", errno: errno) }
        }
    }

    /// Fills `buffer`, up to the end of the file.
    func fill(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError) -> Int {
        var done = 0
        while done < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
            let count = try read(into: rest, at: offset + Int64(done))
            guard count > 0 else { break }
            done += count
        }
        return done
    }

    /// Bytes of the file; fewer at its end.
    func bytes(_ count: Int, at offset: Int64) throws(SystemError) -> [UInt8] {
        var failure: SystemError?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            do throws(SystemError) {
                filled = try fill(UnsafeMutableRawBufferPointer(buffer), at: offset)
            } catch { failure = error }
        }
        if let failure { throw failure }
        return bytes
    }

    /// Punches a hole, if the filesystem can: the range reads as zeros, and the file keeps its length.
    func punch(_ range: Range<Int64>) throws(SystemError) {
        guard !range.isEmpty else { return }
        let (start, count) = (range.lowerBound, range.upperBound - range.lowerBound)
        guard clinux_punch(descriptor, start, count) == 0 || errno == EOPNOTSUPP || errno == ENOSYS else {
            throw SystemError("fallocate", errno: errno)
        }
    }

    /// The number of bytes written outside of the ascending ranges, in whole blocks of the filesystem. A filesystem
    /// without holes counts all bytes as written.
    func written(outside ranges: [Range<Int64>]) throws(SystemError) -> Int64 {
        let block = Int64(DiskBuffer.blockSize)
        var (count, position, reached): (Int64, Int64, Int64) = (0, 0, 0)
        let known = ranges.map { range in
            let start = max(reached, range.lowerBound / block * block)
            reached = max(start, (range.upperBound + block - 1) / block * block)
            return start..<reached
        }
        while true {
            let start = clinux_next_data(descriptor, position)
            if start < 0, errno == ENXIO { return count }
            let end = clinux_next_hole(descriptor, max(0, start))
            guard start >= 0, end > start else { throw SystemError("lseek", errno: errno) }
            count += known.reduce(end - start) { $0 - Int64($1.clamped(to: start..<end).count) }
            position = end
        }
    }

    /// Digests up to `count` bytes from `offset`. Returns their number, which is smaller at the end of the file.
    func digest(from offset: Int64, count: Int64, into digests: [Digest]) throws(SystemError) -> Int64 {
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
