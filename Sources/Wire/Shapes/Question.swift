/// The state of a question.
public struct QuestionState: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// Waits for its answer.
    public static let open: Self = "open"
    /// Has its answer.
    public static let answered: Self = "answered"
    /// Ended unanswered.
    public static let expired: Self = "expired"
    public static let known: [Self] = [.open, .answered, .expired]
}

/// A question as the service returns it: the data of its event, and its state.
public struct Question: Shape {
    public var questionId = ""
    /// The type of the event that asked the question.
    public var type = Event.Kind()
    public var state = QuestionState()
    public var sessionIdentifier = ""
    /// The task that asked first. Other tasks may wait for the same answer.
    public var taskIdentifier: Int64 = 0
    /// The number of tasks that wait for the answer, or waited when it arrived: tasks of the session with the same
    /// protection space.
    public var taskCount: Int64 = 1
    /// The requester of a challenge.
    public var protectionSpace: ProtectionSpace?
    /// The number of refused credentials before a challenge.
    public var previousFailureCount: Int64?
    /// The credential that would be used by default.
    public var proposedCredential: ProposedCredential?
    /// The response with the challenge.
    public var failureResponse: TaskResponse?
    /// The request about to start, for a delayed request.
    public var request: TransferRequest?
    public var disposition: Disposition?
    /// The time at which the question expires.
    public var deadline = ""
    /// The time of the question.
    public var createdAt = ""
    public var answeredAt: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("questionId", &questionId)
        members.member("type", &type)
        members.member("state", &state)
        members.member("sessionIdentifier", &sessionIdentifier)
        members.member("taskIdentifier", &taskIdentifier)
        members.member("taskCount", &taskCount)
        members.optional("protectionSpace", &protectionSpace)
        if protectionSpace != nil {
            members.nullable("previousFailureCount", &previousFailureCount)
            members.nullable("proposedCredential", &proposedCredential)
            members.nullable("failureResponse", &failureResponse)
        }
        members.optional("request", &request)
        members.optional("disposition", &disposition)
        members.member("deadline", &deadline)
        members.member("createdAt", &createdAt)
        members.nullable("answeredAt", &answeredAt)
    }
}

/// The answer to a question. The first four answer a challenge, the last three a delayed request.
public struct Disposition: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// Use the credential of the answer.
    public static let useCredential: Self = "useCredential"
    /// Continue without a credential of the answer.
    public static let performDefaultHandling: Self = "performDefaultHandling"
    /// End the task.
    public static let cancelAuthenticationChallenge: Self = "cancelAuthenticationChallenge"
    /// Try the next scheme offered.
    public static let rejectProtectionSpace: Self = "rejectProtectionSpace"
    /// Start the request as it is.
    public static let continueLoading: Self = "continueLoading"
    /// Start the request of the answer.
    public static let useNewRequest: Self = "useNewRequest"
    /// End the task.
    public static let cancel: Self = "cancel"
    public static let known: [Self] = [
        .useCredential, .performDefaultHandling, .cancelAuthenticationChallenge, .rejectProtectionSpace,
        .continueLoading, .useNewRequest, .cancel,
    ]
}
