import Base
import CLinux
import Glibc

/// An open file whose whole blocks are written past the page cache where the filesystem takes that, so that many bytes
/// neither fill it nor make a sync wait.
///
/// What is less than a block at either end goes through it: no block is written both ways.
final class DirectFile: Sendable {
    let file: OpenFile
    /// The same file past the page cache.
    private let direct: Locked<OpenFile?>

    init(_ file: OpenFile, _ direct: OpenFile?) {
        self.file = file
        self.direct = Locked(direct)
    }

    convenience init(_ file: OpenFile) {
        let descriptor = open("/proc/self/fd/\(file.descriptor)", O_WRONLY | O_CLOEXEC | clinux_O_DIRECT)
        self.init(file, descriptor < 0 ? nil : OpenFile(descriptor: descriptor))
    }

    /// Whether whole blocks are written past the page cache.
    var isDirect: Bool { direct.withLock { $0 != nil } }

    /// Writes all bytes or throws; some may be written then. They have to lie as far behind a block's start in memory as in
    /// the file.
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
            // Some filesystems refuse such writes only when they come.
            guard error.errno == EINVAL else { throw error }
            self.direct.withLock { $0 = nil }
            try write(head..<tail, to: file)
        }
        try write(0..<head, to: file)
        try write(tail..<bytes.count, to: file)
    }

    /// Fewer bytes are not worth a wait for the disk.
    private static let leastDirect = 64 * 1024
}
