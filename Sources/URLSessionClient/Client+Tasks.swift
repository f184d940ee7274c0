public import Wire

/// Downloads and uploads.
extension Client {
    /// Creates a task. With a `clientTaskId` it is safe to repeat.
    public func createTask(_ task: TaskCreation, in session: String) async throws -> SessionTask {
        try await send("POST", ["v1", "sessions", session, "tasks"], body: task.jsonBytes)
    }

    /// Creates all tasks or none. Those whose `clientTaskId` exists are returned unchanged.
    public func createTasks(_ tasks: [TaskCreation], in session: String) async throws -> Batch {
        try await send(
            "POST", ["v1", "sessions", session, "tasks", "batch"], body: BatchCreation(tasks: tasks).jsonBytes,
            mayTakeLong: true)
    }

    /// Creates any number of tasks independently. They are committed as they arrive.
    ///
    /// - Returns: The result of each, in order. Those with a `clientTaskId` may be sent again.
    public func createEach(_ tasks: [TaskCreation], in session: String) async throws -> [LineResult] {
        let lines = tasks.flatMap { $0.jsonBytes + [UInt8(ascii: "\n")] }
        let answer = try await exchange(
            "POST", ["v1", "sessions", session, "tasks"], body: lines, mediaType: "application/x-ndjson",
            mayTakeLong: true)
        return try answer.split(separator: UInt8(ascii: "\n")).map { try Self.read(Array($0)) }
    }

    /// Creates a download of the one file of a Metalink document (RFC 5854), from all its sources.
    public func createTask(metalink document: [UInt8], in session: String) async throws -> SessionTask {
        try await send(
            "POST", ["v1", "sessions", session, "tasks"], body: document, mediaType: "application/metalink4+xml")
    }

    /// One task: its current state or, with `waiting` seconds (0 to 60), its state after completion.
    public func task(_ number: Int64, in session: String, waiting: Int = 0) async throws -> SessionTask {
        try await send(
            "GET", ["v1", "sessions", session, "tasks", String(number)],
            query: waiting > 0 ? ["wait": String(waiting)] : [:], mayTakeLong: waiting > 0)
    }

    /// A page of the tasks of a session, or of all sessions: all, or those that match what is given. Empty lists match all.
    ///
    /// - Parameter search: A part of a name, URL or client id. With it, a page may be short or empty before the last one.
    public func tasks(
        in session: String? = nil, states: [TaskState] = [], outcomes: [TaskOutcome] = [], group: String? = nil,
        clientTaskId: String? = nil, search: String? = nil, cursor: String? = nil, limit: Int = 100
    ) async throws -> Page<SessionTask> {
        try await page(
            session.map { ["v1", "sessions", $0, "tasks"] } ?? ["v1", "tasks"], cursor, limit,
            [
                "state": Self.list(states.map(\.rawValue)), "outcome": Self.list(outcomes.map(\.rawValue)),
                "group": group, "clientTaskId": clientTaskId, "search": search,
            ])
    }

    /// A command for a task.
    public enum Command: String, Sendable, CaseIterable {
        /// Stops the task and keeps its bytes.
        case suspend
        /// Starts the task, or retries at once.
        case resume
        /// Ends the task.
        case cancel
        /// Creates a new task from a completed one.
        case retry
    }

    /// Suspends, resumes or cancels a task; `retry` returns the new one.
    ///
    /// - Parameter number: The service's number of the task: ``BackgroundSessionTask/number`` of a session object's
    ///   task, not its `taskIdentifier`.
    public func command(_ command: Command, task number: Int64, in session: String) async throws -> SessionTask {
        try await send("POST", ["v1", "sessions", session, "tasks", String(number), command.rawValue])
    }

    /// Sends a command to all matching tasks of a session.
    public func command(
        _ command: Command, tasks selection: TaskSelection = TaskSelection(), in session: String
    ) async throws -> SelectionAnswer {
        try await send(
            "POST", ["v1", "sessions", session, "tasks", command.rawValue], body: selection.jsonBytes, mayTakeLong: true
        )
    }

    /// Changes the changeable members of an unfinished task.
    public func change(_ change: TaskChange, ofTask number: Int64, in session: String) async throws -> SessionTask {
        try await send("PATCH", ["v1", "sessions", session, "tasks", String(number)], body: change.jsonBytes)
    }

    /// Cancels a download so that ``Wire/TaskCreation/download(resumeData:)`` can resume it.
    public func cancelByProducingResumeData(_ number: Int64, in session: String) async throws -> ResumeDataAnswer {
        let cancellation = TaskCancellation { $0.byProducingResumeData = true }
        return try await send(
            "POST", ["v1", "sessions", session, "tasks", String(number), "cancel"], body: cancellation.jsonBytes)
    }
}
