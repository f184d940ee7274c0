import Base
import CSQLite
import Glibc

/// The digest at the end of an export. SQLite ignores bytes after the length in its header, so the file stays a
/// database.
enum ExportSeal {
    private static let mark = Array("urlsessiond export, sha-256: ".utf8)
    /// The mark, then the digest as hexadecimal digits.
    private static var length: Int64 { Int64(mark.count) + 64 }

    /// Appends the digest of all bytes of a file.
    static func append(to path: String) throws(SQLError) {
        let file = try OpenExport(path, O_RDWR)
        let digest = try file.digest(of: file.size)
        let seal = mark + Array(digest.hexadecimal.utf8)
        let count = pwrite(file.descriptor, seal, seal.count, off_t(file.size))
        guard count == seal.count else { throw SQLError(code: SQLITE_FULL, message: "\(path): cannot be written") }
    }

    /// - Throws: `SQLITE_CORRUPT` if the file has no digest or its bytes do not match it.
    static func check(_ path: String) throws(SQLError) {
        let file = try OpenExport(path, O_RDONLY)
        let end = file.size - length
        guard end > 0, try file.bytes(Int(length), at: end).starts(with: mark) else {
            throw SQLError(
                code: SQLITE_CORRUPT,
                message: "\(path) is no whole export of this version: there is no digest at its end. Export again")
        }
        let digits = try file.bytes(64, at: end + Int64(mark.count))
        guard try file.digest(of: end).hexadecimal == String(decoding: digits, as: UTF8.self) else {
            throw SQLError(
                code: SQLITE_CORRUPT,
                message: "\(path) is damaged: it does not have the digest that it was written with. Export again")
        }
    }
}

private final class OpenExport {
    let descriptor: Int32
    let size: Int64
    private let path: String

    init(_ path: String, _ flags: Int32) throws(SQLError) {
        let descriptor = open(path, flags | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.failure(path) }
        self.path = path
        self.descriptor = descriptor
        size = Int64(lseek(descriptor, 0, SEEK_END))
    }

    deinit { close(descriptor) }

    func bytes(_ count: Int, at offset: Int64) throws(SQLError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let read = pread(descriptor, &bytes, count, off_t(offset))
        guard read >= 0 else { throw Self.failure(path) }
        return Array(bytes.prefix(read))
    }

    /// SHA-256 of the first bytes.
    func digest(of length: Int64) throws(SQLError) -> [UInt8] {
        let digest = Digest()
        var position: Int64 = 0
        while position < length {
            let piece = try bytes(Int(min(1 << 20, length - position)), at: position)
            guard !piece.isEmpty else {
                throw SQLError(code: SQLITE_CORRUPT, message: "\(path): shorter than a moment ago")
            }
            digest.update(piece)
            position += Int64(piece.count)
        }
        return digest.finish()
    }

    private static func failure(_ path: String) -> SQLError {
        SQLError(code: SQLITE_CANTOPEN, message: "\(path): \(String(cString: strerror(errno)))")
    }
}

@available(*, unavailable)
extension OpenExport: Sendable {}
