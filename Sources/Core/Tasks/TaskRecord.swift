import Formats

/// The state of a task, like `URLSessionTask.State`.
package enum TaskState: String, Sendable, CaseIterable {
    case suspended, running, canceling, completed
}

/// The outcome of a completed task.
package enum Outcome: String, Word, CaseIterable {
    case succeeded, httpError, failed, cancelled, notModified
}

package struct TaskRecord: Sendable {
    package var id: TaskID
    package var session: SessionID
    package var sessionIdentifier: String
    package var app: AppID
    /// `taskIdentifier`, unique in its session, from 1.
    package var number: Int64
    package var life: TaskLife
    package var specification: TaskSpecification
    /// `nil` before the first attempt, and for a completed task.
    package var progress: TaskProgress?
    package var content: ContentRecord?
    /// The number of consecutive crashes of the service during the task's transfer.
    package var crashes = 0
    /// The task whose transfer a following task waits for.
    package var leader: WaitingReason.Leader?
    package var createdAt: Timestamp
    package var startedAt: Timestamp?
    package var revision: Int64

    package init(
        id: TaskID, session: SessionID, sessionIdentifier: String, app: AppID, number: Int64, life: TaskLife,
        specification: TaskSpecification, progress: TaskProgress?, content: ContentRecord? = nil, createdAt: Timestamp,
        startedAt: Timestamp?, revision: Int64
    ) {
        self.id = id
        self.session = session
        self.sessionIdentifier = sessionIdentifier
        self.app = app
        self.number = number
        self.life = life
        self.specification = specification
        self.progress = progress
        self.content = content
        self.createdAt = createdAt
        self.startedAt = startedAt
        self.revision = revision
    }

    package var state: TaskState { life.state }

    /// `nil` for a completed task.
    package var phase: TaskLife.Phase? { life.phase }

    package var outcome: Outcome? { if case .completed(let outcome, _, _) = life { outcome } else { nil } }

    package var result: TaskResult? { if case .completed(_, let result, _) = life { result } else { nil } }

    package var completedAt: Timestamp? { if case .completed(_, _, let moment) = life { moment } else { nil } }

    /// `nil` for an unfinished task.
    package var stamp: TaskStamp? {
        guard state == .completed else { return nil }
        return TaskStamp(
            task: id, revision: revision, contentExpiresAt: content?.expiresAt,
            isContentExpired: content?.isExpired ?? false)
    }
}

/// The stamp of a completed task, which changes with every change of the task.
package struct TaskStamp: Hashable, Sendable {
    package var task: TaskID
    package var revision: Int64
    /// Counts from the acknowledgement of the content, which does not change the task's revision.
    package var contentExpiresAt: Timestamp?
    package var isContentExpired: Bool

    package init(task: TaskID, revision: Int64, contentExpiresAt: Timestamp?, isContentExpired: Bool) {
        self.task = task
        self.revision = revision
        self.contentExpiresAt = contentExpiresAt
        self.isContentExpired = isContentExpired
    }
}

/// The result of a task query with known stamps: the documents of tasks with a known stamp are not read.
package enum FoundTask<Known: Sendable>: Sendable {
    case known(Known)
    case read(TaskRecord)
}

extension FoundTask<Never> {
    package var record: TaskRecord {
        switch self {
        case .read(let task): task
        }
    }
}
