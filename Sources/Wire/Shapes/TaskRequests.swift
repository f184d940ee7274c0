/// The body of a task's `PATCH`.
public struct TaskChange: Shape {
    /// 0 to 1.
    public var priority: Double?
    public var taskDescription: Change<String> = .unchanged
    /// The app's metadata, which replaces all old entries; `null` for none.
    public var metadata: Change<StringMap> = .unchanged
    /// The earliest begin (RFC 3339).
    public var earliestBeginDate: Change<String> = .unchanged
    /// A new URL or header fields.
    public var request: RequestChange?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.given("priority", &priority, 0...1)
        members.change("taskDescription", &taskDescription, .description)
        members.change("metadata", &metadata, .metadata)
        members.change("earliestBeginDate", &earliestBeginDate, .timestamp)
        members.given("request", &request)
    }
}

/// The body of a task's `cancel`.
public struct TaskCancellation: Shape {
    /// Whether the download can be resumed later, by a new task.
    public var byProducingResumeData = false

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.defaulted("byProducingResumeData", &byProducingResumeData)
    }
}

/// The response to a `cancel` by producing resume data.
public struct ResumeDataAnswer: Shape {
    /// For one new task within 24 hours; `nil` if the download cannot be resumed.
    public var resumeData: String?
    public var notResumableReason: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.nullable("resumeData", &resumeData)
        members.optional("notResumableReason", &notResumableReason)
    }
}

/// A selection of a session's tasks that match every given member.
public struct TaskSelection: Shape {
    /// Tasks in one of these states.
    public var state: OneOrMore<TaskState>?
    /// Tasks with one of these outcomes.
    public var outcome: OneOrMore<TaskOutcome>?
    public var group: String?
    /// Up to 1,000 `taskIdentifier`s.
    public var taskIdentifiers: [Int64]?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("state", &state)
        members.optional("outcome", &outcome)
        members.optional("group", &group, .plain(1...256))
        members.optional("taskIdentifiers", &taskIdentifiers, .count(1...1000))
    }
}

/// The response to a session-wide call.
public struct SelectionAnswer: Shape {
    /// A task that could not be retried.
    public struct Refusal: Shape {
        public var taskIdentifier: Int64 = 0
        public var problem = Problem()

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("taskIdentifier", &taskIdentifier)
            members.member("problem", &problem)
        }
    }

    /// The number of tasks that matched.
    public var matched: Int64 = 0
    /// The number of tasks that changed.
    public var changed: Int64 = 0
    /// The tasks that could not be retried, at most a thousand.
    public var errors: [Refusal] = []

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("matched", &matched)
        members.member("changed", &changed)
        members.sparse("errors", &errors, unless: [])
    }
}
