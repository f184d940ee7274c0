/// A launch as the service returns it: one webhook and all attempts to deliver it.
public struct Launch: Shape {
    /// The state of a launch.
    public struct State: WireName {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        /// Waits for its next attempt.
        public static let pending: Self = "pending"
        public static let delivering: Self = "delivering"
        /// The receiver answered 2xx; the launch waits for its completion.
        public static let launched: Self = "launched"
        /// The app has completed the launch.
        public static let completed: Self = "completed"
        /// A client attached without the launch.
        public static let superseded: Self = "superseded"
        /// All attempts failed.
        public static let exhausted: Self = "exhausted"
        /// Waits for a usable webhook.
        public static let parked: Self = "parked"
        public static let known: [Self] = [
            .pending, .delivering, .launched, .completed, .superseded, .exhausted, .parked,
        ]
    }

    /// `lnch_…`, the identifier of the launch and of its webhook in all attempts.
    public var launchId = ""
    /// `session.handleEvents` or `app.performFetch`.
    public var kind = ""
    /// The current state.
    public var state = State.pending
    /// The session; `nil` for a fetch.
    public var sessionIdentifier: String?
    /// `tasksFinished`, `authenticationRequired`, `delayedRequestReady`, `tasksStalled`, `setPublished`, `setFailed`.
    public var reasons: [String] = []
    /// The last event that the launch covers.
    public var lastSeq: Int64?
    public var createdAt = ""
    public var nextAttemptAt: String?
    /// The time of the completion.
    public var completedAt: String?
    /// All attempts so far.
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

/// One attempt to send a webhook. Also the response to `POST /v1/app/webhook/ping`.
public struct LaunchAttempt: Shape {
    /// The `error` of an attempt with a 2xx but without a completion by the launch's deadline.
    public static let notCompleted = "notCompleted"

    /// The number of the attempt, from 1.
    public var number: Int64 = 0
    public var startedAt = ""
    /// The duration in seconds.
    public var duration: Double?
    public var statusCode: Int64?
    /// The error in words; ``notCompleted`` if no completion followed a 2xx in time.
    public var error: String?
    /// The beginning of the receiver's response.
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

/// The body of `POST /v1/launches/redeliver`: selects the launches that match every given member.
public struct LaunchSelection: Shape {
    /// Only launches that were created after this time (RFC 3339).
    public var createdAfter = ""
    /// Only launches that were created before this time (RFC 3339).
    public var createdBefore: String?
    public var session: String?
    /// Launches in one of these states.
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

/// The body of `POST /v1/launches/{id}/complete`.
public struct LaunchCompletion: Shape {
    /// The result of a fetch.
    public struct FetchResult: WireName {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        /// There was new data.
        public static let newData: Self = "newData"
        /// There was no new data.
        public static let noData: Self = "noData"
        /// The fetch failed.
        public static let failed: Self = "failed"
        public static let known: [Self] = [.newData, .noData, .failed]
    }

    /// The last event to acknowledge; `nil` for the launch's `lastSeq`.
    public var through: Int64?
    /// The epoch of the client's attachment, if it has one.
    public var epoch: Int64?
    /// The result of a fetch.
    public var result: FetchResult?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("through", &through, 0 ... .max)
        members.optional("epoch", &epoch, 1 ... .max)
        members.optional("result", &result)
    }

    public func check(_ reader: inout ObjectReader) {
        guard result != nil else { return }
        let detail = "A fetch has a result, a session has through and epoch: not both."
        if through != nil { reader.report("through", detail) }
        if epoch != nil { reader.report("epoch", detail) }
    }
}
