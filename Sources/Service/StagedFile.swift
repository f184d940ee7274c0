import Base
import TransferEngine

/// A file in the data folder that no commit tells of yet. Who placed it removes it by letting go of it, unless a commit
/// adopted it.
struct StagedFile: ~Copyable {
    /// Relative to the data folder.
    let path: String
    private let area: StagingArea
    private var isAdopted = false

    fileprivate init(path: String, area: StagingArea) {
        self.path = path
        self.area = area
    }

    deinit { area.end(path, removes: !isAdopted) }

    /// Leaves the file to the commit that tells of it. To be called once that is written.
    consuming func adopt() { isAdopted = true }

    /// Renames the file to a place where none is, and syncs the folder.
    consuming func moved(to path: String) async throws(DiskError) -> StagedFile {
        let target = area.stage(path)
        try await area.disk.move(area.folder.absolute(self.path), to: area.folder.absolute(path))
        return target
    }
}

/// The files that this run has placed, or is about to place, and that no commit tells of yet.
final class StagingArea: Sendable {
    fileprivate let disk: DiskQueue
    fileprivate let folder: DataFolder
    private let paths = Locked<Set<String>>([])

    init(disk: DiskQueue, folder: DataFolder) {
        self.disk = disk
        self.folder = folder
    }

    /// Announces a file, before it is made.
    func stage(_ path: String) -> StagedFile {
        paths.withLock { _ = $0.insert(path) }
        return StagedFile(path: path, area: self)
    }

    /// Whether a file belongs to something under way.
    func holds(_ path: String) -> Bool { paths.withLock { $0.contains(path) } }

    /// Forgets a file, after removing it on a disk thread where nobody wants it.
    fileprivate func end(_ path: String, removes: Bool) {
        guard removes else { return forget(path) }
        disk.remove(folder.absolute(path)) { [self] in forget(path) }
    }

    private func forget(_ path: String) { paths.withLock { _ = $0.remove(path) } }
}
