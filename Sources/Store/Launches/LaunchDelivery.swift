package import Core

/// A claimed launch, with the data that its request needs.
package struct ClaimedLaunch: Sendable {
    package var id: Int64
    package var launchId: String
    package var app: AppID
    package var appIdentifier: String
    package var session: SessionID?
    package var sessionIdentifier: String?
    package var kind: LaunchKind
    package var reasons: LaunchRule.Reasons
    package var lastSeq: Int64
    /// The number of the attempt, from 1.
    package var attempt: Int
    /// The body that earlier attempts sent, if any.
    package var body: [UInt8]?
    package var traceparent: String?
    package var createdAt: Timestamp
    /// The end of attempts; for a fetch, its deadline.
    package var expiresAt: Timestamp
    package var webhook: WebhookSettings
    /// The result of the previous fetch.
    package var previousResult: BackgroundRefresh.Result?
    /// The stricter of the app's status and the operator's.
    package var refreshStatus: BackgroundRefreshStatus
}

/// The contents of a session's launch: its pending events.
package struct LaunchContents: Sendable {
    package var pendingEvents: Int64
    /// The completions among the pending events.
    package var taskCounts: TaskCounts
    /// The first pending events.
    package var events: [EventRecord]
}

/// The outcome of one attempt.
package struct LaunchReport: Sendable {
    package enum Verdict: Hashable, Sendable {
        /// 2xx, with the answer in its body, if any.
        case succeeded(LaunchAnswer?)
        /// `wasAnswered`: the receiver sent a status.
        case failed(retryAfter: Duration?, wasAnswered: Bool)
        /// 410: the receiver rejects all further launches.
        case gone
        /// The service is shutting down. The attempt is not charged.
        case interrupted
    }

    package var launch: ClaimedLaunch
    package var attempt: LaunchAttempt
    package var verdict: Verdict

    package init(launch: ClaimedLaunch, attempt: LaunchAttempt, verdict: Verdict) {
        self.launch = launch
        self.attempt = attempt
        self.verdict = verdict
    }
}

/// The work due for the sender, and the time of its next check.
package struct LaunchAgenda: Sendable {
    /// Whether launches are due for an attempt.
    package var hasDueLaunches: Bool
    /// Whether deadlines or leases have passed.
    package var hasExpired: Bool
    /// Whether launches are being parked or released.
    package var hasUnsettled: Bool
    /// The next moment, after now, at which work is due.
    package var next: Timestamp?
}
