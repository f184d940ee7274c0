/// The number of a session's tasks by state and outcome. Updated in the transaction of every change.
package struct TaskCounts: Hashable, Sendable {
    package var suspended: Int64 = 0
    package var running: Int64 = 0
    package var canceling: Int64 = 0
    package var succeeded: Int64 = 0
    package var httpError: Int64 = 0
    package var failed: Int64 = 0
    package var cancelled: Int64 = 0
    package var notModified: Int64 = 0

    package init() {}

    package var completed: Int64 { succeeded + httpError + failed + cancelled + notModified }
    package var unfinished: Int64 { suspended + running + canceling }

    /// Adds a task, or removes it with -1.
    package mutating func add(_ count: Int64, _ life: TaskLife) {
        switch life {
        case .suspended: suspended += count
        case .running: running += count
        case .completed(let outcome, _, _): self[outcome] += count
        }
    }

    package subscript(_ outcome: Outcome) -> Int64 {
        get { self[keyPath: Self.member(outcome)] }
        set { self[keyPath: Self.member(outcome)] = newValue }
    }

    private static func member(_ outcome: Outcome) -> WritableKeyPath<TaskCounts, Int64> {
        switch outcome {
        case .succeeded: \.succeeded
        case .httpError: \.httpError
        case .failed: \.failed
        case .cancelled: \.cancelled
        case .notModified: \.notModified
        }
    }
}

package struct SessionRecord: Sendable {
    package var id: SessionID
    package var app: AppID
    package var identifier: String
    package var incarnation: Int64
    package var state: SessionState
    package var configuration: SessionConfiguration
    package var sessionDescription: String?
    package var counts: TaskCounts
    package var countOfBytesReceived: Int64
    package var countOfBytesSent: Int64
    package var lastEventSeq: Int64
    package var acknowledgedSeq: Int64
    package var droppedSeq: Int64
    package var attachment: Attachment?
    /// The `taskIdentifier` of the newest task, 0 before the first.
    package var lastTaskNumber: Int64
    /// The `launchId` of the open launch.
    package var openLaunch: String?
    package var createdAt: Timestamp
    package var revision: Int64

    package init(
        id: SessionID, app: AppID, identifier: String, incarnation: Int64, state: SessionState,
        configuration: SessionConfiguration, sessionDescription: String?, counts: TaskCounts,
        countOfBytesReceived: Int64, countOfBytesSent: Int64, lastEventSeq: Int64, acknowledgedSeq: Int64,
        droppedSeq: Int64, attachment: Attachment?, lastTaskNumber: Int64, openLaunch: String?, createdAt: Timestamp,
        revision: Int64
    ) {
        self.id = id
        self.app = app
        self.identifier = identifier
        self.incarnation = incarnation
        self.state = state
        self.configuration = configuration
        self.sessionDescription = sessionDescription
        self.counts = counts
        self.countOfBytesReceived = countOfBytesReceived
        self.countOfBytesSent = countOfBytesSent
        self.lastEventSeq = lastEventSeq
        self.acknowledgedSeq = acknowledgedSeq
        self.droppedSeq = droppedSeq
        self.attachment = attachment
        self.lastTaskNumber = lastTaskNumber
        self.openLaunch = openLaunch
        self.createdAt = createdAt
        self.revision = revision
    }
}
