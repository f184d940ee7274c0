package import Core
import Store

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
    package func retryAll(_ filter: TaskFilter, in session: SessionRecord) async throws -> RetrySummary {
        try requireRoom()
        var summary = RetrySummary()
        guard filter.states.isEmpty || filter.states.contains(.completed) else { return summary }
        var filter = filter
        filter.states = [.completed]
        var after: Int64 = 0
        while true {
            let group = try await store.retriable(filter, in: session.id, after: after, limit: Self.retryGroup)
            // What this call makes does not concern it.
            summary.matched += group.matched.count { $0 <= session.lastTaskNumber }
            try await retry(group.tasks.filter { $0.number <= session.lastTaskNumber }, in: session, &summary)
            guard let last = group.last, last < session.lastTaskNumber else { return summary }
            after = last
        }
    }

    private func retry(_ tasks: [TaskRecord], in session: SessionRecord, _ summary: inout RetrySummary) async throws {
        var new: [PreparedTask] = []
        for task in tasks {
            do {
                new.append(try await prepare(TaskOrder(retrying: task), index: new.count, in: session))
            } catch let error as ServiceError {
                summary.refuse(task.number, error)
            }
        }
        guard !new.isEmpty else { return }
        let app = try await store.app(session.app)
        let (results, aftermath) = try await store.retry(
            new.map(\.task), in: session.id, limit: app.limits.maximumUnfinishedTasks,
            storedLimit: app.limits.maximumStoredBytes, at: clock.now)
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
