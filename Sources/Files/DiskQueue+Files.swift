package import Base
import CLinux
package import Formats
import Glibc

/// Operations on whole files.
extension DiskQueue {
    /// Makes a file durable (`fdatasync`).
    package func sync(_ path: String) async throws(SystemError) {
        try await run { () throws(SystemError) in try OpenFile.open(path, O_RDONLY).sync() }
    }

    /// Makes the entries of a folder durable.
    package func syncFolder(_ path: String) async throws(SystemError) {
        try await run { () throws(SystemError) in try Disk.syncFolder(path) }
    }

    /// Renames within one filesystem and syncs the target folder, and the source folder if it is another one. Without
    /// `replace`, an existing file fails with `EEXIST`. If a sync fails, the file has its former name again.
    package func move(_ from: String, to: String, replace: Bool = false) async throws(SystemError) {
        try await run { () throws(SystemError) in
            guard clinux_rename(AT_FDCWD, from, AT_FDCWD, to, replace ? 1 : 0) == 0 else {
                throw SystemError("rename", errno: errno)
            }
            do throws(SystemError) {
                try Disk.syncFolder(Disk.folder(of: to))
                if Disk.folder(of: from) != Disk.folder(of: to) { try Disk.syncFolder(Disk.folder(of: from)) }
            } catch {
                _ = clinux_rename(AT_FDCWD, to, AT_FDCWD, from, 0)
                throw error
            }
        }
    }

    /// Removes a file, if it exists.
    ///
    /// - Parameter durably: Whether the folder is synced, so that no power cut returns the file.
    package func remove(_ path: String, durably: Bool = false) async throws(SystemError) {
        try await run { () throws(SystemError) in try Disk.remove(path, durably: durably) }
    }

    /// Removes a file, if it exists, then calls `body` on a disk thread. After the queue was closed, the file stays.
    package func remove(_ path: String, durably: Bool, then body: @escaping @Sendable () -> Void) {
        run {
            _ = try? Disk.remove(path, durably: durably)
        } then: { _ in
            body()
        }
    }

    /// The names in a folder, without `.` and `..`.
    package func list(_ path: String) async throws(SystemError) -> [String] {
        try await run { () throws(SystemError) in try Disk.list(path) }
    }

    /// Copies an open file to a new one and syncs the copy and its folder. Shares blocks if the filesystem can.
    ///
    /// - Parameter room: The disk space for the copy. The copy fails with `ENOSPC` if it is too small.
    /// - Returns: The length and the digests of the copied bytes.
    @discardableResult
    package func copy(
        _ from: OpenFile, to: String, _ algorithms: [DigestAlgorithm] = [], within room: DiskRoom? = nil
    ) async throws(SystemError) -> (length: Int64, digests: [DigestAlgorithm: [UInt8]]) {
        let copied = try await copy(from, into: open(to, O_RDWR | O_CREAT | O_EXCL), algorithms, within: room)
        try await syncFolder(Disk.folder(of: to))
        return copied
    }

    /// Copies an open file into an open, empty one and syncs the copy. Shares blocks if the filesystem can.
    @discardableResult
    package func copy(
        _ source: OpenFile, into target: OpenFile, _ algorithms: [DigestAlgorithm] = [], within room: DiskRoom? = nil
    ) async throws(SystemError) -> (length: Int64, digests: [DigestAlgorithm: [UInt8]]) {
        let isShared = try await run { () throws(SystemError) in
            guard clinux_clone(target.descriptor, source.descriptor) == 0 else { return false }
            try target.sync()
            return true
        }
        if isShared, algorithms.isEmpty {
            return (try await run { () throws(SystemError) in try target.size() }, [:])
        }
        if isShared { return try await digest(target, algorithms) }
        let copying = try await run { () throws(SystemError) in
            try FileCopy(source, to: target, algorithms, within: room)
        }
        var next = try await run(.long, copying.read)
        while let piece = next {
            async let written = result(.short) { () throws(SystemError) in try copying.write(piece) }
            async let digested = result(.long) { copying.digest(piece) }
            next = try await run(.long, copying.read)
            try await written.get()
            try await digested.get()
            copying.letGo(piece)
        }
        return try await run(.short, copying.finish)
    }

    /// The length in bytes; `nil` if the file does not exist.
    package func size(_ path: String) async throws(SystemError) -> Int64? {
        try await run { () throws(SystemError) in
            var status = stat()
            if lstat(path, &status) == 0 { return Int64(status.st_size) }
            guard errno == ENOENT else { throw SystemError("lstat", errno: errno) }
            return nil
        }
    }

    package func open(_ path: String, _ flags: Int32 = O_RDONLY) async throws(SystemError) -> OpenFile {
        try await run { () throws(SystemError) in try OpenFile.open(path, flags) }
    }

    /// Opens a new file for reading and writing and unlinks it: its bytes are freed with its last descriptor.
    package func openUnnamed(_ path: String) async throws(SystemError) -> OpenFile {
        try await run { () throws(SystemError) in
            let file = try OpenFile.open(path, O_RDWR | O_CREAT | O_EXCL)
            guard unlink(path) == 0 else { throw SystemError("unlink", errno: errno) }
            return file
        }
    }

    /// Writes a whole file and syncs it. Without `replace`, an existing file fails with `EEXIST`.
    package func write(_ bytes: [UInt8], to path: String, replace: Bool = false) async throws(SystemError) {
        try await run { () throws(SystemError) in
            let file = try OpenFile.open(path, O_WRONLY | O_CREAT | (replace ? O_TRUNC : O_EXCL))
            try file.write(bytes, at: 0)
            try file.sync()
        }
    }

    /// Writes bytes into an open file, without syncing.
    package func write(_ bytes: [UInt8], to file: OpenFile, at offset: Int64) async throws(SystemError) {
        try await run { () throws(SystemError) in try file.write(bytes, at: offset) }
    }

    /// Bytes of an open file; fewer at its end.
    package func read(_ file: OpenFile, _ range: Range<Int64>) async throws(SystemError) -> [UInt8] {
        try await run { () throws(SystemError) in try file.bytes(range.count, at: range.lowerBound) }
    }

    /// Digests of a file, read from its start to its end.
    package func digest(
        _ file: OpenFile, _ algorithms: [DigestAlgorithm] = [.sha256]
    ) async throws(SystemError) -> (length: Int64, digests: [DigestAlgorithm: [UInt8]]) {
        let reading = RunningDigest(file, algorithms)
        while try await run(.long, reading.step) {}
        return reading.finish()
    }
}
