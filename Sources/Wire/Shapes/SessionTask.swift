/// A task as the service returns it.
@dynamicMemberLookup
public struct SessionTask: Shape {
    /// Its number in the session, from 1.
    public var taskIdentifier: Int64 = 0
    /// The identifier of its session.
    public var sessionIdentifier = ""
    public var kind = TaskKind()
    public var state = TaskState()
    /// The phase of a running task.
    public var phase: TaskPhase?
    /// The reasons why it waits.
    public var waitingFor: [WaitingReason] = []
    /// The outcome; `nil` until the task is completed.
    public var outcome: TaskOutcome?
    /// The request before redirects, without secrets. A change of the request replaces it.
    public var originalRequest = TransferRequest()
    /// The request after redirects, without secrets.
    public var currentRequest: TransferRequest?
    public var redirects: [Redirect] = []
    /// The server's last response. Before the end of the task, the one that a download's bytes belong to, if the node
    /// that the client reads from performs the transfer.
    public var response: TaskResponse?
    /// Bytes of content.
    public var countOfBytesReceived: Int64 = 0
    /// Bytes of the body.
    public var countOfBytesSent: Int64 = 0
    /// Bytes of content that were fetched again, because they were not recorded before a kill or could not be resumed.
    public var countOfBytesFetchedTwice: Int64 = 0
    /// The expected bytes of content, if known.
    public var countOfBytesExpectedToReceive: Int64?
    /// The expected bytes of the body, if known.
    public var countOfBytesExpectedToSend: Int64?
    public var progress = TaskProgress()
    /// The states of the segments, while the task runs.
    public var segmentStates: [SegmentState]?
    public var attempts = TaskAttempts()
    public var error: TaskError?
    /// The part of the cache in the content; `nil` for none.
    public var cacheStatus: CacheStatus?
    /// The stored content.
    public var content: Content?
    public var createdAt = ""
    /// The beginning of the first attempt.
    public var startedAt: String?
    public var completedAt: String?
    /// Increases with every change but progress.
    public var revision: Int64 = 0

    /// The terms that the app set at creation or changed since.
    public var terms = TaskTerms()
    /// The stored body of an upload, whatever source the task was created with.
    public var body: BodySource?
    /// The completed task that this task repeats.
    public var retryOf: Int64?
    /// In the response to a creation: whether the task existed before.
    public var existing = false

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("taskIdentifier", &taskIdentifier)
        members.defaulted("sessionIdentifier", &sessionIdentifier)
        members.member("kind", &kind)
        members.member("state", &state)
        members.nullable("phase", &phase)
        members.defaulted("waitingFor", &waitingFor)
        members.nullable("outcome", &outcome)
        members.member("originalRequest", &originalRequest)
        members.nullable("currentRequest", &currentRequest)
        members.defaulted("redirects", &redirects)
        members.nullable("response", &response)
        members.member("countOfBytesReceived", &countOfBytesReceived)
        members.member("countOfBytesSent", &countOfBytesSent)
        members.member("countOfBytesFetchedTwice", &countOfBytesFetchedTwice)
        members.nullable("countOfBytesExpectedToReceive", &countOfBytesExpectedToReceive)
        members.nullable("countOfBytesExpectedToSend", &countOfBytesExpectedToSend)
        members.defaulted("progress", &progress)
        members.nullable("segmentStates", &segmentStates)
        members.defaulted("attempts", &attempts)
        members.nullable("error", &error)
        members.nullable("cacheStatus", &cacheStatus)
        members.nullable("content", &content)
        members.member("createdAt", &createdAt)
        members.nullable("startedAt", &startedAt)
        members.nullable("completedAt", &completedAt)
        members.member("revision", &revision)
        terms.visit(&members, isShown: true)
        members.nullable("body", &body)
        members.nullable("retryOf", &retryOf)
        members.sparse("existing", &existing, unless: false)
    }

    public subscript<Value>(dynamicMember member: WritableKeyPath<TaskTerms, Value>) -> Value {
        get { terms[keyPath: member] }
        set { terms[keyPath: member] = newValue }
    }

    /// Writes the task without secrets.
    public func write(to writer: inout JSONWriter) {
        var members = self
        members.originalRequest = originalRequest.redacted()
        members.currentRequest = currentRequest?.redacted()
        writer.object { members.visit(&$0) }
    }
}
