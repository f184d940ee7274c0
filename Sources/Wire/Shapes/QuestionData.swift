/// The credential that would be used by default, without its secret.
public struct ProposedCredential: Shape {
    /// The user of the credential.
    public var user: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.nullable("user", &user)
    }
}

/// The data of `task.didReceiveChallenge`: a question for a credential.
public struct AuthenticationChallenge: Shape {
    public var questionId = ""
    /// The requester.
    public var protectionSpace = ProtectionSpace()
    /// The number of tasks of the session that waited for the answer when the event was read.
    public var taskCount: Int64 = 1
    /// The number of refused credentials before.
    public var previousFailureCount: Int64 = 0
    /// The credential that would be used by default.
    public var proposedCredential: ProposedCredential?
    /// The response with the challenge.
    public var failureResponse: TaskResponse?
    /// The time at which the question expires.
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
    /// The time at which the question expires.
    public var deadline = ""

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("questionId", &questionId)
        members.member("request", &request)
        members.member("deadline", &deadline)
    }
}
