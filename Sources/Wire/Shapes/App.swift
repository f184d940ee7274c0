/// Whether a webhook is called.
public struct WebhookState: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// It is called.
    public static let enabled: Self = "enabled"
    /// The app has paused it; launches wait.
    public static let paused: Self = "paused"
    /// It answered 410, failed for days, or was disabled; launches wait.
    public static let disabled: Self = "disabled"
    public static let known: [Self] = [.enabled, .paused, .disabled]
}

/// Whether Background App Refresh is allowed, as `UIBackgroundRefreshStatus` tells it.
public struct BackgroundRefreshStatus: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// It is allowed.
    public static let available: Self = "available"
    /// It is not allowed for this app.
    public static let denied: Self = "denied"
    /// It is not allowed, and the app cannot change that.
    public static let restricted: Self = "restricted"
    public static let known: [Self] = [.available, .denied, .restricted]
}

/// Where and how an app is launched.
public struct Webhook: Shape {
    /// Where it is sent.
    public var url: String?
    /// Whether it is sent.
    public var state = WebhookState()
    public var disabledReason: String?
    /// How many of the first pending events travel with a launch.
    public var includeEvents: Int64 = 0
    /// Seconds from the 2xx to the completion.
    public var launchDeadline = 0.0
    /// `whsec_…`, only in the answer that made the app.
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
    /// Tasks that are not completed.
    public var tasks: Int64 = 0
    /// Bytes of contents and bodies; `nil` for no limit.
    public var storedBytes: Int64?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("tasks", &tasks)
        members.nullable("storedBytes", &storedBytes)
    }
}

/// How much of its limits an app uses.
public struct AppUsage: Shape {
    /// Tasks that are not completed.
    public var tasks: Int64 = 0
    /// Bytes of contents and bodies.
    public var storedBytes: Int64 = 0
    /// The same with each content once, and with what the cache keeps besides.
    public var storedBytesOnDisk: Int64 = 0

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("tasks", &tasks)
        members.member("storedBytes", &storedBytes)
        members.defaulted("storedBytesOnDisk", &storedBytesOnDisk)
    }
}

/// An app as the service answers it.
public struct App: Shape {
    public var identifier = ""
    /// `active` or `forceQuit`.
    public var state = ""
    /// Where and how it is launched.
    public var webhook = Webhook()
    /// Whether it may be woken to fetch: the stricter of what the operator says for the app and for all.
    public var backgroundRefreshStatus = BackgroundRefreshStatus()
    public var limits = AppLimits()
    public var usage = AppUsage()
    public var createdAt = ""
    /// Grows with every change.
    public var revision: Int64 = 0
    /// Its first key, only in the answer that made it.
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
