/// The body of a webhook. It is the same bytes over all attempts.
public struct WebhookPayload: Sendable, Hashable, JSONWritable, JSONReadable {
    /// `session.handleEvents`, `app.performFetch`, `app.backgroundRefreshStatusDidChange` or `webhook.ping`.
    public var type: String
    /// When it was made.
    public var timestamp: String
    /// What it says, by its type.
    public var data: JSONText

    /// Makes one.
    public init(type: String, timestamp: String, data: JSONText) {
        self.type = type
        self.timestamp = timestamp
        self.data = data
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        type = reader.string("type")
        timestamp = reader.string("timestamp")
        data = reader.text("data")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("type", type)
            writer.member("timestamp", timestamp)
            writer.member("data", data)
        }
    }
}

extension WebhookPayload {
    /// Makes the body of a webhook.
    public init(timestamp: String, _ data: HandleEvents) {
        self.init(type: "session.handleEvents", timestamp: timestamp, data: JSONText(data))
    }

    /// Makes the body of a webhook.
    public init(timestamp: String, _ data: PerformFetch) {
        self.init(type: "app.performFetch", timestamp: timestamp, data: JSONText(data))
    }

    /// Makes the body of a webhook.
    public init(timestamp: String, _ data: RefreshStatusDidChange) {
        self.init(type: "app.backgroundRefreshStatusDidChange", timestamp: timestamp, data: JSONText(data))
    }

    /// Makes the body of a webhook.
    public init(timestamp: String, _ data: Ping) {
        self.init(type: "webhook.ping", timestamp: timestamp, data: JSONText(data))
    }

    /// The data of `session.handleEvents`.
    public struct HandleEvents: Sendable, Hashable, JSONWritable, JSONReadable {
        /// The launch; what completes it.
        public var launchId: String
        /// The app.
        public var app: String
        /// The session with something to handle.
        public var sessionIdentifier: String
        /// `tasksFinished`, `authenticationRequired`, `delayedRequestReady`.
        public var reasons: [String]
        /// The last event it tells of.
        public var lastSeq: Int64
        /// How many events are not acknowledged.
        public var pendingEvents: Int64
        /// The completions among them.
        public var taskCounts: OutcomeCounts
        /// Where they are read.
        public var eventsURL: String
        /// Where the launch is completed.
        public var completionURL: String
        /// When attempts end.
        public var expiresAt: String
        /// The first of them, as many as the app asked for.
        public var events: [Event]

        /// Makes one.
        public init(
            launchId: String, app: String, sessionIdentifier: String, reasons: [String], lastSeq: Int64,
            pendingEvents: Int64, taskCounts: OutcomeCounts, eventsURL: String, completionURL: String,
            expiresAt: String, events: [Event]
        ) {
            self.launchId = launchId
            self.app = app
            self.sessionIdentifier = sessionIdentifier
            self.reasons = reasons
            self.lastSeq = lastSeq
            self.pendingEvents = pendingEvents
            self.taskCounts = taskCounts
            self.eventsURL = eventsURL
            self.completionURL = completionURL
            self.expiresAt = expiresAt
            self.events = events
        }

        /// Reads the object.
        public init(reading reader: inout ObjectReader) {
            launchId = reader.string("launchId")
            app = reader.string("app")
            sessionIdentifier = reader.string("sessionIdentifier")
            reasons = reader.strings("reasons")
            lastSeq = reader.integer("lastSeq")
            pendingEvents = reader.integer("pendingEvents")
            taskCounts = reader.object("taskCounts")
            eventsURL = reader.string("eventsURL")
            completionURL = reader.string("completionURL")
            expiresAt = reader.string("expiresAt")
            events = reader.objects("events")
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("launchId", launchId)
                writer.member("app", app)
                writer.member("sessionIdentifier", sessionIdentifier)
                writer.member("reasons", reasons)
                writer.member("lastSeq", lastSeq)
                writer.member("pendingEvents", pendingEvents)
                writer.member("taskCounts", taskCounts)
                writer.member("eventsURL", eventsURL)
                writer.member("completionURL", completionURL)
                writer.member("expiresAt", expiresAt)
                writer.member("events", events)
            }
        }
    }

    /// The data of `app.performFetch`.
    public struct PerformFetch: Sendable, Hashable, JSONWritable, JSONReadable {
        /// The launch; what completes it.
        public var launchId: String
        /// The app.
        public var app: String
        /// By when the result is wanted.
        public var deadline: String
        /// What came of the last one.
        public var previousResult: LaunchCompletion.FetchResult?
        /// Where the result goes.
        public var completionURL: String

        /// Makes one.
        public init(
            launchId: String, app: String, deadline: String, previousResult: LaunchCompletion.FetchResult? = nil,
            completionURL: String
        ) {
            self.launchId = launchId
            self.app = app
            self.deadline = deadline
            self.previousResult = previousResult
            self.completionURL = completionURL
        }

        /// Reads the object.
        public init(reading reader: inout ObjectReader) {
            launchId = reader.string("launchId")
            app = reader.string("app")
            deadline = reader.string("deadline")
            previousResult = reader.optionalWord("previousResult")
            completionURL = reader.string("completionURL")
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("launchId", launchId)
                writer.member("app", app)
                writer.member("deadline", deadline)
                writer.member("previousResult", previousResult)
                writer.member("completionURL", completionURL)
            }
        }
    }

    /// The data of `app.backgroundRefreshStatusDidChange`.
    public struct RefreshStatusDidChange: Sendable, Hashable, JSONWritable, JSONReadable {
        /// The app.
        public var app: String
        /// Whether it may be woken to fetch now.
        public var backgroundRefreshStatus: BackgroundRefreshStatus

        /// Makes one.
        public init(app: String, backgroundRefreshStatus: BackgroundRefreshStatus) {
            self.app = app
            self.backgroundRefreshStatus = backgroundRefreshStatus
        }

        /// Reads the object.
        public init(reading reader: inout ObjectReader) {
            app = reader.string("app")
            backgroundRefreshStatus = reader.word("backgroundRefreshStatus")
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("app", app)
                writer.member("backgroundRefreshStatus", backgroundRefreshStatus)
            }
        }
    }

    /// The data of `webhook.ping`.
    public struct Ping: Sendable, Hashable, JSONWritable, JSONReadable {
        /// The app.
        public var app: String

        /// Makes one.
        public init(app: String) {
            self.app = app
        }

        /// Reads the object.
        public init(reading reader: inout ObjectReader) {
            app = reader.string("app")
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { $0.member("app", app) }
        }
    }

}
