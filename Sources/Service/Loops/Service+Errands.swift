import Base
import Files
import Store
import Transfers

/// Removal of useless files: those reported to the janitor, and those that a start finds.
extension Service {
    /// Runs each errand separately: a failure delays no other errand.
    ///
    /// - Returns: The number of writes, and the errands to try again: failed ones, and those for files of which the need
    ///   is not known yet.
    func run(_ errands: [JanitorErrand]) async -> (writes: Int, failed: [JanitorErrand]) {
        var removed: [String] = []
        var failed: [JanitorErrand] = []
        var fault: (any Error)?
        for errand in errands {
            let isJudged = if case .removeIfOrphan = errand { true } else { false }
            for file in errand.files {
                do {
                    if isJudged {
                        let need = try await store.files.need(of: file)
                        // The file is looked at again.
                        if need == .undecided { failed.append(errand) }
                        guard need == .useless else { continue }
                    }
                    // Its task may come back to this node.
                    try await folder.remove(file, durably: isJudged)
                    removed.append(file)
                } catch {
                    // A commit may refer to the file by the next time.
                    failed.append(.removeIfOrphan(file))
                    fault = error
                }
            }
        }
        var writes = 0
        do {
            writes = try await store.files.forgetDiscarded(removed)
        } catch {
            failed += removed.map { .removeIfOrphan($0) }
            fault = error
        }
        let isOfShutdown = Task.isCancelled || (fault as? SystemError)?.isOfShutdown == true
        if let fault, !isOfShutdown, Store.Obstacle(fault) != .away {
            log.warning("files could not be removed", ("files", failed.count), ("error", "\(fault)"))
        }
        return (writes, failed)
    }

    /// Removes files that a crash left between their creation and the commit that refers to them.
    ///
    /// A file of this run is staged until a commit refers to it, or belongs to a task that is not completed. Therefore
    /// the staged files are read first.
    ///
    /// - Returns: Errands for the files that could not be removed, or whose need is not known yet.
    @discardableResult
    func removeOrphans() async throws -> [JanitorErrand] {
        var failed: [JanitorErrand] = []
        for area in DataFolder.folders {
            var files: [String] = []
            do {
                files = try await folder.unstagedFiles(in: area)
            } catch {
                if error.isOfShutdown { return failed }
                log.warning("a folder cannot be listed, and keeps its orphans", ("folder", area), ("error", error))
            }
            failed += await run(files.map { .removeIfOrphan($0) }).failed
        }
        var noted = try await store.files.discarded(limit: 1000)
        while let last = noted.last {
            failed += await run([.remove(noted)]).failed
            noted = try await store.files.discarded(after: last, limit: 1000)
        }
        return failed
    }
}
