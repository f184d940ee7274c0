/// A change of an app's webhook; absent members stay.
public struct WebhookChange: Shape {
    /// The URL of the receiver.
    public var url: Change<String> = .unchanged
    /// Whether launches are sent.
    public var state: WebhookState?
    /// The number of first pending events in the body of a launch, 0 to 100.
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

/// A change of an app's limits; absent members stay.
public struct AppLimitsChange: Shape {
    /// The maximum number of unfinished tasks.
    public var tasks: Int64?
    /// The maximum number of bytes of contents and bodies; `null` for no limit.
    public var storedBytes: Change<Int64> = .unchanged

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.given("tasks", &tasks, 0 ... .max)
        members.change("storedBytes", &storedBytes, 0 ... .max)
    }
}

/// The body of `POST /v1/apps`.
public struct AppCreation: Shape {
    public var identifier = ""
    /// The receiver of the app's launches.
    public var webhook: WebhookChange?
    /// Whether the app may be woken to fetch.
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

/// The body of the operator's `PATCH /v1/apps/{app}`.
public struct AppChange: Shape {
    /// The receiver of the app's launches; `.clear` for none.
    public var webhook: Change<WebhookChange> = .unchanged
    /// Whether the app may be woken to fetch.
    public var backgroundRefreshStatus: BackgroundRefreshStatus?
    /// The app's limits.
    public var limits: AppLimitsChange?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.change("webhook", &webhook)
        members.optional("backgroundRefreshStatus", &backgroundRefreshStatus)
        members.optional("limits", &limits)
    }
}

/// The body of the app's own `PATCH /v1/app`.
public struct OwnAppChange: Shape {
    /// The receiver of the app's launches; `.clear` for none.
    public var webhook: Change<WebhookChange> = .unchanged

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.change("webhook", &webhook)
    }
}
