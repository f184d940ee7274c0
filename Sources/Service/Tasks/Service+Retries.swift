package import Core
import Store
import Transfers

/// What a session-wide retry did.
package struct RetrySummary: Sendable {
    /// Completed tasks that were meant.
    package var matched = 0
    /// Those that have a new task now.
    package var changed = 0
    /// The first of those that cannot have one, and why.
    package var refused: [(number: Int64, error: any Error)] = []

    /// Of ``refused`` so many are kept.
    private static let maximumRefused = 1000

    mutating func refuse(_ number: Int64, _ error: any Error) {
        if refused.count < Self.maximumRefused { refused.append((number, error)) }
    }
}

extension Service {
    /// Tasks retried in one commit, so that others get their turn between.
    private static let retryGroup = 200

    /// Makes new tasks of all matching completed ones that have none yet: of each that can have one.
    ///
    /// - Parameter revision: What the session's must be when the first of them are made, or nil.
    package func retryAll(
        _ filter: TaskFilter, in session: SessionRecord, ifRevision revision: Int64?
    ) async throws -> RetrySummary {
        try requireRoom()
        var summary = RetrySummary()
        guard filter.states.isEmpty || filter.states.contains(.completed) else { return summary }
        var filter = filter
        filter.states = [.completed]
        var (after, revision) = (Int64(0), revision)
        while true {
            let group = try await store.retriable(filter, in: session.id, after: after, limit: Self.retryGroup)
            // What this call makes does not concern it.
            summary.matched += group.matched.count { $0 <= session.lastTaskNumber }
            let tasks = group.tasks.filter { $0.number <= session.lastTaskNumber }
            if try await retry(tasks, in: session, ifRevision: revision, &summary) { revision = nil }
            guard let last = group.last, last < session.lastTaskNumber else { return summary }
            after = last
        }
    }

    /// - Returns: Whether there was anything to commit.
    private func retry(
        _ tasks: [TaskRecord], in session: SessionRecord, ifRevision revision: Int64?, _ summary: inout RetrySummary
    ) async throws -> Bool {
        var new: [PreparedTask] = []
        for task in tasks {
            do {
                new.append(try await prepare(TaskOrder(retrying: task), index: new.count, in: session))
            } catch let error as ServiceError {
                summary.refuse(task.number, error)
            }
        }
        guard !new.isEmpty else { return false }
        let app = try await store.app(session.app)
        let (results, aftermath) = try await store.retry(
            new.map(\.task), in: session.id, limit: app.limits.maximumUnfinishedTasks,
            storedLimit: app.limits.maximumStoredBytes, ifRevision: revision, at: clock.now)
        outlet.handle(aftermath)
        var created: [CreatedTask] = []
        for (task, result) in zip(new, results) {
            switch result {
            case .created(let item): created.append(item)
            case .skipped: break
            case .refused(let error): summary.refuse(task.task.specification.retryOf ?? 0, error)
            }
        }
        summary.changed += created.count
        tell(of: created, in: session, of: app)
        return true
    }
}

extension TaskOrder {
    /// A new task of a completed one.
    init(retrying task: TaskRecord) {
        var specification = task.specification
        specification.retryOf = task.number
        specification.clientTaskId = nil
        specification.earliestBeginDate = nil
        let body = specification.body.map(TaskOrder.Body.stored)
        specification.body = nil
        self.init(specification: specification, isSuspended: false, body: body)
        retried = task
    }
}
