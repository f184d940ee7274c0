package import Base
package import Formats
import Glibc

/// A file in the data folder that no commit tells of yet. Who placed it removes it by letting go of it, unless a commit
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

    /// Leaves the file to the commit that tells of it. To be called once that is written.
    package consuming func adopt() { isAdopted = true }

    /// Makes the file, empty.
    package func create() async throws(SystemError) -> OpenFile {
        try await folder.open(path, O_WRONLY | O_CREAT | O_TRUNC)
    }

    /// Makes the file of bytes and syncs it.
    package func write(_ bytes: [UInt8]) async throws(SystemError) {
        try await folder.disk.write(bytes, to: folder.absolute(path))
    }

    /// Makes the file of another's bytes, and syncs it and its folder.
    ///
    /// - Parameter room: What may be written. Where it is too little the copy fails as on a full disk.
    /// - Returns: What was copied: its length, and its digests.
    @discardableResult
    package func copy(
        _ source: OpenFile, _ algorithms: [DigestAlgorithm] = [], within room: DiskRoom
    ) async throws(SystemError) -> (length: Int64, digests: [DigestAlgorithm: [UInt8]]) {
        try await folder.disk.copy(source, to: folder.absolute(path), algorithms, within: room)
    }

    /// Makes the bytes durable.
    package func sync() async throws(SystemError) { try await folder.disk.sync(folder.absolute(path)) }

    /// Makes its name durable.
    package func syncFolder() async throws(SystemError) {
        try await folder.disk.syncFolder(Disk.folder(of: folder.absolute(path)))
    }

    /// Renames the file to a place where none is, and syncs the folder.
    package consuming func moved(to place: String) async throws(SystemError) -> StagedFile {
        let target = folder.stage(place)
        try await folder.disk.move(folder.absolute(path), to: folder.absolute(place))
        return target
    }
}
