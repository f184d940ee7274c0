/// What a request says about an app's webhook: only what is there changes.
public struct WebhookChange: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Where the app is called.
    public var url: Change<String>
    /// Whether it is.
    public var state: WebhookState?
    /// How many of the first pending events travel with a launch, 0 to 100.
    public var includeEvents: Int64?
    /// Seconds from the 2xx to the completion, 5 to 900.
    public var launchDeadline: Double?

    /// Makes a change.
    public init(
        url: Change<String> = .unchanged, state: WebhookState? = nil, includeEvents: Int64? = nil,
        launchDeadline: Double? = nil
    ) {
        self.url = url
        self.state = state
        self.includeEvents = includeEvents
        self.launchDeadline = launchDeadline
    }

    /// Reads a change.
    public init(reading reader: inout ObjectReader) {
        url = reader.change("url") { $0.optionalString("url", .url) }
        let hasState = reader.presence(of: "state") != .absent
        let word: WebhookState = reader.word("state", default: .enabled)
        state = hasState ? word : nil
        let hasCount = reader.presence(of: "includeEvents") != .absent
        let count = reader.integer("includeEvents", default: 0, in: 0...100)
        includeEvents = hasCount ? count : nil
        let hasDeadline = reader.presence(of: "launchDeadline") != .absent
        let seconds = reader.number("launchDeadline", default: 60, in: 5...900)
        launchDeadline = hasDeadline ? seconds : nil
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("url", url)
            writer.memberIfPresent("state", state)
            writer.memberIfPresent("includeEvents", includeEvents)
            writer.memberIfPresent("launchDeadline", launchDeadline)
        }
    }
}

/// What a request says about an app's bounds: only what is there changes.
public struct AppLimitsChange: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Tasks that are not completed.
    public var tasks: Int64?
    /// Bytes of contents and bodies; `null` for no limit.
    public var storedBytes: Change<Int64>

    /// Makes a change.
    public init(tasks: Int64? = nil, storedBytes: Change<Int64> = .unchanged) {
        self.tasks = tasks
        self.storedBytes = storedBytes
    }

    /// Reads a change.
    public init(reading reader: inout ObjectReader) {
        let hasTasks = reader.presence(of: "tasks") != .absent
        let count = reader.integer("tasks", default: 0, in: 0 ... .max)
        tasks = hasTasks ? count : nil
        storedBytes = reader.change("storedBytes") { $0.optionalInteger("storedBytes", in: 0 ... .max) }
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.memberIfPresent("tasks", tasks)
            writer.member("storedBytes", storedBytes)
        }
    }
}

/// What `POST /v1/apps` takes.
public struct AppCreation: Sendable, Hashable, JSONWritable, JSONReadable {
    /// The app's identifier.
    public var identifier: String
    /// Where and how it is launched.
    public var webhook: WebhookChange?
    /// Whether it may be woken to fetch.
    public var backgroundRefreshStatus: BackgroundRefreshStatus
    /// Its bounds.
    public var limits: AppLimitsChange?

    /// Makes a request.
    public init(
        identifier: String, webhook: WebhookChange? = nil,
        backgroundRefreshStatus: BackgroundRefreshStatus = .available,
        limits: AppLimitsChange? = nil
    ) {
        self.identifier = identifier
        self.webhook = webhook
        self.backgroundRefreshStatus = backgroundRefreshStatus
        self.limits = limits
    }

    /// Reads a request.
    public init(reading reader: inout ObjectReader) {
        identifier = reader.string("identifier", .identifier)
        webhook = reader.optionalObject("webhook")
        backgroundRefreshStatus = reader.word("backgroundRefreshStatus", default: .available)
        limits = reader.optionalObject("limits")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("identifier", identifier)
            writer.memberIfPresent("webhook", webhook)
            writer.member("backgroundRefreshStatus", backgroundRefreshStatus)
            writer.memberIfPresent("limits", limits)
        }
    }
}

/// What the operator's `PATCH /v1/apps/{app}` takes.
public struct AppChange: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Where and how it is launched.
    public var webhook: WebhookChange?
    /// Whether it may be woken to fetch.
    public var backgroundRefreshStatus: BackgroundRefreshStatus?
    /// Its bounds.
    public var limits: AppLimitsChange?

    /// Makes a change.
    public init(
        webhook: WebhookChange? = nil, backgroundRefreshStatus: BackgroundRefreshStatus? = nil,
        limits: AppLimitsChange? = nil
    ) {
        self.webhook = webhook
        self.backgroundRefreshStatus = backgroundRefreshStatus
        self.limits = limits
    }

    /// Reads a change.
    public init(reading reader: inout ObjectReader) {
        webhook = reader.optionalObject("webhook")
        backgroundRefreshStatus = reader.optionalWord("backgroundRefreshStatus")
        limits = reader.optionalObject("limits")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.memberIfPresent("webhook", webhook)
            writer.memberIfPresent("backgroundRefreshStatus", backgroundRefreshStatus)
            writer.memberIfPresent("limits", limits)
        }
    }
}

/// What the app's own `PATCH /v1/app` takes.
public struct OwnAppChange: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Where and how it is launched.
    public var webhook: WebhookChange?

    /// Makes a change.
    public init(webhook: WebhookChange? = nil) { self.webhook = webhook }

    /// Reads a change.
    public init(reading reader: inout ObjectReader) { webhook = reader.optionalObject("webhook") }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) { writer.object { $0.memberIfPresent("webhook", webhook) } }
}
