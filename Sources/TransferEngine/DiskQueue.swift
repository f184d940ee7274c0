package import Base
import CLinux
import Glibc

/// Files, on threads that may wait for the disk. All methods may be called from anywhere.
///
/// Paths are taken as they are, except for the `beneath` methods, which stay below a root and follow no symbolic link.
package final class DiskQueue: Sendable {
    private let queue = WorkQueue()

    package init(threads: Int) throws(EngineError) {
        for index in 0..<max(1, threads) {
            let queue = queue
            try EngineThread.start("disk-\(index)") { queue.run() }
        }
    }

    deinit { queue.close() }

    /// Finishes what is queued and takes nothing more.
    func close() { queue.close() }

    /// Runs `body` on a disk thread. False after the queue was closed.
    func post(_ body: @escaping @Sendable () -> Void) -> Bool { queue.add(body) }

    /// Runs `body` on a disk thread and waits for it without blocking.
    package func run<Value: Sendable>(
        _ body: @escaping @Sendable () throws(DiskError) -> Value
    ) async throws(DiskError) -> Value {
        let result: Result<Value, DiskError> = await withCheckedContinuation { continuation in
            let isTaken = queue.add {
                do throws(DiskError) {
                    continuation.resume(returning: .success(try body()))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
            if !isTaken { continuation.resume(returning: .failure(DiskError("queue", errno: ESHUTDOWN))) }
        }
        return try result.get()
    }
}

// MARK: - Whole files

extension DiskQueue {
    /// Makes a file durable (`fdatasync`).
    package func sync(_ path: String) async throws(DiskError) {
        try await run { () throws(DiskError) in try OpenFile.open(path, O_RDONLY).sync() }
    }

    /// Makes the names in a folder durable.
    package func syncFolder(_ path: String) async throws(DiskError) {
        try await run { () throws(DiskError) in try Disk.syncFolder(path) }
    }

    /// Renames within one filesystem and syncs the folder it is moved to, and the one it came from where that is
    /// another. Without `replace` an existing file is `EEXIST`.
    package func move(_ from: String, to: String, replace: Bool = false) async throws(DiskError) {
        try await run { () throws(DiskError) in
            guard clinux_rename(AT_FDCWD, from, AT_FDCWD, to, replace ? 1 : 0) == 0 else {
                throw DiskError("rename", errno: errno)
            }
            try Disk.syncFolder(Disk.folder(of: to))
            if Disk.folder(of: from) != Disk.folder(of: to) { try Disk.syncFolder(Disk.folder(of: from)) }
        }
    }

    /// Removes a file. One that is not there is fine.
    package func remove(_ path: String) async throws(DiskError) {
        try await run { () throws(DiskError) in
            guard unlink(path) == 0 || errno == ENOENT else { throw DiskError("unlink", errno: errno) }
        }
    }

    /// Makes a folder and those above it, where they are missing.
    package func makeFolder(_ path: String) async throws(DiskError) {
        try await run { () throws(DiskError) in try Disk.makeFolder(path) }
    }

    /// The names in a folder, without `.` and `..`.
    package func list(_ path: String) async throws(DiskError) -> [String] {
        try await run { () throws(DiskError) in try Disk.list(path) }
    }

    /// Copies a file to a new one and syncs it: sharing blocks where the filesystem can, in the kernel where not.
    package func copy(_ from: String, to: String) async throws(DiskError) {
        try await run { () throws(DiskError) in try Disk.copy(OpenFile.open(from, O_RDONLY), to: to) }
    }

    /// As ``copy(_:to:)-(String,_)``, from an open file.
    package func copy(_ from: OpenFile, to: String) async throws(DiskError) {
        try await run { () throws(DiskError) in try Disk.copy(from, to: to) }
    }

    /// Length in bytes, nil where there is no such file.
    package func size(_ path: String) async throws(DiskError) -> Int64? {
        try await run { () throws(DiskError) in
            var status = stat()
            if lstat(path, &status) == 0 { return Int64(status.st_size) }
            guard errno == ENOENT else { throw DiskError("lstat", errno: errno) }
            return nil
        }
    }

    /// When a file was made, written to or renamed last, in milliseconds since 1970 (`st_ctim`); nil where there is none.
    package func changedAt(_ path: String) async throws(DiskError) -> Int64? {
        try await run { () throws(DiskError) in
            var status = stat()
            if lstat(path, &status) == 0 {
                return Int64(status.st_ctim.tv_sec) * 1000 + Int64(status.st_ctim.tv_nsec) / 1_000_000
            }
            guard errno == ENOENT else { throw DiskError("lstat", errno: errno) }
            return nil
        }
    }

    package func open(_ path: String, _ flags: Int32 = O_RDONLY) async throws(DiskError) -> OpenFile {
        try await run { () throws(DiskError) in try OpenFile.open(path, flags) }
    }

    /// At most `count` bytes from `offset` on; fewer at the end of the file.
    package func read(_ path: String, offset: Int64 = 0, count: Int) async throws(DiskError) -> [UInt8] {
        try await run { () throws(DiskError) in try Disk.read(OpenFile.open(path, O_RDONLY), offset, count) }
    }

    package func read(_ file: OpenFile, offset: Int64, count: Int) async throws(DiskError) -> [UInt8] {
        try await run { () throws(DiskError) in try Disk.read(file, offset, count) }
    }

    /// Writes a whole new file and syncs it. An existing one is `EEXIST`.
    package func write(_ bytes: [UInt8], to path: String) async throws(DiskError) {
        try await run { () throws(DiskError) in
            let file = try OpenFile.open(path, O_WRONLY | O_CREAT | O_EXCL)
            let result = bytes.withUnsafeBytes { buffer in
                Result { () throws(DiskError) in try file.write(buffer, at: 0) }
            }
            try result.get()
            try file.sync()
        }
    }

    /// Writes bytes into an open file, without syncing.
    package func write(_ bytes: [UInt8], to file: OpenFile, at offset: Int64) async throws(DiskError) {
        try await run { () throws(DiskError) in
            let result = bytes.withUnsafeBytes { buffer in
                Result { () throws(DiskError) in try file.write(buffer, at: offset) }
            }
            try result.get()
        }
    }

    /// Digests of a file, read from its start to its end.
    package func digest(
        _ path: String, _ algorithms: [Digest.Algorithm] = [.sha256]
    ) async throws(DiskError) -> (length: Int64, digests: [Digest.Algorithm: [UInt8]]) {
        try await run { () throws(DiskError) in
            let digests = algorithms.map { Digest($0) }
            let length = try OpenFile.open(path, O_RDONLY).digest(into: digests)
            return (length, Dictionary(digests.map { ($0.algorithm, $0.finish()) }) { first, _ in first })
        }
    }

    /// Bytes that an ordinary user could still write on the filesystem of `path`.
    package func freeSpace(_ path: String) async throws(DiskError) -> Int64 {
        try await run { () throws(DiskError) in
            var status = statvfs()
            guard statvfs(path, &status) == 0 else { throw DiskError("statvfs", errno: errno) }
            return Int64(clamping: UInt64(status.f_bavail) * UInt64(status.f_frsize))
        }
    }
}

// MARK: - Beneath a root

extension DiskQueue {
    /// Opens a regular file below `root` for reading. `..`, absolute paths and symbolic links are refused by the
    /// kernel (`EXDEV`, `ELOOP`), anything but a regular file by us (`EINVAL`).
    package func openBeneath(root: String, path: String) async throws(DiskError) -> OpenFile {
        try await run { () throws(DiskError) in
            let file = try Disk.openBeneath(root: root, path: path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
            guard try file.status().st_mode & S_IFMT == S_IFREG else { throw DiskError("openat2", errno: EINVAL) }
            return file
        }
    }

    /// Moves the file `source` below `root`, atomically; folders that are missing on the way are made. Where the root is
    /// on another filesystem the bytes are copied next to the destination first. Without `replace` an existing file is
    /// `EEXIST`.
    package func moveBeneath(source: String, root: String, path: String, replace: Bool) async throws(DiskError) {
        try await run { () throws(DiskError) in
            try Disk.moveBeneath(source: source, root: root, path: path, replace: replace)
        }
    }
}

/// The calls themselves, which block.
private enum Disk {
    static func folder(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    static func syncFolder(_ path: String) throws(DiskError) {
        try syncFolder(OpenFile.open(path, O_RDONLY | O_DIRECTORY))
    }

    static func syncFolder(_ folder: OpenFile) throws(DiskError) {
        guard fsync(folder.descriptor) == 0 else { throw DiskError("fsync", errno: errno) }
    }

    static func makeFolder(_ path: String) throws(DiskError) {
        if mkdir(path, 0o700) == 0 { return try syncFolder(folder(of: path)) }
        switch errno {
        case EEXIST: return
        case ENOENT where folder(of: path) != path:
            try makeFolder(folder(of: path))
            guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw DiskError("mkdir", errno: errno) }
            try syncFolder(folder(of: path))
        default: throw DiskError("mkdir", errno: errno)
        }
    }

    static func list(_ path: String) throws(DiskError) -> [String] {
        guard let folder = opendir(path) else { throw DiskError("opendir", errno: errno) }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }

    static func read(_ file: OpenFile, _ offset: Int64, _ count: Int) throws(DiskError) -> [UInt8] {
        let available = max(0, min(Int64(count), try file.size() - offset))
        var failure: DiskError?
        let bytes = [UInt8](unsafeUninitializedCapacity: Int(available)) { buffer, filled in
            do throws(DiskError) {
                while filled < buffer.count {
                    let rest = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...])
                    let count = try file.read(into: rest, at: offset + Int64(filled))
                    guard count > 0 else { return }
                    filled += count
                }
            } catch { failure = error }
        }
        if let failure { throw failure }
        return bytes
    }

    static func copy(_ source: OpenFile, to path: String) throws(DiskError) {
        let target = try OpenFile.open(path, O_WRONLY | O_CREAT | O_EXCL)
        try copy(source, to: target)
    }

    static func copy(_ source: OpenFile, to target: OpenFile) throws(DiskError) {
        if clinux_clone(target.descriptor, source.descriptor) != 0 {
            guard lseek(source.descriptor, 0, SEEK_SET) == 0 else { throw DiskError("lseek", errno: errno) }
            while true {
                let count = clinux_copy_range(source.descriptor, target.descriptor, 1 << 30)
                if count == 0 { break }
                if count > 0 { continue }
                switch errno {
                case EINTR: continue
                case EXDEV, EINVAL, ENOSYS, EOPNOTSUPP: return try copyByHand(source, to: target)
                default: throw DiskError("copy_file_range", errno: errno)
                }
            }
        }
        try target.sync()
    }

    private static func copyByHand(_ source: OpenFile, to target: OpenFile) throws(DiskError) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 * 1024, alignment: 16)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while true {
            let count = try source.read(into: buffer, at: offset)
            guard count > 0 else { break }
            try target.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: offset)
            offset += Int64(count)
        }
        try target.truncate(to: offset)
        try target.sync()
    }

    static func openBeneath(root: String, path: String, _ flags: Int32) throws(DiskError) -> OpenFile {
        let root = try OpenFile.open(root, clinux_O_PATH | O_DIRECTORY)
        let descriptor = clinux_open_beneath(root.descriptor, path, flags | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw DiskError("openat2", errno: errno) }
        return OpenFile(descriptor: descriptor)
    }

    static func moveBeneath(source: String, root: String, path: String, replace: Bool) throws(DiskError) {
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        let folderPath = slash.map { String(path[..<$0]) } ?? "."
        let name = slash.map { String(path[path.utf8.index(after: $0)...]) } ?? path
        guard !name.isEmpty, name != ".", name != "..", !path.utf8.contains(0), slash != path.startIndex else {
            throw DiskError("rename", errno: EINVAL)
        }
        let folder = try folderBeneath(root: root, path: folderPath)
        let flag: Int32 = replace ? 1 : 0
        if clinux_rename(AT_FDCWD, source, folder.descriptor, name, flag) == 0 {
            try syncFolder(folder)
            return try syncFolder(Disk.folder(of: source))
        }
        guard errno == EXDEV else { throw DiskError("renameat2", errno: errno) }
        try copyBeneath(source: source, folder: folder, name: name, flag)
    }

    /// Opens a folder below `root`, and makes what is missing of its path, one name at a time: the kernel judges each.
    private static func folderBeneath(root: String, path: String) throws(DiskError) -> OpenFile {
        let flags = O_RDONLY | O_DIRECTORY
        do throws(DiskError) {
            return try openBeneath(root: root, path: path, flags)
        } catch {
            guard error.errno == ENOENT else { throw error }
        }
        var folder = try OpenFile.open(root, flags)
        for name in path.split(separator: "/").map(String.init) {
            if mkdirat(folder.descriptor, name, 0o777) == 0 {
                try syncFolder(folder)
            } else if errno != EEXIST {
                throw DiskError("mkdirat", errno: errno)
            }
            let descriptor = clinux_open_beneath(folder.descriptor, name, flags | O_CLOEXEC, 0)
            guard descriptor >= 0 else { throw DiskError("openat2", errno: errno) }
            folder = OpenFile(descriptor: descriptor)
        }
        return folder
    }

    /// The way over to another filesystem: a copy beside the destination, synced, then renamed.
    private static func copyBeneath(
        source: String, folder: OpenFile, name: String, _ flag: Int32
    ) throws(DiskError) {
        let temporary = ".urlsessiond-\(UInt64.random(in: .min ... .max))"
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
        let descriptor = openat(folder.descriptor, temporary, flags, 0o600)
        guard descriptor >= 0 else { throw DiskError("openat", errno: errno) }
        let target = OpenFile(descriptor: descriptor)
        do throws(DiskError) {
            try copy(OpenFile.open(source, O_RDONLY), to: target)
            guard clinux_rename(folder.descriptor, temporary, folder.descriptor, name, flag) == 0 else {
                throw DiskError("renameat2", errno: errno)
            }
        } catch {
            unlinkat(folder.descriptor, temporary, 0)
            throw error
        }
        try syncFolder(folder)
        guard unlink(source) == 0 || errno == ENOENT else { throw DiskError("unlink", errno: errno) }
    }
}
