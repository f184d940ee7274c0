import Base
import Files
import Formats
import Glibc

/// The bytes of a request's body, read from the start as often as libcurl likes. Belongs to the loop's thread.
final class BodySource {
    private enum Bytes {
        case memory([UInt8])
        case file(ReadAhead, offset: Int64)
    }

    /// What a stored body was when it was stored.
    struct Seal {
        let sha256: [UInt8]
        /// Knows the bytes before the first one that is sent.
        var before = PausableDigest(.sha256)
    }

    let length: Int64
    private let bytes: Bytes
    private let seal: Seal?
    /// Knows the bytes up to `position`, where they are compared.
    private var digest: PausableDigest?
    private(set) var position: Int64 = 0

    init(_ bytes: [UInt8], _ seal: Seal?) {
        self.bytes = .memory(bytes)
        self.seal = seal
        digest = seal?.before
        length = Int64(bytes.count)
    }

    init(_ ahead: ReadAhead, offset: Int64, length: Int64, _ seal: Seal?) {
        bytes = .file(ahead, offset: offset)
        self.seal = seal
        digest = seal?.before
        self.length = length
    }

    /// What reads the file.
    var ahead: ReadAhead? {
        if case .file(let ahead, _) = bytes { ahead } else { nil }
    }

    /// Fills `buffer` as far as it can; 0 at the end, nil where the bytes are on their way. A file that ends too early is
    /// `ENODATA`. The last bytes are kept back where all together are not those that were stored, so that no server has the
    /// whole of a damaged body.
    func read(into buffer: UnsafeMutableRawBufferPointer, now: Int64) throws(TransferFault) -> Int? {
        let wanted = Int(min(Int64(buffer.count), length - position))
        guard wanted > 0 else { return 0 }
        let target = UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
        var count = wanted
        switch bytes {
        case .memory(let bytes): target.copyBytes(from: bytes[Int(position)..<(Int(position) + wanted)])
        case .file(let ahead, let offset):
            do throws(SystemError) {
                guard let taken = try ahead.take(at: offset + position, into: target, now: now) else { return nil }
                count = taken
            } catch { throw .bodySource(errno: error.errno) }
        }
        guard count > 0 else { throw .bodySource(errno: ENODATA) }
        position += Int64(count)
        digest?.update(UnsafeRawBufferPointer(rebasing: target[..<count]))
        if position == length, let digest, digest.value != seal?.sha256 { throw .bodyDamaged }
        return count
    }

    /// Goes back, for a request that is sent again. False where there is no such position.
    func seek(to offset: Int64) -> Bool {
        guard (0...length).contains(offset) else { return false }
        position = offset
        // libcurl goes back to the start alone.
        digest = offset == 0 ? seal?.before : nil
        return true
    }
}

@available(*, unavailable)
extension BodySource: Sendable {}
