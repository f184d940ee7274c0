/// The credential that would be used, without its secret.
public struct ProposedCredential: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Whose it is.
    public var user: String?

    /// Makes one.
    public init(user: String? = nil) {
        self.user = user
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        user = reader.optionalString("user")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { $0.member("user", user) }
    }
}

/// The data of `task.didReceiveChallenge`: a question for a credential.
public struct AuthenticationChallenge: Sendable, Hashable, JSONWritable, JSONReadable {
    /// What the answer goes to.
    public var questionId: String
    /// Who asks.
    public var protectionSpace: ProtectionSpace
    /// How many tasks of the session waited for the answer when the event was read.
    public var taskCount: Int64
    /// How many credentials were refused before.
    public var previousFailureCount: Int64
    /// What would be used.
    public var proposedCredential: ProposedCredential?
    /// The answer that asked.
    public var failureResponse: TaskResponse?
    /// When the question ends unanswered.
    public var deadline: String

    /// Makes one.
    public init(
        questionId: String, protectionSpace: ProtectionSpace, taskCount: Int64 = 1, previousFailureCount: Int64,
        proposedCredential: ProposedCredential? = nil, failureResponse: TaskResponse? = nil, deadline: String
    ) {
        self.questionId = questionId
        self.protectionSpace = protectionSpace
        self.taskCount = taskCount
        self.previousFailureCount = previousFailureCount
        self.proposedCredential = proposedCredential
        self.failureResponse = failureResponse
        self.deadline = deadline
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        questionId = reader.string("questionId")
        protectionSpace = reader.object("protectionSpace")
        taskCount = reader.integer("taskCount")
        previousFailureCount = reader.integer("previousFailureCount")
        proposedCredential = reader.optionalObject("proposedCredential")
        failureResponse = reader.optionalObject("failureResponse")
        deadline = reader.string("deadline")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("questionId", questionId)
            writer.member("protectionSpace", protectionSpace)
            writer.member("taskCount", taskCount)
            writer.member("previousFailureCount", previousFailureCount)
            writer.member("proposedCredential", proposedCredential)
            writer.member("failureResponse", failureResponse)
            writer.member("deadline", deadline)
        }
    }
}

/// The data of `task.willBeginDelayedRequest`: a question whether a request may start.
public struct DelayedRequest: Sendable, Hashable, JSONWritable, JSONReadable {
    /// What the answer goes to.
    public var questionId: String
    /// The request about to start.
    public var request: TransferRequest
    /// When the question ends unanswered.
    public var deadline: String

    /// Makes one.
    public init(questionId: String, request: TransferRequest, deadline: String) {
        self.questionId = questionId
        self.request = request
        self.deadline = deadline
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        questionId = reader.string("questionId")
        request = reader.object("request")
        deadline = reader.string("deadline")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("questionId", questionId)
            writer.member("request", request)
            writer.member("deadline", deadline)
        }
    }
}
