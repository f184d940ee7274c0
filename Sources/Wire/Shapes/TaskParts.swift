/// The last response of a task's server, as in `URLResponse`.
public struct TaskResponse: Shape {
    public var statusCode: Int64 = 0
    /// The header fields. Values of repeated fields are joined with commas.
    public var headers = StringMap()
    /// The names of header fields that were dropped because all together exceeded 16 KiB.
    public var droppedHeaders: [String] = []
    /// The media type without its parameters.
    public var mimeType: String?
    /// The announced length in bytes.
    public var expectedContentLength: Int64?
    public var suggestedFilename: String?
    /// The URL of the response, after redirects.
    public var url = ""

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("statusCode", &statusCode)
        members.defaulted("headers", &headers)
        members.sparse("droppedHeaders", &droppedHeaders, unless: [])
        members.nullable("mimeType", &mimeType)
        members.nullable("expectedContentLength", &expectedContentLength)
        members.nullable("suggestedFilename", &suggestedFilename)
        members.member("url", &url)
    }
}

/// The error of a failed task, with the codes and names of Apple's `NSURLErrorDomain`.
public struct TaskError: Error, Shape {
    /// The cause, as libcurl or the service found it.
    public struct Underlying: Shape {
        /// `curl` or `urlsessiond`.
        public var domain = ""
        /// A number of libcurl's, or a word of the service's.
        public var code = JSON.null
        public var message = ""

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("domain", &domain)
            members.member("code", &code)
            members.member("message", &message)
        }
    }

    /// The domain of all these errors.
    public static let domain = "NSURLErrorDomain"

    /// Apple's code, such as -1001.
    public var code: Int64 = 0
    /// Apple's name of the code, such as `timedOut`.
    public var name = ""
    /// A description, for people.
    public var localizedDescription = ""
    /// The URL that failed.
    public var failingURL: String?
    /// The reason of a cancellation by the service: 0 force quit, 1 refresh disabled, 2 insufficient resources.
    public var backgroundTaskCancelledReason: Int64?
    /// The reason why there is no network: 0 cellular, 1 expensive, 2 constrained.
    public var networkUnavailableReason: Int64?
    /// `egress` if the egress policy refused.
    public var policy: String?
    public var underlying: Underlying?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        var domain = Self.domain
        members.defaulted("domain", &domain)
        members.member("code", &code)
        members.member("name", &name)
        members.member("localizedDescription", &localizedDescription)
        members.nullable("failingURL", &failingURL)
        members.optional("backgroundTaskCancelledReason", &backgroundTaskCancelledReason)
        members.optional("networkUnavailableReason", &networkUnavailableReason)
        members.optional("policy", &policy)
        members.optional("underlying", &underlying)
    }
}

/// One followed redirect.
public struct Redirect: Shape {
    /// The status of the redirect.
    public var statusCode: Int64 = 0
    /// The redirected URL.
    public var from = ""
    /// The target of the redirect.
    public var to = ""

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("statusCode", &statusCode)
        members.member("from", &from)
        members.member("to", &to)
    }
}

/// A reason why a running task waits.
public struct WaitingReason: Shape {
    /// The kind, for programs.
    public var kind = ""
    /// A description, for people.
    public var detail = ""
    /// The end of the wait, if known.
    public var until: String?
    /// The question that the app has to answer. Other tasks may wait for it as well.
    public var questionId: String?
    /// The task whose transfer this task waits for, and its session.
    public var taskIdentifier: Int64?
    public var sessionIdentifier: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("kind", &kind)
        members.member("detail", &detail)
        members.optional("until", &until)
        members.optional("questionId", &questionId)
        members.optional("taskIdentifier", &taskIdentifier)
        members.optional("sessionIdentifier", &sessionIdentifier)
    }
}

/// The progress of a task.
public struct TaskProgress: Shape {
    /// 0 to 1, if the length is known.
    public var fractionCompleted: Double?
    /// Bytes per second.
    public var throughput: Double?
    /// Remaining seconds.
    public var estimatedTimeRemaining: Double?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.nullable("fractionCompleted", &fractionCompleted)
        members.nullable("throughput", &throughput)
        members.nullable("estimatedTimeRemaining", &estimatedTimeRemaining)
    }
}

/// A task's attempts.
public struct TaskAttempts: Shape {
    /// One ended attempt.
    public struct Attempt: Shape {
        public var startedAt = ""
        public var endedAt: String?
        public var statusCode: Int64?
        /// The error that ended it early.
        public var error: TaskError?

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("startedAt", &startedAt)
            members.nullable("endedAt", &endedAt)
            members.nullable("statusCode", &statusCode)
            members.nullable("error", &error)
        }
    }

    /// The number of attempts.
    public var count: Int64 = 0
    /// The last attempt.
    public var last: Attempt?
    public var nextAt: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("count", &count)
        members.nullable("last", &last)
        members.nullable("nextAt", &nextAt)
    }
}
