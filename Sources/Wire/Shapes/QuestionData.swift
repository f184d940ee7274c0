/// The credential that would be used, without its secret.
public struct ProposedCredential: Shape {
    /// Whose it is.
    public var user: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.nullable("user", &user)
    }
}

/// The data of `task.didReceiveChallenge`: a question for a credential.
public struct AuthenticationChallenge: Shape {
    public var questionId = ""
    /// Who asks.
    public var protectionSpace = ProtectionSpace()
    /// How many tasks of the session waited for the answer when the event was read.
    public var taskCount: Int64 = 1
    /// How many credentials were refused before.
    public var previousFailureCount: Int64 = 0
    /// The credential that would be used.
    public var proposedCredential: ProposedCredential?
    /// The response that asked for it.
    public var failureResponse: TaskResponse?
    /// When the question ends unanswered.
    public var deadline = ""

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("questionId", &questionId)
        members.member("protectionSpace", &protectionSpace)
        members.member("taskCount", &taskCount)
        members.member("previousFailureCount", &previousFailureCount)
        members.nullable("proposedCredential", &proposedCredential)
        members.nullable("failureResponse", &failureResponse)
        members.member("deadline", &deadline)
    }
}

/// The data of `task.willBeginDelayedRequest`: a question whether a request may start.
public struct DelayedRequest: Shape {
    public var questionId = ""
    /// The request about to start.
    public var request = TransferRequest()
    /// When the question ends unanswered.
    public var deadline = ""

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("questionId", &questionId)
        members.member("request", &request)
        members.member("deadline", &deadline)
    }
}
