/// The body of `POST …/tasks/batch`: all tasks are created or none.
public struct BatchCreation: Shape {
    /// The maximum number of tasks of one batch.
    public static let maximumCount = 10_000

    public var tasks: [TaskCreation] = []

    public init() {}

    public init(tasks: [TaskCreation]) { self.tasks = tasks }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("tasks", &tasks, .count(1...Self.maximumCount))
    }
}

/// The response to a batch.
public struct Batch: Shape {
    public var created: Int64 = 0
    /// The first new task; `nil` if no task is new.
    public var firstTaskIdentifier: Int64?
    /// The last new task.
    public var lastTaskIdentifier: Int64?
    /// All tasks in the batch's order; `nil` after `?return=minimal`.
    public var items: [SessionTask]?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("created", &created)
        members.nullable("firstTaskIdentifier", &firstTaskIdentifier)
        members.nullable("lastTaskIdentifier", &lastTaskIdentifier)
        members.optional("items", &items)
    }
}

/// One line of the response to tasks sent as NDJSON.
public struct LineResult: Shape {
    /// The number of the line in the request, from 1.
    public var line: Int64 = 0
    /// The status of this task: 201, 200, or that of the problem.
    public var status: Int64 = 0
    public var taskIdentifier: Int64?
    public var clientTaskId: String?
    /// Whether the task existed before.
    public var existing = false
    /// The reason why there is no task.
    public var problem: Problem?

    public init() {}

    public init(taskIdentifier: Int64, clientTaskId: String?, existing: Bool) {
        status = existing ? 200 : 201
        self.taskIdentifier = taskIdentifier
        self.clientTaskId = clientTaskId
        self.existing = existing
    }

    /// Creates the line of a refused task.
    public init(problem: Problem, clientTaskId: String? = nil) {
        status = Int64(problem.status)
        self.clientTaskId = clientTaskId
        existing = false
        self.problem = problem
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("line", &line)
        members.member("status", &status)
        members.optional("taskIdentifier", &taskIdentifier)
        members.optional("clientTaskId", &clientTaskId)
        members.sparse("existing", &existing, unless: false)
        members.optional("problem", &problem)
    }
}
