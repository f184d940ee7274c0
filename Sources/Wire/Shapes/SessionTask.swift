/// A task as the service answers it.
public struct SessionTask: Sendable, Hashable {
    /// Its number in the session, from 1.
    public var taskIdentifier: Int64
    /// What it does.
    public var kind: TaskKind
    /// Where it stands.
    public var state: TaskState
    /// What a running task is doing.
    public var phase: TaskPhase?
    /// Why it is not moving.
    public var waitingFor: [WaitingReason] = []
    /// How it ended.
    public var outcome: TaskOutcome?
    /// As it was given, without secrets.
    public var originalRequest: TransferRequest
    /// After redirects and changes, without secrets.
    public var currentRequest: TransferRequest?
    /// The redirects that were followed.
    public var redirects: [Redirect] = []
    /// The last answer of the server.
    public var response: TaskResponse?
    /// 0 to 1.
    public var priority = 0.5
    /// Bytes of content.
    public var countOfBytesReceived: Int64 = 0
    /// Bytes of the body.
    public var countOfBytesSent: Int64 = 0
    /// Bytes of content, where that is known.
    public var countOfBytesExpectedToReceive: Int64?
    /// Bytes of the body, where that is known.
    public var countOfBytesExpectedToSend: Int64?
    /// How far it is.
    public var progress = TaskProgress()
    /// Its attempts.
    public var attempts = TaskAttempts()
    /// Why it failed.
    public var error: TaskError?
    /// Its stored bytes.
    public var content: Content?
    /// When it was created.
    public var createdAt: String
    /// When its first attempt began.
    public var startedAt: String?
    /// When it ended.
    public var completedAt: String?
    /// Grows with every change but progress.
    public var revision: Int64

    /// The app's name for it.
    public var clientTaskId: String?
    /// What it belongs to.
    public var group: String?
    /// The app's words about it.
    public var taskDescription: String?
    /// The app's own names and texts.
    public var metadata = StringMap()
    /// What it sends; bytes that were given as the body they were stored as.
    public var body: BodySource?
    /// Not before this time.
    public var earliestBeginDate: String?
    /// Whether the app is asked once before the first attempt.
    public var confirmBeforeStart = false
    /// The app's guess in bytes.
    public var countOfBytesClientExpectsToSend: Int64?
    /// The app's guess in bytes.
    public var countOfBytesClientExpectsToReceive: Int64?
    /// What the content must have.
    public var expectedDigest: ContentDigest?
    /// Content above this length fails the task.
    public var maximumContentLength: Int64?
    /// The app's validator.
    public var ifNoneMatch: String?
    /// Codes and ranges of codes that are `succeeded`.
    public var acceptableStatusCodes = TaskCreation.standardStatusCodes
    /// Whether other codes fail the task.
    public var failOnHTTPError = false
    /// Where the content is moved.
    public var destination: Destination?
    /// The task that this one repeats.
    public var retryOf: Int64?
    /// In the answer to a creation: whether it was there before.
    public var existing = false

    /// Makes a task that has not begun.
    public init(
        taskIdentifier: Int64, kind: TaskKind, state: TaskState, originalRequest: TransferRequest, createdAt: String,
        revision: Int64
    ) {
        self.taskIdentifier = taskIdentifier
        self.kind = kind
        self.state = state
        self.originalRequest = originalRequest
        self.createdAt = createdAt
        self.revision = revision
    }
}

