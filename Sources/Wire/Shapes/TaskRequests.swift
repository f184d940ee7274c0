/// What `PATCH` of a task takes.
public struct TaskChange: Shape {
    /// 0 to 1.
    public var priority: Double?
    /// The app's words about it.
    public var taskDescription: Change<String> = .unchanged
    /// The app's own names and texts, instead of all old ones; `null` for none.
    public var metadata: Change<StringMap> = .unchanged
    /// Not before this time (RFC 3339).
    public var earliestBeginDate: Change<String> = .unchanged
    /// A new URL or header fields.
    public var request: RequestChange?

    public init() {}

    public init(
        priority: Double? = nil, taskDescription: Change<String> = .unchanged, metadata: Change<StringMap> = .unchanged,
        earliestBeginDate: Change<String> = .unchanged, request: RequestChange? = nil
    ) {
        self.priority = priority
        self.taskDescription = taskDescription
        self.metadata = metadata
        self.earliestBeginDate = earliestBeginDate
        self.request = request
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.given("priority", &priority, 0...1)
        members.change("taskDescription", &taskDescription, .length(0...TaskRules.maximumDescriptionLength))
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

    public init(byProducingResumeData: Bool = false) { self.byProducingResumeData = byProducingResumeData }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.defaulted("byProducingResumeData", &byProducingResumeData)
    }
}

/// What a `cancel` by producing resume data answers.
public struct ResumeDataAnswer: Shape {
    /// For a new task, once and for 24 hours; `nil` where the download cannot go on.
    public var resumeData: String?
    /// Why there is none, in words.
    public var notResumableReason: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.nullable("resumeData", &resumeData)
        members.optional("notResumableReason", &notResumableReason)
    }
}

/// Which tasks of a session a call means: those that fit all that is given.
public struct TaskSelection: Shape {
    /// Those in this state.
    public var state: TaskState?
    /// Those that ended so.
    public var outcome: TaskOutcome?
    /// Those of this group.
    public var group: String?

    public init() {}

    public init(state: TaskState? = nil, outcome: TaskOutcome? = nil, group: String? = nil) {
        self.state = state
        self.outcome = outcome
        self.group = group
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("state", &state)
        members.optional("outcome", &outcome)
        members.optional("group", &group, .plain(1...256))
    }
}

/// What a session-wide call answers.
public struct SelectionAnswer: Shape {
    /// A task that could not be retried.
    public struct Refusal: Shape {
        /// The task.
        public var taskIdentifier: Int64 = 0
        /// Why not.
        public var problem = Problem()

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("taskIdentifier", &taskIdentifier)
            members.member("problem", &problem)
        }
    }

    /// How many tasks were meant.
    public var matched: Int64 = 0
    /// How many are different now.
    public var changed: Int64 = 0
    /// Of a retry: those that cannot be retried, the first thousand.
    public var errors: [Refusal] = []

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("matched", &matched)
        members.member("changed", &changed)
        members.sparse("errors", &errors, unless: [])
    }
}
