/// A task as the service answers it.
@dynamicMemberLookup
public struct SessionTask: Shape {
    /// Its number in the session, from 1.
    public var taskIdentifier: Int64 = 0
    /// The identifier of its session.
    public var sessionIdentifier = ""
    public var kind = TaskKind()
    public var state = TaskState()
    /// What it is doing, while it runs.
    public var phase: TaskPhase?
    /// Why it is not moving.
    public var waitingFor: [WaitingReason] = []
    /// How it ended; `nil` until then.
    public var outcome: TaskOutcome?
    /// As it was given, without secrets.
    public var originalRequest = TransferRequest()
    /// After redirects and changes, without secrets.
    public var currentRequest: TransferRequest?
    public var redirects: [Redirect] = []
    /// The last answer of the server.
    public var response: TaskResponse?
    /// Bytes of content.
    public var countOfBytesReceived: Int64 = 0
    /// Bytes of the body.
    public var countOfBytesSent: Int64 = 0
    /// Bytes of content that came and had to be fetched once more: they were not recorded before a kill, or could not be
    /// continued.
    public var countOfBytesFetchedTwice: Int64 = 0
    /// Bytes of content, where that is known.
    public var countOfBytesExpectedToReceive: Int64?
    /// Bytes of the body, where that is known.
    public var countOfBytesExpectedToSend: Int64?
    public var progress = TaskProgress()
    /// How far each part is of a content that comes in segments, while the task runs.
    public var segmentStates: [SegmentState]?
    public var attempts = TaskAttempts()
    public var error: TaskError?
    /// How it came by its content; `nil` where the cache had no part in it.
    public var cacheStatus: CacheStatus?
    /// Its stored bytes.
    public var content: Content?
    public var createdAt = ""
    /// When its first attempt began.
    public var startedAt: String?
    public var completedAt: String?
    /// Grows with every change but progress.
    public var revision: Int64 = 0

    /// What was said about it when it was created, and changed since.
    public var terms = TaskTerms()
    /// What it sends; bytes that were given as the body they were stored as.
    public var body: BodySource?
    /// The task that this one repeats.
    public var retryOf: Int64?
    /// In the answer to a creation: whether it was there before.
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

    /// Secrets are never written.
    public func write(to writer: inout JSONWriter) {
        var members = self
        members.originalRequest = originalRequest.redacted()
        members.currentRequest = currentRequest?.redacted()
        writer.object { members.visit(&$0) }
    }
}
