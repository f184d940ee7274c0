import Base
import Files
import Glibc

/// The bytes of a request's body, read from the start as often as libcurl likes. Belongs to the loop's thread.
final class BodySource {
    private enum Bytes {
        case memory([UInt8])
        case file(ReadAhead, offset: Int64)
    }

    let length: Int64
    private let bytes: Bytes
    private(set) var position: Int64 = 0

    init(_ bytes: [UInt8]) {
        self.bytes = .memory(bytes)
        length = Int64(bytes.count)
    }

    init(_ ahead: ReadAhead, offset: Int64, length: Int64) {
        bytes = .file(ahead, offset: offset)
        self.length = length
    }

    /// What reads the file.
    var ahead: ReadAhead? {
        if case .file(let ahead, _) = bytes { ahead } else { nil }
    }

    /// Fills `buffer` as far as it can; 0 at the end, nil where the bytes are on their way. A file that ends too early is
    /// `ENODATA`.
    func read(into buffer: UnsafeMutableRawBufferPointer, now: Int64) throws(SystemError) -> Int? {
        let wanted = Int(min(Int64(buffer.count), length - position))
        guard wanted > 0 else { return 0 }
        let target = UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
        var count = wanted
        switch bytes {
        case .memory(let bytes): target.copyBytes(from: bytes[Int(position)..<(Int(position) + wanted)])
        case .file(let ahead, let offset):
            guard let taken = try ahead.take(at: offset + position, into: target, now: now) else { return nil }
            count = taken
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
