/// A task as the service answers it.
public struct SessionTask: Shape {
    /// Its number in the session, from 1.
    public var taskIdentifier: Int64 = 0
    /// What it does.
    public var kind = TaskKind()
    /// Where it stands.
    public var state = TaskState()
    /// What a running task is doing.
    public var phase: TaskPhase?
    /// Why it is not moving.
    public var waitingFor: [WaitingReason] = []
    /// How it ended.
    public var outcome: TaskOutcome?
    /// As it was given, without secrets.
    public var originalRequest = TransferRequest()
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
    public var createdAt = ""
    /// When its first attempt began.
    public var startedAt: String?
    /// When it ended.
    public var completedAt: String?
    /// Grows with every change but progress.
    public var revision: Int64 = 0

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

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("taskIdentifier", &taskIdentifier)
        members.member("kind", &kind)
        members.member("state", &state)
        members.nullable("phase", &phase)
        members.defaulted("waitingFor", &waitingFor)
        members.nullable("outcome", &outcome)
        members.member("originalRequest", &originalRequest)
        members.nullable("currentRequest", &currentRequest)
        members.defaulted("redirects", &redirects)
        members.nullable("response", &response)
        members.defaulted("priority", &priority)
        members.member("countOfBytesReceived", &countOfBytesReceived)
        members.member("countOfBytesSent", &countOfBytesSent)
        members.nullable("countOfBytesExpectedToReceive", &countOfBytesExpectedToReceive)
        members.nullable("countOfBytesExpectedToSend", &countOfBytesExpectedToSend)
        members.defaulted("progress", &progress)
        members.defaulted("attempts", &attempts)
        members.nullable("error", &error)
        members.nullable("content", &content)
        members.member("createdAt", &createdAt)
        members.nullable("startedAt", &startedAt)
        members.nullable("completedAt", &completedAt)
        members.member("revision", &revision)
        members.nullable("clientTaskId", &clientTaskId)
        members.nullable("group", &group)
        members.nullable("taskDescription", &taskDescription)
        members.defaulted("metadata", &metadata)
        members.nullable("body", &body)
        members.nullable("earliestBeginDate", &earliestBeginDate)
        members.defaulted("confirmBeforeStart", &confirmBeforeStart)
        members.nullable("countOfBytesClientExpectsToSend", &countOfBytesClientExpectsToSend)
        members.nullable("countOfBytesClientExpectsToReceive", &countOfBytesClientExpectsToReceive)
        members.nullable("expectedDigest", &expectedDigest)
        members.nullable("maximumContentLength", &maximumContentLength)
        members.nullable("ifNoneMatch", &ifNoneMatch)
        members.defaulted("acceptableStatusCodes", &acceptableStatusCodes)
        members.defaulted("failOnHTTPError", &failOnHTTPError)
        members.nullable("destination", &destination)
        members.nullable("retryOf", &retryOf)
        members.sparse("existing", &existing, unless: false)
    }

    /// Secrets are never written.
    public func write(to writer: inout JSONWriter) {
        var members = self
        members.originalRequest = originalRequest.redacted()
        members.currentRequest = currentRequest?.redacted()
        writer.object { members.visit(&$0) }
    }
}
