/// Whether a webhook receives launches.
public struct WebhookState: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// Launches are sent.
    public static let enabled: Self = "enabled"
    /// The app has paused the webhook; launches wait.
    public static let paused: Self = "paused"
    /// The receiver answered 410 or failed for days, or the app disabled the webhook; launches wait.
    public static let disabled: Self = "disabled"
    public static let known: [Self] = [.enabled, .paused, .disabled]
}

/// Whether Background App Refresh is allowed, as in `UIBackgroundRefreshStatus`.
public struct BackgroundRefreshStatus: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// Refresh is allowed.
    public static let available: Self = "available"
    /// Refresh is denied for this app.
    public static let denied: Self = "denied"
    /// Refresh is restricted, and the app cannot change that.
    public static let restricted: Self = "restricted"
    public static let known: [Self] = [.available, .denied, .restricted]
}

/// The receiver of an app's launches.
public struct Webhook: Shape {
    /// The URL of the receiver.
    public var url: String?
    /// Whether launches are sent.
    public var state = WebhookState()
    public var disabledReason: String?
    /// The number of first pending events in the body of a launch.
    public var includeEvents: Int64 = 0
    /// Seconds from the 2xx to the completion.
    public var launchDeadline = 0.0
    /// `whsec_…`, only in the response that created the app.
    public var secret: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.nullable("url", &url)
        members.member("state", &state)
        members.nullable("disabledReason", &disabledReason)
        members.member("includeEvents", &includeEvents)
        members.member("launchDeadline", &launchDeadline)
        members.optional("secret", &secret)
    }
}

/// The limits of one app.
public struct AppLimits: Shape {
    /// The maximum number of unfinished tasks.
    public var tasks: Int64 = 0
    /// The maximum number of bytes of contents and bodies; `nil` for no limit.
    public var storedBytes: Int64?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("tasks", &tasks)
        members.nullable("storedBytes", &storedBytes)
    }
}

/// The current usage of an app's limits.
public struct AppUsage: Shape {
    /// The number of unfinished tasks.
    public var tasks: Int64 = 0
    /// The bytes of contents and bodies.
    public var storedBytes: Int64 = 0
    /// The same with each content counted once, and with the cache.
    public var storedBytesOnDisk: Int64 = 0

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("tasks", &tasks)
        members.member("storedBytes", &storedBytes)
        members.defaulted("storedBytesOnDisk", &storedBytesOnDisk)
    }
}

/// An app as the service returns it.
public struct App: Shape {
    public var identifier = ""
    /// `active` or `forceQuit`.
    public var state = ""
    /// The receiver of its launches.
    public var webhook = Webhook()
    /// Whether the app may be woken to fetch: the stricter of the operator's statuses for the app and for all apps.
    public var backgroundRefreshStatus = BackgroundRefreshStatus()
    public var limits = AppLimits()
    public var usage = AppUsage()
    public var createdAt = ""
    /// Increases with every change.
    public var revision: Int64 = 0
    /// The app's first key, only in the response that created the app.
    public var apiKey: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("identifier", &identifier)
        members.member("state", &state)
        members.member("webhook", &webhook)
        members.member("backgroundRefreshStatus", &backgroundRefreshStatus)
        members.member("limits", &limits)
        members.member("usage", &usage)
        members.member("createdAt", &createdAt)
        members.member("revision", &revision)
        members.optional("apiKey", &apiKey)
    }
}
