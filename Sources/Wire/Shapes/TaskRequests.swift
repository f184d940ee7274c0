/// What `PATCH` of a task takes.
public struct TaskChange: Shape {
    /// 0 to 1.
    public var priority: Double?
    public var taskDescription: Change<String> = .unchanged
    /// The app's own names and texts, instead of all old ones; `null` for none.
    public var metadata: Change<StringMap> = .unchanged
    /// Not before this time (RFC 3339).
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

/// What `cancel` of a task takes.
public struct TaskCancellation: Shape {
    /// Whether the download may go on later, as a new task.
    public var byProducingResumeData = false

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.defaulted("byProducingResumeData", &byProducingResumeData)
    }
}

/// What a `cancel` by producing resume data answers.
public struct ResumeDataAnswer: Shape {
    /// For a new task, once and for 24 hours; `nil` where the download cannot go on.
    public var resumeData: String?
    public var notResumableReason: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.nullable("resumeData", &resumeData)
        members.optional("notResumableReason", &notResumableReason)
    }
}

/// Which tasks of a session a call is for: those that match every member given.
public struct TaskSelection: Shape {
    /// Any of them.
    public var state: OneOrMore<TaskState>?
    /// Any of them.
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

/// What a session-wide call answers.
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

    /// How many tasks the call was for.
    public var matched: Int64 = 0
    /// How many of them it changed.
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
