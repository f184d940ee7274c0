import Base
import Files
import Store
import Transfers

/// Removal of useless files: those that the janitor is told of, and those that a start finds.
extension Service {
    /// Does errands, each on its own: what fails holds up no other.
    ///
    /// - Returns: How many writes that took, and what is to be tried again.
    func run(_ errands: [JanitorErrand]) async -> (writes: Int, failed: [JanitorErrand]) {
        var removed: [String] = []
        var failed: [JanitorErrand] = []
        var fault: (any Error)?
        for errand in errands {
            for file in errand.files {
                do {
                    if case .removeIfOrphan = errand, try await store.isNeeded(file: file) { continue }
                    try await folder.remove(file)
                    removed.append(file)
                } catch {
                    // It may belong to something by the next time.
                    failed.append(.removeIfOrphan(file))
                    fault = error
                }
            }
        }
        var writes = 0
        do {
            writes = try await store.forgetDiscardedFiles(removed)
        } catch {
            failed += removed.map { .removeIfOrphan($0) }
            fault = error
        }
        if let fault, !Task.isCancelled, Store.Obstacle(fault) != .away {
            log.warning("files could not be removed", ("files", failed.count), ("error", "\(fault)"))
        }
        return (writes, failed)
    }

    /// Removes files that a crash left between their making and the commit that tells of them.
    ///
    /// What this run places is staged until a commit tells of it, or belongs to a task that is not completed. So it is
    /// looked first whether it is staged.
    ///
    /// - Returns: What could not be removed.
    @discardableResult
    func removeOrphans() async throws -> [JanitorErrand] {
        var failed: [JanitorErrand] = []
        for area in DataFolder.folders {
            for file in (try? await folder.unstagedFiles(in: area)) ?? [] where try await !store.isNeeded(file: file) {
                do { try await folder.remove(file) } catch { failed.append(.removeIfOrphan(file)) }
            }
        }
        var noted = try await store.discardedFiles(limit: 1000)
        while let last = noted.last {
            failed += await run([.remove(noted)]).failed
            noted = try await store.discardedFiles(after: last, limit: 1000)
        }
        return failed
    }
}
