/// What a request says about an app's webhook: only what is there changes.
public struct WebhookChange: Shape {
    /// Where the app is called.
    public var url: Change<String> = .unchanged
    /// Whether it is.
    public var state: WebhookState?
    /// How many of the first pending events travel with a launch, 0 to 100.
    public var includeEvents: Int64?
    /// Seconds from the 2xx to the completion, 5 to 900.
    public var launchDeadline: Double?

    public init() {}

    public init(
        url: Change<String> = .unchanged, state: WebhookState? = nil, includeEvents: Int64? = nil,
        launchDeadline: Double? = nil
    ) {
        self.url = url
        self.state = state
        self.includeEvents = includeEvents
        self.launchDeadline = launchDeadline
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.change("url", &url, .url)
        members.given("state", &state)
        members.given("includeEvents", &includeEvents, 0...100)
        members.given("launchDeadline", &launchDeadline, 5...900)
    }
}

/// What a request says about an app's bounds: only what is there changes.
public struct AppLimitsChange: Shape {
    /// Tasks that are not completed.
    public var tasks: Int64?
    /// Bytes of contents and bodies; `null` for no limit.
    public var storedBytes: Change<Int64> = .unchanged

    public init() {}

    public init(tasks: Int64? = nil, storedBytes: Change<Int64> = .unchanged) {
        self.tasks = tasks
        self.storedBytes = storedBytes
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.given("tasks", &tasks, 0 ... .max)
        members.change("storedBytes", &storedBytes, 0 ... .max)
    }
}

/// What `POST /v1/apps` takes.
public struct AppCreation: Shape {
    /// The app's identifier.
    public var identifier = ""
    /// Where and how it is launched.
    public var webhook: WebhookChange?
    /// Whether it may be woken to fetch.
    public var backgroundRefreshStatus: BackgroundRefreshStatus = .available
    /// Its bounds.
    public var limits: AppLimitsChange?

    public init() {}

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

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("identifier", &identifier, .identifier)
        members.optional("webhook", &webhook)
        members.defaulted("backgroundRefreshStatus", &backgroundRefreshStatus)
        members.optional("limits", &limits)
    }
}

/// What the operator's `PATCH /v1/apps/{app}` takes.
public struct AppChange: Shape {
    /// Where and how it is launched.
    public var webhook: WebhookChange?
    /// Whether it may be woken to fetch.
    public var backgroundRefreshStatus: BackgroundRefreshStatus?
    /// Its bounds.
    public var limits: AppLimitsChange?

    public init() {}

    public init(
        webhook: WebhookChange? = nil, backgroundRefreshStatus: BackgroundRefreshStatus? = nil,
        limits: AppLimitsChange? = nil
    ) {
        self.webhook = webhook
        self.backgroundRefreshStatus = backgroundRefreshStatus
        self.limits = limits
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("webhook", &webhook)
        members.optional("backgroundRefreshStatus", &backgroundRefreshStatus)
        members.optional("limits", &limits)
    }
}

/// What the app's own `PATCH /v1/app` takes.
public struct OwnAppChange: Shape {
    /// Where and how it is launched.
    public var webhook: WebhookChange?

    public init() {}

    public init(webhook: WebhookChange? = nil) { self.webhook = webhook }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("webhook", &webhook)
    }
}
