package import Base
package import Formats
import Glibc

/// A file in the data folder that no commit refers to yet. Destroying the value removes the file, unless a commit has
/// adopted it.
package struct StagedFile: ~Copyable {
    /// Relative to the data folder.
    package let path: String
    private let folder: DataFolder
    private var isAdopted = false

    init(path: String, folder: DataFolder) {
        self.path = path
        self.folder = folder
    }

    deinit { folder.end(path, removes: !isAdopted) }

    /// Transfers the ownership to the commit that refers to the file. Called after the commit.
    package consuming func adopt() { isAdopted = true }

    /// Creates the file, empty.
    package func create() async throws(SystemError) -> OpenFile {
        try await folder.open(path, O_WRONLY | O_CREAT | O_TRUNC)
    }

    /// Creates the file with these bytes and syncs it.
    package func write(_ bytes: [UInt8]) async throws(SystemError) {
        try await folder.disk.write(bytes, to: folder.absolute(path))
    }

    /// Creates the file as a copy, and syncs it and its folder.
    ///
    /// - Parameter room: The disk space for the copy. The copy fails with `ENOSPC` if it is too small.
    /// - Returns: The length and the digests of the copied bytes.
    @discardableResult
    package func copy(
        _ source: OpenFile, _ algorithms: [DigestAlgorithm] = [], within room: DiskRoom
    ) async throws(SystemError) -> (length: Int64, digests: [DigestAlgorithm: [UInt8]]) {
        try await folder.disk.copy(source, to: folder.absolute(path), algorithms, within: room)
    }

    /// Makes the bytes durable.
    package func sync() async throws(SystemError) { try await folder.disk.sync(folder.absolute(path)) }

    /// Makes the file's name durable.
    package func syncFolder() async throws(SystemError) {
        try await folder.disk.syncFolder(Disk.folder(of: folder.absolute(path)))
    }

    /// Renames the file to an unused path, and syncs the folder.
    package consuming func moved(to place: String) async throws(SystemError) -> StagedFile {
        let target = folder.stage(place)
        try await folder.disk.move(folder.absolute(path), to: folder.absolute(place))
        return target
    }
}
