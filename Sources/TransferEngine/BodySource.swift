import Base
import Files
import Formats
import Glibc

/// The bytes of a request's body. libcurl may read them from the start several times. Used on the loop's thread.
final class BodySource {
    private enum Bytes {
        case memory([UInt8])
        case file(ReadAhead, offset: Int64)
    }

    /// The digest of a stored body.
    struct Seal {
        let sha256: [UInt8]
        /// The digest state of the bytes before the first one sent.
        var before = PausableDigest(.sha256)
    }

    let length: Int64
    private let bytes: Bytes
    private let seal: Seal?
    /// The digest state of the bytes up to `position`, if they are compared.
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

    /// The reader of the body's file, if any.
    var ahead: ReadAhead? {
        if case .file(let ahead, _) = bytes { ahead } else { nil }
    }

    /// Fills `buffer` as far as possible; returns 0 at the end and `nil` while bytes are being read. A file that is too
    /// short fails with `ENODATA`. If the digest does not match, the last bytes are not sent, so that no server
    /// receives the whole of a damaged body.
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

    /// Seeks for a repeated request. False if the position is outside the body.
    func seek(to offset: Int64) -> Bool {
        guard (0...length).contains(offset) else { return false }
        position = offset
        // libcurl seeks to the start only.
        digest = offset == 0 ? seal?.before : nil
        return true
    }
}

@available(*, unavailable)
extension BodySource: Sendable {}
