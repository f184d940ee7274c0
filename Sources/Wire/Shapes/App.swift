/// Whether a webhook is called.
public struct WebhookState: WireName {
    /// The word.
    public let rawValue: String
    /// Makes a value of its word.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// It is called.
    public static let enabled: Self = "enabled"
    /// The app has paused it; launches wait.
    public static let paused: Self = "paused"
    /// It answered 410, failed for days, or was disabled; launches wait.
    public static let disabled: Self = "disabled"
    /// All of them.
    public static let known: [Self] = [.enabled, .paused, .disabled]
}

/// Whether Background App Refresh is allowed, as `UIBackgroundRefreshStatus` tells it.
public struct BackgroundRefreshStatus: WireName {
    /// The word.
    public let rawValue: String
    /// Makes a value of its word.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// It is.
    public static let available: Self = "available"
    /// It is not for this app.
    public static let denied: Self = "denied"
    /// It is not, and the app cannot change that.
    public static let restricted: Self = "restricted"
    /// All of them.
    public static let known: [Self] = [.available, .denied, .restricted]
}

/// Where and how an app is launched.
public struct Webhook: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Where the app is called.
    public var url: String?
    /// Whether it is.
    public var state: WebhookState
    /// Why it is disabled.
    public var disabledReason: String?
    /// How many of the first pending events travel with a launch.
    public var includeEvents: Int64
    /// Seconds from the 2xx to the completion.
    public var launchDeadline: Double
    /// `whsec_…`, only in the answer that made the app.
    public var secret: String?

    /// Makes one.
    public init(
        url: String? = nil, state: WebhookState, disabledReason: String? = nil, includeEvents: Int64,
        launchDeadline: Double, secret: String? = nil
    ) {
        self.url = url
        self.state = state
        self.disabledReason = disabledReason
        self.includeEvents = includeEvents
        self.launchDeadline = launchDeadline
        self.secret = secret
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        url = reader.optionalString("url")
        state = reader.word("state")
        disabledReason = reader.optionalString("disabledReason")
        includeEvents = reader.integer("includeEvents")
        launchDeadline = reader.number("launchDeadline")
        secret = reader.optionalString("secret")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("url", url)
            writer.member("state", state)
            writer.member("disabledReason", disabledReason)
            writer.member("includeEvents", includeEvents)
            writer.member("launchDeadline", launchDeadline)
            writer.memberIfPresent("secret", secret)
        }
    }
}

/// The bounds of one app.
public struct AppLimits: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Tasks that are not completed.
    public var tasks: Int64
    /// Bytes of contents and bodies; `nil` for no limit.
    public var storedBytes: Int64?

    /// Makes one.
    public init(tasks: Int64, storedBytes: Int64? = nil) {
        self.tasks = tasks
        self.storedBytes = storedBytes
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        tasks = reader.integer("tasks")
        storedBytes = reader.optionalInteger("storedBytes")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("tasks", tasks)
            writer.member("storedBytes", storedBytes)
        }
    }
}

/// What an app has of what is bounded.
public struct AppUsage: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Tasks that are not completed.
    public var tasks: Int64
    /// Bytes of contents and bodies.
    public var storedBytes: Int64

    /// Makes one.
    public init(tasks: Int64, storedBytes: Int64) {
        self.tasks = tasks
        self.storedBytes = storedBytes
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        tasks = reader.integer("tasks")
        storedBytes = reader.integer("storedBytes")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("tasks", tasks)
            writer.member("storedBytes", storedBytes)
        }
    }
}

/// An app as the service answers it.
public struct App: Sendable, Hashable, JSONWritable, JSONReadable {
    /// The app's identifier.
    public var identifier: String
    /// `active` or `forceQuit`.
    public var state: String
    /// Where and how it is launched.
    public var webhook: Webhook
    /// Whether it may be woken to fetch: the stricter of the operator's words.
    public var backgroundRefreshStatus: BackgroundRefreshStatus
    /// Its bounds.
    public var limits: AppLimits
    /// What it has.
    public var usage: AppUsage
    /// When it was created.
    public var createdAt: String
    /// Grows with every change.
    public var revision: Int64
    /// Its first key, only in the answer that made it.
    public var apiKey: String?

    /// Makes one.
    public init(
        identifier: String, state: String, webhook: Webhook, backgroundRefreshStatus: BackgroundRefreshStatus,
        limits: AppLimits, usage: AppUsage, createdAt: String, revision: Int64, apiKey: String? = nil
    ) {
        self.identifier = identifier
        self.state = state
        self.webhook = webhook
        self.backgroundRefreshStatus = backgroundRefreshStatus
        self.limits = limits
        self.usage = usage
        self.createdAt = createdAt
        self.revision = revision
        self.apiKey = apiKey
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        identifier = reader.string("identifier")
        state = reader.string("state")
        webhook = reader.object("webhook")
        backgroundRefreshStatus = reader.word("backgroundRefreshStatus")
        limits = reader.object("limits")
        usage = reader.object("usage")
        createdAt = reader.string("createdAt")
        revision = reader.integer("revision")
        apiKey = reader.optionalString("apiKey")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("identifier", identifier)
            writer.member("state", state)
            writer.member("webhook", webhook)
            writer.member("backgroundRefreshStatus", backgroundRefreshStatus)
            writer.member("limits", limits)
            writer.member("usage", usage)
            writer.member("createdAt", createdAt)
            writer.member("revision", revision)
            writer.memberIfPresent("apiKey", apiKey)
        }
    }
}
