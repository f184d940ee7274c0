package import Base
import CLinux
import Glibc

/// Files below a root that other programs may write to as well.
extension DiskQueue {
    /// Opens a regular file below `root` for reading. The kernel rejects `..`, absolute paths and symbolic links
    /// (`EXDEV`, `ELOOP`); other kinds of files fail with `EINVAL`.
    package func openBeneath(root: String, path: String) async throws(SystemError) -> OpenFile {
        try await run { () throws(SystemError) in try Disk.openRegularBeneath(root: root, path: path) }
    }

    /// The bytes of regular files below roots; `nil` for files longer than `limit`. Rejects the same paths as
    /// ``openBeneath(root:path:)``.
    package func readBeneath(
        _ places: [(root: String, path: String)], upTo limit: Int
    ) async throws(SystemError) -> [Result<[UInt8]?, SystemError>] {
        try await run { () throws(SystemError) in
            // The file may have grown since its size was read.
            let memory = AlignedMemory(byteCount: limit + 1)
            return places.map { place in
                Result { () throws(SystemError) in
                    let file = try Disk.openRegularBeneath(root: place.root, path: place.path)
                    guard try file.size() <= Int64(limit) else { return nil }
                    let count = try file.fill(memory.bytes, at: 0)
                    return count > limit ? nil : [UInt8](memory.bytes[..<count])
                }
            }
        }
    }

    /// Moves the file `source` below `root`, atomically, and creates missing folders. Without `replace`, an existing
    /// file fails with `EEXIST`. The new name is durable after ``syncBeneath(root:path:)``.
    ///
    /// - Returns: False if the root is on another filesystem, so that a copy is needed.
    package func moveBeneath(
        source: String, root: String, path: String, replace: Bool
    ) async throws(SystemError) -> Bool {
        try await run { () throws(SystemError) in
            let (folder, name) = try Disk.placeBeneath(root: root, path: path)
            guard clinux_rename(AT_FDCWD, source, folder.descriptor, name, replace ? 1 : 0) == 0 else {
                if errno == EXDEV { return false }
                throw SystemError("renameat2", errno: errno)
            }
            return true
        }
    }

    /// Copies the file `source` to a new one below `root` and syncs it.
    ///
    /// - Returns: The inode of the copy.
    package func copyBeneath(source: String, root: String, path: String) async throws(SystemError) -> UInt64 {
        let target = try await run { () throws(SystemError) in
            let (folder, name) = try Disk.placeBeneath(root: root, path: path)
            return try OpenFolder(file: folder).create(name)
        }
        try await copy(open(source), into: target)
        return try await run { () throws(SystemError) in try target.inode() }
    }

    /// Renames a file below `root`, atomically. Without `replace`, an existing file fails with `EEXIST`. The new name is
    /// durable after ``syncBeneath(root:path:)``.
    package func renameBeneath(
        root: String, from: String, to: String, replace: Bool
    ) async throws(SystemError) {
        try await run { () throws(SystemError) in
            let (source, oldName) = try Disk.placeBeneath(root: root, path: from)
            let (target, newName) = try Disk.placeBeneath(root: root, path: to)
            guard clinux_rename(source.descriptor, oldName, target.descriptor, newName, replace ? 1 : 0) == 0 else {
                throw SystemError("renameat2", errno: errno)
            }
        }
    }

    /// Makes the name of a file below `root` durable.
    package func syncBeneath(root: String, path: String) async throws(SystemError) {
        try await run { () throws(SystemError) in
            let folder = try Disk.split(path).folder
            try Disk.syncFolder(Disk.openBeneath(root: root, path: folder, O_RDONLY | O_DIRECTORY))
        }
    }

    /// Removes a file below `root`, if it exists.
    package func removeBeneath(root: String, path: String) async throws(SystemError) {
        try await run { () throws(SystemError) in
            let (folder, name) = try Disk.split(path)
            do throws(SystemError) {
                let folder = try Disk.openBeneath(root: root, path: folder, O_RDONLY | O_DIRECTORY)
                guard unlinkat(folder.descriptor, name, 0) == 0 else { throw SystemError("unlinkat", errno: errno) }
            } catch {
                guard error.errno == ENOENT else { throw error }
            }
        }
    }
}
