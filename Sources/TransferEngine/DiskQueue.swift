package import Base
import CLinux
import Glibc

/// Files, on threads that may wait for the disk. All methods may be called from anywhere.
///
/// Paths are taken as they are, except for the `beneath` methods, which stay below a root and follow no symbolic link.
/// Whole files are read and copied in steps, between which other work gets its turn.
package struct DiskQueue: Sendable {
    /// Ends its threads with the last queue that refers to it.
    private final class Threads: Sendable {
        let work: DiskWork

        init(_ count: Int) throws(EngineError) {
            work = DiskWork(threads: count)
            for index in 0..<count {
                let work = work
                try EngineThread.start("disk-\(index)") { work.run() }
            }
        }

        deinit { work.close() }
    }

    /// Bytes of a file that are read or copied in one step.
    static let stepLength = 4 << 20

    private let threads: Threads
    private var owner: Int64 = 0

    package init(threads: Int) throws(EngineError) { self.threads = try Threads(max(1, threads)) }

    /// The same threads for the work of one owner, the number of an app: owners take turns. 0 is the service's own.
    package func of(_ owner: Int64) -> DiskQueue {
        var queue = self
        queue.owner = owner
        return queue
    }

    /// Finishes what is queued and takes nothing more.
    func close() { threads.work.close() }

    /// Runs `body`, which ends soon, on a disk thread. False after the queue was closed.
    func post(_ body: @escaping @Sendable () -> Void) -> Bool {
        postSteps(.short) {
            body()
            return false
        }
    }

    /// Runs `step` on disk threads until it says that there is no more. False after the queue was closed.
    func postSteps(_ length: DiskWorkLength, _ step: @escaping @Sendable () -> Bool) -> Bool {
        threads.work.add(step, length, for: owner)
    }

    /// Runs `body` on a disk thread and waits for it without blocking.
    package func run<Value: Sendable>(
        _ length: DiskWorkLength = .short, _ body: @escaping @Sendable () throws(DiskError) -> Value
    ) async throws(DiskError) -> Value {
        let result: Result<Value, DiskError> = await withCheckedContinuation { continuation in
            let isTaken = postSteps(length) {
                do throws(DiskError) {
                    continuation.resume(returning: .success(try body()))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
                return false
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

    /// Removes a file, if it is there, and then runs `body`, on a disk thread. After the queue was closed the file stays.
    package func remove(_ path: String, then body: @escaping @Sendable () -> Void) {
        let isTaken = post {
            unlink(path)
            body()
        }
        if !isTaken { body() }
    }

    /// Makes a folder and those above it, where they are missing.
    package func makeFolder(_ path: String) async throws(DiskError) {
        try await run { () throws(DiskError) in try Disk.makeFolder(path) }
    }

    /// The names in a folder, without `.` and `..`.
    package func list(_ path: String) async throws(DiskError) -> [String] {
        try await run { () throws(DiskError) in try Disk.list(path) }
    }

    /// Copies a file to a new one and syncs it and its folder: sharing blocks where the filesystem can, in the kernel
    /// where not.
    ///
    /// - Parameter room: What may be written. Where it is too little the copy fails as on a full disk.
    package func copy(_ from: String, to: String, within room: DiskRoom? = nil) async throws(DiskError) {
        try await copy(open(from), to: to, within: room)
    }

    /// As ``copy(_:to:within:)-(String,_,_)``, from an open file.
    package func copy(_ from: OpenFile, to: String, within room: DiskRoom? = nil) async throws(DiskError) {
        try await copy(from, into: open(to, O_WRONLY | O_CREAT | O_EXCL), within: room)
        try await syncFolder(Disk.folder(of: to))
    }

    /// Each step is synced, so that none leaves much to the next.
    private func copy(
        _ source: OpenFile, into target: OpenFile, within room: DiskRoom? = nil
    ) async throws(DiskError) {
        let isShared = try await run { () throws(DiskError) in
            guard clinux_clone(target.descriptor, source.descriptor) == 0 else { return false }
            try target.sync()
            return true
        }
        var offset: Int64 = 0
        var isAtEnd = isShared
        while !isAtEnd {
            let start = offset
            let count = try await run(.long) { () throws(DiskError) in
                if let room, !room.take(Int(max(0, min(Int64(Self.stepLength), try source.size() - start)))) {
                    throw DiskError("copy", errno: ENOSPC)
                }
                let count = try Disk.copyStep(source, to: target, at: start)
                try target.sync()
                return count
            }
            offset += Int64(count)
            isAtEnd = count == 0
        }
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

    package func open(_ path: String, _ flags: Int32 = O_RDONLY) async throws(DiskError) -> OpenFile {
        try await run { () throws(DiskError) in try OpenFile.open(path, flags) }
    }

    /// Opens a new file for reading and writing and takes its name away: its bytes go with its last descriptor.
    package func openUnnamed(_ path: String) async throws(DiskError) -> OpenFile {
        try await run { () throws(DiskError) in
            let file = try OpenFile.open(path, O_RDWR | O_CREAT | O_EXCL)
            guard unlink(path) == 0 else { throw DiskError("unlink", errno: errno) }
            return file
        }
    }

    /// At most `count` bytes from `offset` on; fewer at the end of the file.
    package func read(_ path: String, offset: Int64 = 0, count: Int) async throws(DiskError) -> [UInt8] {
        try await run { () throws(DiskError) in try Disk.read(OpenFile.open(path, O_RDONLY), offset, count) }
    }

    package func read(_ file: OpenFile, offset: Int64, count: Int) async throws(DiskError) -> [UInt8] {
        try await run { () throws(DiskError) in try Disk.read(file, offset, count) }
    }

    /// Writes a whole file and syncs it. Without `replace` an existing one is `EEXIST`.
    package func write(_ bytes: [UInt8], to path: String, replace: Bool = false) async throws(DiskError) {
        try await run { () throws(DiskError) in
            let file = try OpenFile.open(path, O_WRONLY | O_CREAT | (replace ? O_TRUNC : O_EXCL))
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
        try await digest(open(path), algorithms)
    }

    /// As ``digest(_:_:)-(String,_)``, of an open file.
    package func digest(
        _ file: OpenFile, _ algorithms: [Digest.Algorithm] = [.sha256]
    ) async throws(DiskError) -> (length: Int64, digests: [Digest.Algorithm: [UInt8]]) {
        let reading = RunningDigest(file, algorithms)
        while try await run(.long, reading.step) {}
        return reading.finish()
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

    /// Moves the file `source` below `root`, atomically; folders that are missing on the way are made. Without `replace`
    /// an existing file is `EEXIST`.
    ///
    /// - Returns: False where the root is on another filesystem, so that a copy is needed.
    package func moveBeneath(
        source: String, root: String, path: String, replace: Bool
    ) async throws(DiskError) -> Bool {
        try await run { () throws(DiskError) in
            try Disk.moveBeneath(source: source, root: root, path: path, replace: replace)
        }
    }

    /// Copies the file `source` to a new one below `root` and syncs it.
    ///
    /// - Returns: The inode of the copy.
    package func copyBeneath(source: String, root: String, path: String) async throws(DiskError) -> UInt64 {
        let target = try await run { () throws(DiskError) in
            let (folder, name) = try Disk.placeBeneath(root: root, path: path)
            let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
            let descriptor = openat(folder.descriptor, name, flags, 0o600)
            guard descriptor >= 0 else { throw DiskError("openat", errno: errno) }
            return OpenFile(descriptor: descriptor)
        }
        try await copy(open(source), into: target)
        return try await run { () throws(DiskError) in try target.inode() }
    }

    /// Gives a file below `root` another name there, atomically. Without `replace` an existing file is `EEXIST`.
    package func renameBeneath(
        root: String, from: String, to: String, replace: Bool
    ) async throws(DiskError) {
        try await run { () throws(DiskError) in
            let (source, oldName) = try Disk.placeBeneath(root: root, path: from)
            let (target, newName) = try Disk.placeBeneath(root: root, path: to)
            guard clinux_rename(source.descriptor, oldName, target.descriptor, newName, replace ? 1 : 0) == 0 else {
                throw DiskError("renameat2", errno: errno)
            }
            try Disk.syncFolder(target)
        }
    }

    /// Removes a file below `root`. One that is not there is fine.
    package func removeBeneath(root: String, path: String) async throws(DiskError) {
        try await run { () throws(DiskError) in
            let (folder, name) = try Disk.split(path)
            do throws(DiskError) {
                let folder = try Disk.openBeneath(root: root, path: folder, O_RDONLY | O_DIRECTORY)
                guard unlinkat(folder.descriptor, name, 0) == 0 else { throw DiskError("unlinkat", errno: errno) }
            } catch {
                guard error.errno == ENOENT else { throw error }
            }
        }
    }
}
