import Foundation
import Synchronization

extension BackgroundSessionTask {
    /// The progress of a task at one time.
    public struct ProgressUpdate: Sendable, Hashable {
        /// The received bytes of content, or the sent bytes of an upload.
        public let completedUnitCount: Int64
        /// The total number of bytes; `nil` while it is unknown.
        public let totalUnitCount: Int64?

        /// The fraction of the bytes, from 0 to 1; `nil` while the total is unknown.
        public var fractionCompleted: Double? {
            guard let totalUnitCount else { return nil }
            return totalUnitCount > 0 ? min(1, Double(completedUnitCount) / Double(totalUnitCount)) : 1
        }
    }

    /// The progress of the task: the current state, then each change, until the task is completed.
    ///
    ///     for await update in task.progressUpdates { show(update.fractionCompleted) }
    ///
    /// A reader that is slower than the task gets only the newest update. The sequence of a completed task has one
    /// element. It also ends with the session.
    public var progressUpdates: AsyncStream<ProgressUpdate> {
        let (updates, watcher) = AsyncStream.makeStream(of: ProgressUpdate.self, bufferingPolicy: .bufferingNewest(1))
        let key = UUID()
        watcher.onTermination = { [weak self] _ in self?.facts.withLock { _ = $0.watchers.removeValue(forKey: key) } }
        let isOver = facts.withLock { facts in
            watcher.yield(update(facts))
            guard facts.state != .completed, !facts.isProgressOver else { return true }
            facts.watchers[key] = watcher
            return false
        }
        if isOver { watcher.finish() }
        return updates
    }

    func update(_ facts: Facts) -> ProgressUpdate {
        self is BackgroundSessionDataTask
            ? ProgressUpdate(completedUnitCount: facts.sent, totalUnitCount: facts.expectedToSend)
            : ProgressUpdate(completedUnitCount: facts.received, totalUnitCount: facts.expectedToReceive)
    }

    /// Ends the sequences of all readers. They are finished outside the lock, which their termination acquires.
    func endProgressUpdates() {
        let watchers = facts.withLock { facts in
            facts.isProgressOver = true
            defer { facts.watchers.removeAll() }
            return Array(facts.watchers.values)
        }
        for watcher in watchers { watcher.finish() }
    }
}
