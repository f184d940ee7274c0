/// A launch as the service answers it: one webhook and all tries to deliver it.
public struct Launch: Shape {
    /// Where a launch stands.
    public struct State: WireName {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        /// Waits for its next attempt.
        public static let pending: Self = "pending"
        public static let delivering: Self = "delivering"
        /// Was answered with a 2xx and waits for its completion.
        public static let launched: Self = "launched"
        /// The app has called the completion.
        public static let completed: Self = "completed"
        /// A client attached by itself.
        public static let superseded: Self = "superseded"
        /// All attempts failed.
        public static let exhausted: Self = "exhausted"
        /// Waits for a webhook that can be called.
        public static let parked: Self = "parked"
        public static let known: [Self] = [
            .pending, .delivering, .launched, .completed, .superseded, .exhausted, .parked,
        ]
    }

    /// The `lnch_…` that names it, and its webhook, over all attempts.
    public var launchId = ""
    /// `session.handleEvents` or `app.performFetch`.
    public var kind = ""
    /// Where it stands.
    public var state = State.pending
    /// The session, unless it is a fetch.
    public var sessionIdentifier: String?
    /// `tasksFinished`, `authenticationRequired`, `delayedRequestReady`, `tasksStalled`.
    public var reasons: [String] = []
    /// The last event it tells of.
    public var lastSeq: Int64?
    public var createdAt = ""
    public var nextAttemptAt: String?
    /// When the app called the completion.
    public var completedAt: String?
    /// All tries so far.
    public var attempts: [LaunchAttempt] = []

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("launchId", &launchId)
        members.member("kind", &kind)
        members.member("state", &state)
        members.nullable("sessionIdentifier", &sessionIdentifier)
        members.member("reasons", &reasons)
        members.nullable("lastSeq", &lastSeq)
        members.member("createdAt", &createdAt)
        members.nullable("nextAttemptAt", &nextAttemptAt)
        members.nullable("completedAt", &completedAt)
        members.member("attempts", &attempts)
    }
}

/// One try to send a webhook. Also the answer to `POST /v1/app/webhook/ping`.
public struct LaunchAttempt: Shape {
    /// The `error` of a try that was answered with 2xx, but not followed by a completion by the launch's deadline.
    public static let notCompleted = "notCompleted"

    /// Which try it was, from 1.
    public var number: Int64 = 0
    public var startedAt = ""
    /// How many seconds it took.
    public var duration: Double?
    public var statusCode: Int64?
    /// Why the try failed, in words; ``notCompleted`` where a 2xx was not followed by a completion in time.
    public var error: String?
    /// The beginning of the receiver's answer.
    public var excerpt: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("number", &number)
        members.member("startedAt", &startedAt)
        members.nullable("duration", &duration)
        members.nullable("statusCode", &statusCode)
        members.nullable("error", &error)
        members.nullable("excerpt", &excerpt)
    }
}

/// What `POST /v1/launches/redeliver` takes: which launches are meant, those that match every member given.
public struct LaunchSelection: Shape {
    /// Only those created after this time (RFC 3339).
    public var createdAfter = ""
    /// Only those created before this time (RFC 3339).
    public var createdBefore: String?
    public var session: String?
    /// Any of them.
    public var state: OneOrMore<Launch.State>?

    public init() {}

    public init(createdAfter: String) { self.createdAfter = createdAfter }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("createdAfter", &createdAfter, .timestamp)
        members.optional("createdBefore", &createdBefore, .timestamp)
        members.optional("session", &session, .identifier)
        members.optional("state", &state)
    }
}

/// What `POST /v1/launches/{id}/complete` takes.
public struct LaunchCompletion: Shape {
    /// What came of a fetch.
    public struct FetchResult: WireName {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        /// There was something new.
        public static let newData: Self = "newData"
        /// There was nothing new.
        public static let noData: Self = "noData"
        /// It did not work.
        public static let failed: Self = "failed"
        public static let known: [Self] = [.newData, .noData, .failed]
    }

    /// Acknowledges through this event; `nil` for the launch's `lastSeq`.
    public var through: Int64?
    /// Of the client's attachment, where it holds one.
    public var epoch: Int64?
    /// What came of a fetch.
    public var result: FetchResult?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("through", &through, 0 ... .max)
        members.optional("epoch", &epoch, 1 ... .max)
        members.optional("result", &result)
    }

    public func check(_ reader: inout ObjectReader) {
        guard result != nil, through != nil || epoch != nil else { return }
        reader.report("result", "A fetch has a result, a session has through and epoch: not both.")
    }
}
