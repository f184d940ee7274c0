/// How many tasks of a session are in which state.
public struct TaskCounts: Shape {
    /// Tasks that wait for `resume`.
    public var suspended: Int64 = 0
    /// Tasks that run, or wait to.
    public var running: Int64 = 0
    public var canceling: Int64 = 0
    /// Tasks that are done, whatever came of them.
    public var completed: Int64 = 0
    /// Of the completed ones, by outcome.
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

/// How many completed tasks ended how.
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
