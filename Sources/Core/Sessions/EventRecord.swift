package import Formats

/// The stored events of a session: the delegate messages that must not be lost.
package enum EventKind: String, Sendable, CaseIterable {
    case willBeginDelayedRequest = "task.willBeginDelayedRequest"
    case didReceiveChallenge = "task.didReceiveChallenge"
    case didResumeAtOffset = "task.didResumeAtOffset"
    case didFinishDownloading = "task.didFinishDownloading"
    case didFinishCollectingMetrics = "task.didFinishCollectingMetrics"
    case didComplete = "task.didComplete"
    case didStall = "session.didStall"
    case didPublish = "set.didPublish"
    case didFailToPublish = "set.didFail"
    case didFinishEvents = "session.didFinishEvents"
    case didBecomeInvalid = "session.didBecomeInvalid"
}

/// The resumption or restart of a download after an interruption. Clients receive it as stored.
package struct Resumption: Shape {
    /// The offset at which the download resumes; 0 for a restart.
    package var fileOffset: Int64 = 0
    package var expectedTotalBytes: Int64?
    /// The reason for a restart, or `interrupted`.
    package var cause = ""

    package init() {}

    package init(fileOffset: Int64, expectedTotalBytes: Int64?, cause: String) {
        self.fileOffset = fileOffset
        self.expectedTotalBytes = expectedTotalBytes
        self.cause = cause
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("fileOffset", &fileOffset)
        members.nullable("expectedTotalBytes", &expectedTotalBytes)
        members.member("cause", &cause)
    }
}

/// A stored event with its payload.
package struct EventRecord: Sendable {
    package enum Payload: Sendable {
        case question(QuestionRecord)
        case resumed(Resumption)
        case finishedDownloading(ContentRecord, TaskResponse?)
        case metrics(TaskResult, createdAt: Timestamp, completedAt: Timestamp)
        case completed(Outcome, TaskResult)
        case stalled(SessionStall)
        case published(SetPublication)
        case failedToPublish(SetFailures)
        case finishedEvents(launchId: String)
        case becameInvalid
    }

    package var seq: Int64
    package var kind: EventKind
    package var occurredAt: Timestamp
    package var taskIdentifier: Int64?
    package var clientTaskId: String?
    package var group: String?
    package var payload: Payload

    package init(
        seq: Int64, kind: EventKind, occurredAt: Timestamp, taskIdentifier: Int64?, clientTaskId: String?,
        group: String?, payload: Payload
    ) {
        self.seq = seq
        self.kind = kind
        self.occurredAt = occurredAt
        self.taskIdentifier = taskIdentifier
        self.clientTaskId = clientTaskId
        self.group = group
        self.payload = payload
    }
}
