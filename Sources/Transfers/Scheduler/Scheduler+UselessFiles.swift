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
            var settled: [String] = []
            for file in try await store.files.discarded(limit: Self.filesAtOnce) where !isInUse(file) {
                let need = try await store.files.need(of: file)
                // The row stays, so that the file is looked at again.
                if need == .undecided { continue }
                if need == .useless { try await folder.remove(file, durably: true) }
                settled.append(file)
            }
            try await store.files.forgetDiscarded(settled)
        } catch {
            if Store.Obstacle(error) != .away { log.warning("files could not be removed", ("error", "\(error)")) }
        }
    }

    private func isInUse(_ file: String) -> Bool { flights.keys.contains { folder.partial($0.rawValue) == file } }
}
