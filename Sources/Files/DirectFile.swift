package import Base
import CLinux
import Glibc

/// An open file whose whole blocks bypass the page cache if the filesystem supports it, so that large files neither
/// fill the cache nor delay syncs.
///
/// A partial block at either end of a write uses the page cache: no block is written both ways.
package final class DirectFile: Sendable {
    let file: OpenFile
    /// The same file, opened with `O_DIRECT`.
    private let direct: Locked<OpenFile?>

    init(_ file: OpenFile, _ direct: OpenFile?) {
        self.file = file
        self.direct = Locked(direct)
    }

    /// - Parameter access: `O_RDONLY` or `O_WRONLY`.
    convenience init(_ file: OpenFile, for access: Int32) {
        let descriptor = open("/proc/self/fd/\(file.descriptor)", access | O_CLOEXEC | clinux_O_DIRECT)
        self.init(file, descriptor < 0 ? nil : OpenFile(descriptor: descriptor))
    }

    /// Opens a file for reading, with `O_DIRECT` if the length makes it worthwhile.
    package static func toRead(_ path: String, _ length: Int64) throws(SystemError) -> DirectFile {
        let file = try OpenFile.open(path, O_RDONLY)
        return length > DiskBuffer.size ? DirectFile(file, for: O_RDONLY) : DirectFile(file, nil)
    }

    /// Whether whole blocks bypass the page cache.
    var isDirect: Bool { direct.withLock { $0 != nil } }

    /// Writes all bytes, or throws after writing some of them. The bytes must have the same offset in a block in memory
    /// as in the file.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) {
        let block = DiskBuffer.blockSize
        let head = min((block - Int(offset % Int64(block))) % block, bytes.count)
        let tail = head + (bytes.count - head) / block * block
        guard tail - head >= Self.leastDirect, let direct = direct.withLock({ $0 }) else {
            return try file.write(bytes, at: offset)
        }
        func write(_ range: Range<Int>, to file: OpenFile) throws(SystemError) {
            try file.write(UnsafeRawBufferPointer(rebasing: bytes[range]), at: offset + Int64(range.lowerBound))
        }
        do throws(SystemError) {
            try write(head..<tail, to: direct)
        } catch {
            try giveUp(after: error)
            try write(head..<tail, to: file)
        }
        try write(0..<head, to: file)
        try write(tail..<bytes.count, to: file)
    }

    /// Fills `buffer` up to the end of the file. The range must begin and end at block boundaries in memory and in the
    /// file.
    func fill(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError) -> Int {
        guard buffer.count > Self.leastDirect else { return try file.fill(buffer, at: offset) }
        var done = 0
        while done < buffer.count, let direct = direct.withLock({ $0 }) {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
            do throws(SystemError) {
                let count = try direct.read(into: rest, at: offset + Int64(done))
                done += count
                // A partial block occurs only at the end of the file.
                if count == 0 || done % DiskBuffer.blockSize != 0 { return done }
            } catch {
                try giveUp(after: error)
            }
        }
        let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
        return try done + file.fill(rest, at: offset + Int64(done))
    }

    /// Falls back to the page cache: some filesystems reject `O_DIRECT` at the first use only. Rethrows other errors.
    private func giveUp(after error: SystemError) throws(SystemError) {
        guard error.errno == EINVAL else { throw error }
        direct.withLock { $0 = nil }
    }

    /// Smaller writes are not worth a wait for the disk.
    private static let leastDirect = 64 * 1024
}
