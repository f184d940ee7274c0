/// What a request changes about an app's webhook: only the members that are there.
public struct WebhookChange: Shape {
    /// Where it is sent.
    public var url: Change<String> = .unchanged
    /// Whether it is sent.
    public var state: WebhookState?
    /// How many of the first pending events travel with a launch, 0 to 100.
    public var includeEvents: Int64?
    /// Seconds from the 2xx to the completion, 5 to 900.
    public var launchDeadline: Double?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.change("url", &url, .url)
        members.given("state", &state)
        members.given("includeEvents", &includeEvents, 0...100)
        members.given("launchDeadline", &launchDeadline, 5...900)
    }
}

/// What a request changes about an app's limits: only the members that are there.
public struct AppLimitsChange: Shape {
    /// Tasks that are not completed.
    public var tasks: Int64?
    /// Bytes of contents and bodies; `null` for no limit.
    public var storedBytes: Change<Int64> = .unchanged

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.given("tasks", &tasks, 0 ... .max)
        members.change("storedBytes", &storedBytes, 0 ... .max)
    }
}

/// What `POST /v1/apps` takes.
public struct AppCreation: Shape {
    public var identifier = ""
    /// Where and how it is launched.
    public var webhook: WebhookChange?
    /// Whether it may be woken to fetch.
    public var backgroundRefreshStatus: BackgroundRefreshStatus = .available
    public var limits: AppLimitsChange?

    public init() {}

    public init(identifier: String) { self.identifier = identifier }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("identifier", &identifier, .identifier)
        members.optional("webhook", &webhook)
        members.defaulted("backgroundRefreshStatus", &backgroundRefreshStatus)
        members.optional("limits", &limits)
    }
}

/// What the operator's `PATCH /v1/apps/{app}` takes.
public struct AppChange: Shape {
    /// Where and how it is launched; `.clear` for nowhere.
    public var webhook: Change<WebhookChange> = .unchanged
    /// Whether it may be woken to fetch.
    public var backgroundRefreshStatus: BackgroundRefreshStatus?
    /// Its bounds.
    public var limits: AppLimitsChange?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.change("webhook", &webhook)
        members.optional("backgroundRefreshStatus", &backgroundRefreshStatus)
        members.optional("limits", &limits)
    }
}

/// What the app's own `PATCH /v1/app` takes.
public struct OwnAppChange: Shape {
    /// Where and how it is launched; `.clear` for nowhere.
    public var webhook: Change<WebhookChange> = .unchanged

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.change("webhook", &webhook)
    }
}
