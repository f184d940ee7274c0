/// A command of an app to an unfinished task.
package enum TaskCommand: Hashable, Sendable {
    case suspend
    case resume
    /// The reason is Apple's `NSURLErrorBackgroundTaskCancelledReasonKey`, if there is one.
    case cancel(reason: Int?)

    package var endsTask: Bool { if case .cancel = self { true } else { false } }
}

/// The changes of a task. An outer `nil` leaves a member unchanged.
package struct TaskChanges: Sendable {
    package var priority: Double?
    package var taskDescription: String??
    package var metadata: [String: String]?
    package var earliestBeginDate: Timestamp??
    package var request: TransferRequest?
    /// The origin of the new request, if its URL changes.
    package var origin: String?

    package init() {}
}
