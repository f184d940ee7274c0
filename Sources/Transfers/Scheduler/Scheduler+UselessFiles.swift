import Base
import Core
import Files
import Store

/// Files of this node that other nodes found useless: partial files of tasks that ended or moved to another node.
extension Scheduler {
    /// Files that are removed in one turn of the loop.
    private static let filesAtOnce = 100

    /// Removes the files that no task here needs. In the loop, so that no transfer begins with one of them meanwhile.
    func removeUselessFiles() async {
        do {
            // A file in use keeps its row.
            let files = try await store.files.discarded(limit: Self.filesAtOnce).filter { !isInUse($0) }
            for file in files {
                if try await !store.files.isNeeded(file: file) { try await folder.remove(file) }
            }
            try await store.files.forgetDiscarded(files)
        } catch {
            if Store.Obstacle(error) != .away { log.warning("files could not be removed", ("error", "\(error)")) }
        }
    }

    private func isInUse(_ file: String) -> Bool { flights.keys.contains { folder.partial($0.rawValue) == file } }
}
