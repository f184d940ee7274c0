/// The body of a webhook. All attempts send the same bytes.
public struct WebhookPayload: Shape {
    /// `session.handleEvents`, `app.performFetch`, `app.backgroundRefreshStatusDidChange` or `webhook.ping`.
    public var type = ""
    public var timestamp = ""
    /// The data, by type.
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
        /// The session with unhandled events.
        public var sessionIdentifier = ""
        /// `tasksFinished`, `authenticationRequired`, `delayedRequestReady`, `tasksStalled`, `setPublished`, `setFailed`.
        public var reasons: [String] = []
        /// The last event that the launch covers.
        public var lastSeq: Int64 = 0
        /// The number of unacknowledged events.
        public var pendingEvents: Int64 = 0
        /// The completions among these events.
        public var taskCounts = OutcomeCounts()
        /// The URL of these events.
        public var eventsURL = ""
        /// The URL of the completion.
        public var completionURL = ""
        /// The time of the last attempt.
        public var expiresAt = ""
        /// The first of these events, up to the app's `includeEvents`.
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
        /// The deadline of the result.
        public var deadline = ""
        /// The result of the previous fetch.
        public var previousResult: LaunchCompletion.FetchResult?
        /// The URL of the completion.
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
        /// Whether the app may now be woken to fetch.
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
