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
            var removed: [String] = []
            // A file that is still needed keeps its row: until the task's progress is stored at the node that has
            // claimed it, the store does not know that the task has left this node.
            for file in try await store.files.discarded(limit: Self.filesAtOnce) where !isInUse(file) {
                if try await store.files.isNeeded(file: file) { continue }
                try await folder.remove(file)
                removed.append(file)
            }
            try await store.files.forgetDiscarded(removed)
        } catch {
            if Store.Obstacle(error) != .away { log.warning("files could not be removed", ("error", "\(error)")) }
        }
    }

    private func isInUse(_ file: String) -> Bool { flights.keys.contains { folder.partial($0.rawValue) == file } }
}
