/// The state of a task as `URLSessionTask.State` has it.
package enum TaskState: String, Sendable, Codable, CaseIterable {
    case suspended, running, canceling, completed

    package var name: String { rawValue }
}

/// How a task ended.
package enum Outcome: String, Sendable, Codable, CaseIterable {
    case succeeded, httpError, failed, cancelled, notModified

    package var name: String { rawValue }
}

/// A task as it stands in the store.
package struct TaskRecord: Sendable {
    package var id: TaskID
    package var session: SessionID
    package var app: AppID
    /// `taskIdentifier`, unique in its session, from 1.
    package var number: Int64
    package var state: TaskState
    /// Nil for a completed task.
    package var stage: TaskStage?
    package var outcome: Outcome?
    package var specification: TaskSpecification
    package var progress: TaskProgress?
    package var result: TaskResult?
    package var content: ContentRecord?
    /// Crashes of the service in a row that found it under way.
    package var crashes = 0
    package var dueAt: Timestamp?
    package var resourceDeadline: Timestamp?
    /// The question that it waits for.
    package var questionId: String?
    package var createdAt: Timestamp
    package var startedAt: Timestamp?
    package var completedAt: Timestamp?
    package var revision: Int64

    package init(
        id: TaskID, session: SessionID, app: AppID, number: Int64, state: TaskState, stage: TaskStage?,
        outcome: Outcome?, specification: TaskSpecification, progress: TaskProgress?, result: TaskResult?,
        content: ContentRecord?, dueAt: Timestamp?, resourceDeadline: Timestamp?, createdAt: Timestamp,
        startedAt: Timestamp?, completedAt: Timestamp?, revision: Int64
    ) {
        self.id = id
        self.session = session
        self.app = app
        self.number = number
        self.state = state
        self.stage = stage
        self.outcome = outcome
        self.specification = specification
        self.progress = progress
        self.result = result
        self.content = content
        self.dueAt = dueAt
        self.resourceDeadline = resourceDeadline
        self.createdAt = createdAt
        self.startedAt = startedAt
        self.completedAt = completedAt
        self.revision = revision
    }
}
