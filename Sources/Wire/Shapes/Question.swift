/// Where a question stands.
public struct QuestionState: WireName {
    /// The word.
    public let rawValue: String
    /// Makes a value of its word.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// Waits for its answer.
    public static let open: Self = "open"
    /// Has its answer.
    public static let answered: Self = "answered"
    /// Ended unanswered.
    public static let expired: Self = "expired"
    /// All of them.
    public static let known: [Self] = [.open, .answered, .expired]
}

/// A question as the service answers it: the data of its event, and where it stands.
public struct Question: Sendable, Hashable, JSONWritable, JSONReadable {
    /// What the answer goes to.
    public var questionId: String
    /// The event that told it.
    public var type: Event.Kind
    /// Where it stands.
    public var state: QuestionState
    /// The session.
    public var sessionIdentifier: String
    /// The task. Others may wait for the same answer.
    public var taskIdentifier: Int64
    /// How many tasks wait for the answer, or waited when it came: those of the session that met the same protection
    /// space.
    public var taskCount: Int64
    /// Who asks, for a challenge.
    public var protectionSpace: ProtectionSpace?
    /// How many credentials were refused before, for a challenge.
    public var previousFailureCount: Int64?
    /// What would be used.
    public var proposedCredential: ProposedCredential?
    /// The answer that asked.
    public var failureResponse: TaskResponse?
    /// The request about to start, for a delayed request.
    public var request: TransferRequest?
    /// How it was answered.
    public var disposition: Disposition?
    /// When it ends unanswered.
    public var deadline: String
    /// When it was asked.
    public var createdAt: String
    /// When it was answered.
    public var answeredAt: String?

    /// Makes one.
    public init(
        questionId: String, type: Event.Kind, state: QuestionState, sessionIdentifier: String, taskIdentifier: Int64,
        taskCount: Int64 = 1, protectionSpace: ProtectionSpace? = nil, previousFailureCount: Int64? = nil,
        proposedCredential: ProposedCredential? = nil, failureResponse: TaskResponse? = nil,
        request: TransferRequest? = nil, disposition: Disposition? = nil, deadline: String, createdAt: String,
        answeredAt: String? = nil
    ) {
        self.questionId = questionId
        self.type = type
        self.state = state
        self.sessionIdentifier = sessionIdentifier
        self.taskIdentifier = taskIdentifier
        self.taskCount = taskCount
        self.protectionSpace = protectionSpace
        self.previousFailureCount = previousFailureCount
        self.proposedCredential = proposedCredential
        self.failureResponse = failureResponse
        self.request = request
        self.disposition = disposition
        self.deadline = deadline
        self.createdAt = createdAt
        self.answeredAt = answeredAt
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        questionId = reader.string("questionId")
        type = reader.word("type")
        state = reader.word("state")
        sessionIdentifier = reader.string("sessionIdentifier")
        taskIdentifier = reader.integer("taskIdentifier")
        taskCount = reader.integer("taskCount")
        protectionSpace = reader.optionalObject("protectionSpace")
        previousFailureCount = reader.optionalInteger("previousFailureCount")
        proposedCredential = reader.optionalObject("proposedCredential")
        failureResponse = reader.optionalObject("failureResponse")
        request = reader.optionalObject("request")
        disposition = reader.optionalWord("disposition")
        deadline = reader.string("deadline")
        createdAt = reader.string("createdAt")
        answeredAt = reader.optionalString("answeredAt")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("questionId", questionId)
            writer.member("type", type)
            writer.member("state", state)
            writer.member("sessionIdentifier", sessionIdentifier)
            writer.member("taskIdentifier", taskIdentifier)
            writer.member("taskCount", taskCount)
            if let protectionSpace {
                writer.member("protectionSpace", protectionSpace)
                writer.member("previousFailureCount", previousFailureCount)
                writer.member("proposedCredential", proposedCredential)
                writer.member("failureResponse", failureResponse)
            }
            writer.memberIfPresent("request", request)
            writer.memberIfPresent("disposition", disposition)
            writer.member("deadline", deadline)
            writer.member("createdAt", createdAt)
            writer.member("answeredAt", answeredAt)
        }
    }
}

/// What is to be done about a question. The first four answer a challenge, the last three a delayed request.
public struct Disposition: WireName {
    /// The word.
    public let rawValue: String
    /// Makes a value of its word.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// Use the credential that comes with it.
    public static let useCredential: Self = "useCredential"
    /// Go on as if nobody had been asked.
    public static let performDefaultHandling: Self = "performDefaultHandling"
    /// End the task.
    public static let cancelAuthenticationChallenge: Self = "cancelAuthenticationChallenge"
    /// Try the next scheme offered.
    public static let rejectProtectionSpace: Self = "rejectProtectionSpace"
    /// Start the request as it is.
    public static let continueLoading: Self = "continueLoading"
    /// Start the request that comes with it.
    public static let useNewRequest: Self = "useNewRequest"
    /// End the task.
    public static let cancel: Self = "cancel"
    /// All of them.
    public static let known: [Self] = [
        .useCredential, .performDefaultHandling, .cancelAuthenticationChallenge, .rejectProtectionSpace,
        .continueLoading, .useNewRequest, .cancel,
    ]
}
