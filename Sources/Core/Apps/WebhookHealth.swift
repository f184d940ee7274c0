/// The health of an app's webhook: a circuit breaker that probes a failing receiver at growing intervals.
///
///     closed ── 5 failures in a row over 30 s or more ──▶ open, 30 s ── probe fails ──▶ open, twice as long, to 10 min
///       ▲                                                   │
///       └──────────────── any success ──────────────────────┘
///
/// The breaker only delays: it charges no attempt. After five days of failures the webhook is disabled.
package struct WebhookHealth: Hashable, Sendable {
    package static let failuresToOpen = 5
    package static let spanToOpen = Duration.seconds(30)
    package static let firstPause = Duration.seconds(30)
    package static let longestPause = Duration.seconds(600)
    package static let hopelessAfter = Duration.seconds(5 * 86_400)
    /// Fewer failures do not disable a webhook.
    package static let failuresToGiveUp = 10

    /// The first failure since the last success.
    package var failingSince: Timestamp?
    package var consecutiveFailures: Int
    /// The number of times that the breaker opened since the last success.
    package var trips: Int
    /// No launch is sent before this time, and one probe at a time afterwards. `nil` while the breaker is closed.
    package var openUntil: Timestamp?

    package init(
        failingSince: Timestamp? = nil, consecutiveFailures: Int = 0, trips: Int = 0, openUntil: Timestamp? = nil
    ) {
        self.failingSince = failingSince
        self.consecutiveFailures = consecutiveFailures
        self.trips = trips
        self.openUntil = openUntil
    }

    /// The number of attempts, of `limit`, that may be in flight at once.
    package func places(of limit: Int, at now: Timestamp) -> Int {
        guard let openUntil else { return limit }
        return openUntil <= now ? min(limit, 1) : 0
    }

    /// Records a failed attempt.
    ///
    /// - Returns: Whether the webhook is to be disabled.
    package mutating func failed(at now: Timestamp) -> Bool {
        let since = failingSince ?? now
        failingSince = since
        consecutiveFailures += 1
        let span = now - since
        // An attempt that was in flight when the breaker opened proves nothing new.
        if (openUntil ?? now) <= now, consecutiveFailures >= Self.failuresToOpen, span >= Self.spanToOpen {
            openUntil = now + min(Self.longestPause, Self.firstPause * (1 << min(trips, 8)))
            trips += 1
        }
        return consecutiveFailures >= Self.failuresToGiveUp && span >= Self.hopelessAfter
    }
}
