package import Formats

/// Whether Background App Refresh is allowed, like `UIBackgroundRefreshStatus`. The stricter of two applies.
package enum BackgroundRefreshStatus: String, Word, CaseIterable {
    case available, denied, restricted

    package func stricter(_ other: BackgroundRefreshStatus) -> BackgroundRefreshStatus {
        if self == .restricted || other == .restricted { return .restricted }
        return self == .denied || other == .denied ? .denied : .available
    }
}

/// An app's webhook, without its secrets.
package struct WebhookSettings: Shape {
    package enum State: String, Word, CaseIterable { case enabled, paused, disabled }

    package var url: String?
    package var state = State.enabled
    package var disabledReason: String?
    /// The number of first pending events that a launch contains.
    package var includeEvents = 0
    /// The maximum time from the 2xx to the completion, in seconds.
    package var launchDeadline = 60

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("url", &url)
        members.member("state", &state)
        members.optional("disabledReason", &disabledReason)
        members.member("includeEvents", &includeEvents)
        members.member("launchDeadline", &launchDeadline)
    }
}

/// The quotas of one app.
package struct AppLimits: Shape {
    package var maximumUnfinishedTasks: Int64 = 1_000_000
    package var maximumStoredBytes = Int64.max

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("maximumUnfinishedTasks", &maximumUnfinishedTasks)
        members.member("maximumStoredBytes", &maximumStoredBytes)
    }
}

package struct AppRecord: Hashable, Sendable {
    package var id: AppID
    package var identifier: String
    package var webhook: WebhookSettings
    package var backgroundRefreshStatus: BackgroundRefreshStatus
    package var isForceQuit: Bool
    package var limits: AppLimits
    package var unfinishedTasks: Int64
    package var storedBytes: Int64
    /// The same with each content counted once, and with the cache.
    package var storedBytesOnDisk: Int64
    package var createdAt: Timestamp
    package var revision: Int64

    package init(
        id: AppID, identifier: String, webhook: WebhookSettings, backgroundRefreshStatus: BackgroundRefreshStatus,
        isForceQuit: Bool, limits: AppLimits, unfinishedTasks: Int64, storedBytes: Int64, storedBytesOnDisk: Int64,
        createdAt: Timestamp,
        revision: Int64
    ) {
        self.id = id
        self.identifier = identifier
        self.webhook = webhook
        self.backgroundRefreshStatus = backgroundRefreshStatus
        self.isForceQuit = isForceQuit
        self.limits = limits
        self.unfinishedTasks = unfinishedTasks
        self.storedBytes = storedBytes
        self.storedBytesOnDisk = storedBytesOnDisk
        self.createdAt = createdAt
        self.revision = revision
    }
}

package enum Scope: String, Sendable, CaseIterable {
    case sessionsRead = "sessions:read"
    case sessionsWrite = "sessions:write"
    case events
    case app
}

/// An API key in the store: its hash, never the key.
package struct KeyRecord: Hashable, Sendable {
    package var app: AppID
    package var keyIdentifier: String
    /// SHA-256 of the whole key.
    package var hash: [UInt8]
    package var scopes: [Scope]
    package var createdAt: Timestamp
    package var expiresAt: Timestamp?

    package init(
        app: AppID, keyIdentifier: String, hash: [UInt8], scopes: [Scope], createdAt: Timestamp, expiresAt: Timestamp?
    ) {
        self.app = app
        self.keyIdentifier = keyIdentifier
        self.hash = hash
        self.scopes = scopes
        self.createdAt = createdAt
        self.expiresAt = expiresAt
    }
}
