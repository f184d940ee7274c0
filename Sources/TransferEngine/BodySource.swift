import Base
import Files
import Glibc

/// The bytes of a request's body, read from the start as often as libcurl likes. Belongs to the loop's thread.
final class BodySource {
    private enum Bytes {
        case memory([UInt8])
        case file(OpenFile, offset: Int64)
    }

    let length: Int64
    private let bytes: Bytes
    private(set) var position: Int64 = 0

    init(_ bytes: [UInt8]) {
        self.bytes = .memory(bytes)
        length = Int64(bytes.count)
    }

    init(_ file: OpenFile, offset: Int64, length: Int64) {
        bytes = .file(file, offset: offset)
        self.length = length
    }

    /// Fills `buffer` as far as it can; 0 at the end. A file that ends too early is `ENODATA`.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
        let wanted = Int(min(Int64(buffer.count), length - position))
        guard wanted > 0 else { return 0 }
        let target = UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
        var count = wanted
        switch bytes {
        case .memory(let bytes): target.copyBytes(from: bytes[Int(position)..<(Int(position) + wanted)])
        case .file(let file, let offset): count = try file.read(into: target, at: offset + position)
        }
        guard count > 0 else { throw SystemError("pread", errno: ENODATA) }
        position += Int64(count)
        return count
    }

    /// Goes back, for a request that is sent again. False where there is no such position.
    func seek(to offset: Int64) -> Bool {
        guard (0...length).contains(offset) else { return false }
        position = offset
        return true
    }
}

@available(*, unavailable)
extension BodySource: Sendable {}
