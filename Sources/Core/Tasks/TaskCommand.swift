/// What an app tells a task that is not completed.
package enum TaskCommand: Hashable, Sendable {
    case suspend
    case resume
    /// The reason is Apple's `NSURLErrorBackgroundTaskCancelledReasonKey`, where there is one.
    case cancel(reason: Int?)

    package var endsTask: Bool { if case .cancel = self { true } else { false } }
}

/// What may be changed about a task. The outer nil leaves a member as it is.
package struct TaskChanges: Sendable {
    package var priority: Double?
    package var taskDescription: String??
    package var metadata: [String: String]?
    package var earliestBeginDate: Timestamp??
    package var request: TransferRequest?
    /// The origin of the request, where it has another URL.
    package var origin: String?

    package init() {}
}
