package import Core

/// A launch whose turn has come, with what its request needs.
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
    /// From 1.
    package var attempt: Int
    /// What earlier attempts sent.
    package var body: [UInt8]?
    package var traceparent: String?
    package var createdAt: Timestamp
    /// When attempts end; of a fetch, its deadline.
    package var expiresAt: Timestamp
    package var webhook: WebhookSettings
    /// How the fetch before this one ended.
    package var previousResult: BackgroundRefresh.Result?
    /// The app's status and the operator's, the stricter of the two.
    package var refreshStatus: BackgroundRefreshStatus
}

/// What a session's launch tells of: its pending events.
package struct LaunchContents: Sendable {
    package var pendingEvents: Int64
    /// The completions among them.
    package var taskCounts: TaskCounts
    /// The first of them.
    package var events: [EventRecord]
}

/// How one attempt ended.
package struct LaunchReport: Sendable {
    package enum Verdict: Hashable, Sendable {
        /// 2xx, with what its body answers, if anything.
        case succeeded(LaunchAnswer?)
        /// `wasAnswered`: the receiver sent a status.
        case failed(retryAfter: Duration?, wasAnswered: Bool)
        /// 410: the receiver wants no more of them.
        case gone
        /// The service stops; the attempt is not charged.
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

/// What the sender has to do, and when to look again.
package struct LaunchAgenda: Sendable {
    /// Launches wait for an attempt.
    package var hasDueLaunches: Bool
    /// Deadlines or leases have passed.
    package var hasExpired: Bool
    /// Launches are being parked or released.
    package var hasUnsettled: Bool
    /// The next moment, after now, at which there is something to do.
    package var next: Timestamp?
}
