/// What `PATCH` of a task takes.
public struct TaskChange: Sendable, Hashable, JSONWritable, JSONReadable {
    /// 0 to 1.
    public var priority: Double?
    /// The app's words about it.
    public var taskDescription: Change<String>
    /// The app's own names and texts, instead of all old ones; `null` for none.
    public var metadata: Change<StringMap>
    /// Not before this time (RFC 3339).
    public var earliestBeginDate: Change<String>
    /// A new URL or header fields.
    public var request: RequestChange?

    /// Makes a change.
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

    /// Reads a change.
    public init(reading reader: inout ObjectReader) {
        let hasPriority = reader.presence(of: "priority") != .absent
        let number = reader.number("priority", default: 0.5, in: 0...1)
        priority = hasPriority ? number : nil
        taskDescription = reader.change("taskDescription") { reader in
            reader.optionalString("taskDescription", .length(0...TaskRules.maximumDescriptionLength))
        }
        metadata = reader.change("metadata") { $0.metadata() }
        earliestBeginDate = reader.change("earliestBeginDate") { $0.optionalString("earliestBeginDate", .timestamp) }
        request =
            reader.presence(of: "request") == .absent ? reader.optionalObject("request") : reader.object("request")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.memberIfPresent("priority", priority)
            writer.member("taskDescription", taskDescription)
            writer.member("metadata", metadata)
            writer.member("earliestBeginDate", earliestBeginDate)
            writer.memberIfPresent("request", request)
        }
    }
}

/// What `cancel` of a task takes.
public struct TaskCancellation: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Whether the download may go on later, as a new task.
    public var byProducingResumeData: Bool

    /// Makes a request.
    public init(byProducingResumeData: Bool = false) { self.byProducingResumeData = byProducingResumeData }

    /// Reads a request.
    public init(reading reader: inout ObjectReader) {
        byProducingResumeData = reader.bool("byProducingResumeData", default: false)
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { $0.member("byProducingResumeData", byProducingResumeData) }
    }
}

/// What a `cancel` by producing resume data answers.
public struct ResumeDataAnswer: Sendable, Hashable, JSONWritable, JSONReadable {
    /// For a new task, once and for 24 hours; `nil` where the download cannot go on.
    public var resumeData: String?
    /// Why there is none, in words.
    public var notResumableReason: String?

    /// Makes an answer.
    public init(resumeData: String?, notResumableReason: String? = nil) {
        self.resumeData = resumeData
        self.notResumableReason = notResumableReason
    }

    /// Reads an answer.
    public init(reading reader: inout ObjectReader) {
        resumeData = reader.optionalString("resumeData")
        notResumableReason = reader.optionalString("notResumableReason")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("resumeData", resumeData)
            writer.memberIfPresent("notResumableReason", notResumableReason)
        }
    }
}

/// Which tasks of a session a call means: those that fit all that is given.
public struct TaskSelection: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Those in this state.
    public var state: TaskState?
    /// Those that ended so.
    public var outcome: TaskOutcome?
    /// Those of this group.
    public var group: String?

    /// Makes a selection.
    public init(state: TaskState? = nil, outcome: TaskOutcome? = nil, group: String? = nil) {
        self.state = state
        self.outcome = outcome
        self.group = group
    }

    /// Reads a selection.
    public init(reading reader: inout ObjectReader) {
        state = reader.optionalWord("state")
        outcome = reader.optionalWord("outcome")
        group = reader.optionalString("group", .plain(1...256))
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.memberIfPresent("state", state)
            writer.memberIfPresent("outcome", outcome)
            writer.memberIfPresent("group", group)
        }
    }
}

/// What a session-wide call answers.
public struct SelectionAnswer: Sendable, Hashable, JSONWritable, JSONReadable {
    /// A task that could not be retried.
    public struct Refusal: Sendable, Hashable, JSONWritable, JSONReadable {
        /// The task.
        public var taskIdentifier: Int64
        /// Why not.
        public var problem: Problem

        /// Makes a refusal.
        public init(taskIdentifier: Int64, problem: Problem) {
            self.taskIdentifier = taskIdentifier
            self.problem = problem
        }

        /// Reads a refusal.
        public init(reading reader: inout ObjectReader) {
            taskIdentifier = reader.integer("taskIdentifier")
            problem = reader.object("problem")
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("taskIdentifier", taskIdentifier)
                writer.member("problem", problem)
            }
        }
    }

    /// How many tasks were meant.
    public var matched: Int64
    /// How many are different now.
    public var changed: Int64
    /// Of a retry: those that cannot be retried, the first thousand.
    public var errors: [Refusal]

    /// Makes an answer.
    public init(matched: Int64, changed: Int64, errors: [Refusal] = []) {
        self.matched = matched
        self.changed = changed
        self.errors = errors
    }

    /// Reads an answer.
    public init(reading reader: inout ObjectReader) {
        matched = reader.integer("matched")
        changed = reader.integer("changed")
        errors = reader.optionalObjects("errors") ?? []
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("matched", matched)
            writer.member("changed", changed)
            if !errors.isEmpty { writer.member("errors", errors) }
        }
    }
}
