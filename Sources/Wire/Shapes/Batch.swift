/// What `POST …/tasks/batch` takes: all tasks are created or none.
public struct BatchCreation: Sendable, Hashable, JSONWritable, JSONReadable {
    /// The most tasks of one batch.
    public static let maximumCount = 10_000

    /// The tasks.
    public var tasks: [TaskCreation]

    /// Makes a batch.
    public init(tasks: [TaskCreation]) { self.tasks = tasks }

    /// Reads a batch.
    public init(reading reader: inout ObjectReader) {
        tasks = reader.objects("tasks", count: 1...Self.maximumCount)
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) { writer.object { $0.member("tasks", tasks) } }
}

/// What a batch answers.
public struct Batch: Sendable, Hashable, JSONWritable, JSONReadable {
    /// How many tasks are new.
    public var created: Int64
    /// The first new task; `nil` when none is new.
    public var firstTaskIdentifier: Int64?
    /// The last new task.
    public var lastTaskIdentifier: Int64?
    /// All tasks in the batch's order; `nil` after `?return=minimal`.
    public var items: [SessionTask]?

    /// Makes an answer.
    public init(
        created: Int64, firstTaskIdentifier: Int64?, lastTaskIdentifier: Int64?, items: [SessionTask]? = nil
    ) {
        self.created = created
        self.firstTaskIdentifier = firstTaskIdentifier
        self.lastTaskIdentifier = lastTaskIdentifier
        self.items = items
    }

    /// Reads an answer.
    public init(reading reader: inout ObjectReader) {
        created = reader.integer("created")
        firstTaskIdentifier = reader.optionalInteger("firstTaskIdentifier")
        lastTaskIdentifier = reader.optionalInteger("lastTaskIdentifier")
        items = reader.optionalObjects("items")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("created", created)
            writer.member("firstTaskIdentifier", firstTaskIdentifier)
            writer.member("lastTaskIdentifier", lastTaskIdentifier)
            writer.memberIfPresent("items", items)
        }
    }
}

/// One line of the answer to tasks sent as NDJSON.
public struct LineResult: Sendable, Hashable, JSONWritable, JSONReadable {
    /// What the task alone would have been answered: 201, 200, or the status of the problem.
    public var status: Int64
    /// The task.
    public var taskIdentifier: Int64?
    /// The app's name for it.
    public var clientTaskId: String?
    /// Whether it was there before.
    public var existing: Bool
    /// Why there is no task.
    public var problem: Problem?

    /// Makes the line of a task.
    public init(taskIdentifier: Int64, clientTaskId: String?, existing: Bool) {
        status = existing ? 200 : 201
        self.taskIdentifier = taskIdentifier
        self.clientTaskId = clientTaskId
        self.existing = existing
    }

    /// Makes the line of a task that was refused.
    public init(problem: Problem, clientTaskId: String? = nil) {
        status = Int64(problem.status)
        self.clientTaskId = clientTaskId
        existing = false
        self.problem = problem
    }

    /// Reads a line.
    public init(reading reader: inout ObjectReader) {
        status = reader.integer("status")
        taskIdentifier = reader.optionalInteger("taskIdentifier")
        clientTaskId = reader.optionalString("clientTaskId")
        existing = reader.bool("existing", default: false)
        problem = reader.optionalObject("problem")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("status", status)
            writer.memberIfPresent("taskIdentifier", taskIdentifier)
            writer.memberIfPresent("clientTaskId", clientTaskId)
            if existing { writer.member("existing", true) }
            writer.memberIfPresent("problem", problem)
        }
    }
}
