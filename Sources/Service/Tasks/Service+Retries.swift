package import Core
import Store
import Transfers

/// The result of a session-wide retry.
package struct RetrySummary: Sendable {
    /// The number of matching completed tasks.
    package var matched = 0
    /// The number of tasks that have a new task now.
    package var changed = 0
    /// The first of the tasks that cannot have a new task, each with the reason.
    package var refused: [(number: Int64, error: any Error)] = []

    /// The maximum length of ``refused``.
    private static let maximumRefused = 1000

    mutating func refuse(_ number: Int64, _ error: any Error) {
        if refused.count < Self.maximumRefused { refused.append((number, error)) }
    }
}

extension Service {
    /// Tasks retried in one commit, so that other writes run in between.
    private static let retryGroup = 200

    /// Creates new tasks of all matching completed tasks that have none yet and can have one.
    ///
    /// - Parameters:
    ///   - traceparent: The trace context of the request, if it has one.
    ///   - revision: The required revision of the session when the first tasks are created, or nil.
    package func retryAll(
        _ filter: TaskFilter, in session: SessionRecord, traceparent: String? = nil, ifRevision revision: Int64?
    ) async throws -> RetrySummary {
        try requireRoom()
        var summary = RetrySummary()
        guard filter.states.isEmpty || filter.states.contains(.completed) else { return summary }
        var filter = filter
        filter.states = [.completed]
        var (after, revision) = (Int64(0), revision)
        while true {
            let group = try await store.tasks.retriable(filter, in: session.id, after: after, limit: Self.retryGroup)
            // Tasks that this call creates are not counted.
            summary.matched += group.matched.count { $0 <= session.lastTaskNumber }
            let tasks = group.tasks.filter { $0.number <= session.lastTaskNumber }
            if try await retry(tasks, in: session, traceparent: traceparent, ifRevision: revision, &summary) {
                revision = nil
            }
            guard let last = group.last, last < session.lastTaskNumber else { return summary }
            after = last
        }
    }

    /// - Returns: Whether there was anything to commit.
    private func retry(
        _ tasks: [TaskRecord], in session: SessionRecord, traceparent: String?, ifRevision revision: Int64?,
        _ summary: inout RetrySummary
    ) async throws -> Bool {
        var new: [NewTask] = []
        for task in tasks {
            do {
                new.append(try await newTask(of: TaskOrder(retrying: task, traceparent), index: new.count, in: session))
            } catch let error as ServiceError {
                summary.refuse(task.number, error)
            }
        }
        guard !new.isEmpty else { return false }
        let app = try await store.apps.read(session.app)
        let (results, aftermath) = try await store.tasks.retry(
            new, in: session.id, limit: app.limits.maximumUnfinishedTasks,
            storedLimit: app.limits.maximumStoredBytes, ifRevision: revision, at: clock.now)
        outlet.handle(aftermath)
        var created: [CreatedTask] = []
        for (task, result) in zip(new, results) {
            switch result {
            case .created(let item): created.append(item)
            case .skipped: break
            case .refused(let error): summary.refuse(task.specification.retryOf ?? 0, error)
            }
        }
        summary.changed += created.count
        tell(of: created, in: session, of: app)
        return true
    }
}

extension TaskOrder {
    /// An order for a new task of a completed one.
    ///
    /// - Parameter traceparent: The trace context of the request, in place of the completed task's.
    init(retrying task: TaskRecord, _ traceparent: String?) {
        var specification = task.specification
        specification.retryOf = task.number
        specification.clientTaskId = nil
        specification.earliestBeginDate = nil
        specification.traceparent = traceparent ?? specification.traceparent
        let body = specification.body.map(TaskOrder.Body.stored)
        specification.body = nil
        self.init(specification: specification, isSuspended: false, body: body)
        retried = task
    }
}
