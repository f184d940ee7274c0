/// The numbers of a session's tasks by state.
public struct TaskCounts: Shape {
    /// Tasks that wait for `resume`.
    public var suspended: Int64 = 0
    /// Tasks that run or are queued.
    public var running: Int64 = 0
    public var canceling: Int64 = 0
    /// Completed tasks of any outcome.
    public var completed: Int64 = 0
    /// The completed tasks by outcome.
    public var outcomes = OutcomeCounts()

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("suspended", &suspended)
        members.member("running", &running)
        members.member("canceling", &canceling)
        members.member("completed", &completed)
        outcomes.visit(&members)
    }
}

/// The numbers of completed tasks by outcome.
public struct OutcomeCounts: Shape {
    /// With an acceptable status.
    public var succeeded: Int64 = 0
    /// With any other status.
    public var httpError: Int64 = 0
    /// With an error.
    public var failed: Int64 = 0
    /// By `cancel`.
    public var cancelled: Int64 = 0
    /// With a 304 to the app's own validator.
    public var notModified: Int64 = 0

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("succeeded", &succeeded)
        members.member("httpError", &httpError)
        members.member("failed", &failed)
        members.member("cancelled", &cancelled)
        members.member("notModified", &notModified)
    }
}
