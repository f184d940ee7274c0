/// The body of a webhook. It is the same bytes over all attempts.
public struct WebhookPayload: Shape {
    /// `session.handleEvents`, `app.performFetch`, `app.backgroundRefreshStatusDidChange` or `webhook.ping`.
    public var type = ""
    public var timestamp = ""
    /// What it says, by its type.
    public var data = JSONText.emptyObject

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("type", &type)
        members.member("timestamp", &timestamp)
        members.member("data", &data)
    }
}

extension WebhookPayload {
    /// The data of `session.handleEvents`.
    public struct HandleEvents: Shape {
        public var launchId = ""
        public var app = ""
        /// The session with something to handle.
        public var sessionIdentifier = ""
        /// `tasksFinished`, `authenticationRequired`, `delayedRequestReady`, `tasksStalled`.
        public var reasons: [String] = []
        /// The last event it tells of.
        public var lastSeq: Int64 = 0
        /// How many events are not acknowledged.
        public var pendingEvents: Int64 = 0
        /// The completions among them.
        public var taskCounts = OutcomeCounts()
        /// Where they are read.
        public var eventsURL = ""
        /// Where the launch is completed.
        public var completionURL = ""
        /// When attempts end.
        public var expiresAt = ""
        /// The first of them, as many as the app asked for.
        public var events: [Event] = []

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("launchId", &launchId)
            members.member("app", &app)
            members.member("sessionIdentifier", &sessionIdentifier)
            members.member("reasons", &reasons)
            members.member("lastSeq", &lastSeq)
            members.member("pendingEvents", &pendingEvents)
            members.member("taskCounts", &taskCounts)
            members.member("eventsURL", &eventsURL)
            members.member("completionURL", &completionURL)
            members.member("expiresAt", &expiresAt)
            members.member("events", &events)
        }
    }

    /// The data of `app.performFetch`.
    public struct PerformFetch: Shape {
        public var launchId = ""
        public var app = ""
        /// By when the result is wanted.
        public var deadline = ""
        /// How the fetch before this one ended.
        public var previousResult: LaunchCompletion.FetchResult?
        /// Where the result goes.
        public var completionURL = ""

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("launchId", &launchId)
            members.member("app", &app)
            members.member("deadline", &deadline)
            members.nullable("previousResult", &previousResult)
            members.member("completionURL", &completionURL)
        }
    }

    /// The data of `app.backgroundRefreshStatusDidChange`.
    public struct RefreshStatusDidChange: Shape {
        public var app = ""
        /// Whether the app may be woken to fetch now.
        public var backgroundRefreshStatus = BackgroundRefreshStatus()

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("app", &app)
            members.member("backgroundRefreshStatus", &backgroundRefreshStatus)
        }
    }

    /// The data of `webhook.ping`.
    public struct Ping: Shape {
        public var app = ""

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("app", &app)
        }
    }
}
