/// The reason for which an app is launched.
package enum LaunchKind: String, Sendable, CaseIterable {
    case handleEvents = "session.handleEvents"
    case performFetch = "app.performFetch"
    case refreshStatusDidChange = "app.backgroundRefreshStatusDidChange"
    case ping = "webhook.ping"
}

/// One HTTP attempt of a launch.
package struct LaunchAttempt: Hashable, Sendable {
    package var number: Int
    package var startedAt: Timestamp
    package var duration: Duration
    package var statusCode: Int?
    package var error: String?
    package var excerpt: String?

    package init(
        number: Int, startedAt: Timestamp, duration: Duration, statusCode: Int?, error: String?, excerpt: String?
    ) {
        self.number = number
        self.startedAt = startedAt
        self.duration = duration
        self.statusCode = statusCode
        self.error = error
        self.excerpt = excerpt
    }
}

package struct LaunchRecord: Sendable {
    package var launchId: String
    package var app: AppID
    package var session: SessionID?
    package var sessionIdentifier: String?
    package var kind: LaunchKind
    package var state: LaunchState
    package var reasons: LaunchRule.Reasons
    package var lastSeq: Int64
    package var attempts: [LaunchAttempt]
    package var traceparent: String?
    package var createdAt: Timestamp
    /// The end of attempts.
    package var expiresAt: Timestamp?
    /// The result of a fetch.
    package var result: BackgroundRefresh.Result?

    package init(
        launchId: String, app: AppID, session: SessionID?, sessionIdentifier: String?, kind: LaunchKind,
        state: LaunchState, reasons: LaunchRule.Reasons, lastSeq: Int64, attempts: [LaunchAttempt],
        traceparent: String?, createdAt: Timestamp, expiresAt: Timestamp?,
        result: BackgroundRefresh.Result?
    ) {
        self.launchId = launchId
        self.app = app
        self.session = session
        self.sessionIdentifier = sessionIdentifier
        self.kind = kind
        self.state = state
        self.reasons = reasons
        self.lastSeq = lastSeq
        self.attempts = attempts
        self.traceparent = traceparent
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.result = result
    }
}