extension SessionTask: JSONReadable {
    /// Reads a task.
    public init(reading reader: inout ObjectReader) {
        taskIdentifier = reader.integer("taskIdentifier")
        kind = reader.word("kind")
        state = reader.word("state")
        phase = reader.optionalWord("phase")
        waitingFor = reader.optionalObjects("waitingFor") ?? []
        outcome = reader.optionalWord("outcome")
        originalRequest = reader.object("originalRequest")
        currentRequest = reader.optionalObject("currentRequest")
        redirects = reader.optionalObjects("redirects") ?? []
        response = reader.optionalObject("response")
        priority = reader.number("priority", default: 0.5)
        countOfBytesReceived = reader.integer("countOfBytesReceived")
        countOfBytesSent = reader.integer("countOfBytesSent")
        countOfBytesExpectedToReceive = reader.optionalInteger("countOfBytesExpectedToReceive")
        countOfBytesExpectedToSend = reader.optionalInteger("countOfBytesExpectedToSend")
        progress = reader.object("progress", default: TaskProgress())
        attempts = reader.object("attempts", default: TaskAttempts())
        error = reader.optionalObject("error")
        content = reader.optionalObject("content")
        createdAt = reader.string("createdAt")
        startedAt = reader.optionalString("startedAt")
        completedAt = reader.optionalString("completedAt")
        revision = reader.integer("revision")
        readGivenMembers(&reader)
        retryOf = reader.optionalInteger("retryOf")
        existing = reader.bool("existing", default: false)
    }

    private mutating func readGivenMembers(_ reader: inout ObjectReader) {
        clientTaskId = reader.optionalString("clientTaskId")
        group = reader.optionalString("group")
        taskDescription = reader.optionalString("taskDescription")
        metadata = reader.stringMap("metadata")
        body = reader.optionalObject("body")
        earliestBeginDate = reader.optionalString("earliestBeginDate")
        confirmBeforeStart = reader.bool("confirmBeforeStart", default: false)
        countOfBytesClientExpectsToSend = reader.optionalInteger("countOfBytesClientExpectsToSend")
        countOfBytesClientExpectsToReceive = reader.optionalInteger("countOfBytesClientExpectsToReceive")
        expectedDigest = reader.optionalObject("expectedDigest")
        maximumContentLength = reader.optionalInteger("maximumContentLength")
        ifNoneMatch = reader.optionalString("ifNoneMatch")
        acceptableStatusCodes = reader.strings("acceptableStatusCodes", default: TaskCreation.standardStatusCodes)
        failOnHTTPError = reader.bool("failOnHTTPError", default: false)
        destination = reader.optionalObject("destination")
    }
}

extension SessionTask: JSONWritable {
    /// Writes an object with all members, ``existing`` only where it is true.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("taskIdentifier", taskIdentifier)
            writer.member("kind", kind)
            writer.member("state", state)
            writer.member("phase", phase)
            writer.member("waitingFor", waitingFor)
            writer.member("outcome", outcome)
            writer.member("originalRequest", originalRequest.redacted())
            writer.member("currentRequest", currentRequest?.redacted())
            writer.member("redirects", redirects)
            writer.member("response", response)
            writer.member("priority", priority)
            writer.member("countOfBytesReceived", countOfBytesReceived)
            writer.member("countOfBytesSent", countOfBytesSent)
            writer.member("countOfBytesExpectedToReceive", countOfBytesExpectedToReceive)
            writer.member("countOfBytesExpectedToSend", countOfBytesExpectedToSend)
            writer.member("progress", progress)
            writer.member("attempts", attempts)
            writer.member("error", error)
            writer.member("content", content)
            writer.member("createdAt", createdAt)
            writer.member("startedAt", startedAt)
            writer.member("completedAt", completedAt)
            writer.member("revision", revision)
            writeGivenMembers(to: &writer)
            writer.member("retryOf", retryOf)
            if existing { writer.member("existing", true) }
        }
    }

    private func writeGivenMembers(to writer: inout JSONWriter) {
        writer.member("clientTaskId", clientTaskId)
        writer.member("group", group)
        writer.member("taskDescription", taskDescription)
        writer.member("metadata", metadata)
        writer.member("body", body)
        writer.member("earliestBeginDate", earliestBeginDate)
        writer.member("confirmBeforeStart", confirmBeforeStart)
        writer.member("countOfBytesClientExpectsToSend", countOfBytesClientExpectsToSend)
        writer.member("countOfBytesClientExpectsToReceive", countOfBytesClientExpectsToReceive)
        writer.member("expectedDigest", expectedDigest)
        writer.member("maximumContentLength", maximumContentLength)
        writer.member("ifNoneMatch", ifNoneMatch)
        writer.member("acceptableStatusCodes", acceptableStatusCodes)
        writer.member("failOnHTTPError", failOnHTTPError)
        writer.member("destination", destination)
    }
}
