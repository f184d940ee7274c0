/// How an app's webhook has been answering: a breaker that probes a dead receiver ever more slowly.
///
///     closed ── 5 failures in a row over 30 s or more ──▶ open, 30 s ── probe fails ──▶ open, twice as long, to 10 min
///       ▲                                                   │
///       └──────────────── any success ──────────────────────┘
///
/// It only delays: no attempt is charged, no place in a schedule lost. Who failed for five days is given up.
package struct WebhookHealth: Hashable, Sendable {
    package static let failuresToOpen = 5
    package static let spanToOpen = Duration.seconds(30)
    package static let firstPause = Duration.seconds(30)
    package static let longestPause = Duration.seconds(600)
    package static let hopelessAfter = Duration.seconds(5 * 86_400)
    /// A few failures far apart say little.
    package static let failuresToGiveUp = 10

    /// The first failure since the last success.
    package var failingSince: Timestamp?
    package var consecutiveFailures: Int
    /// How often it opened since the last success.
    package var trips: Int
    /// Nothing is sent before; from then on one probe at a time. Nil while closed.
    package var openUntil: Timestamp?

    package init(
        failingSince: Timestamp? = nil, consecutiveFailures: Int = 0, trips: Int = 0, openUntil: Timestamp? = nil
    ) {
        self.failingSince = failingSince
        self.consecutiveFailures = consecutiveFailures
        self.trips = trips
        self.openUntil = openUntil
    }

    /// How many attempts may be under way at once, of `limit`.
    package func places(of limit: Int, at now: Timestamp) -> Int {
        guard let openUntil else { return limit }
        return openUntil <= now ? min(limit, 1) : 0
    }

    /// Notes a failed attempt.
    ///
    /// - Returns: Whether the webhook is to be given up.
    package mutating func failed(at now: Timestamp) -> Bool {
        let since = failingSince ?? now
        failingSince = since
        consecutiveFailures += 1
        let span = now - since
        // What was under way when it opened says nothing new.
        if (openUntil ?? now) <= now, consecutiveFailures >= Self.failuresToOpen, span >= Self.spanToOpen {
            openUntil = now + min(Self.longestPause, Self.firstPause * (1 << min(trips, 8)))
            trips += 1
        }
        return consecutiveFailures >= Self.failuresToGiveUp && span >= Self.hopelessAfter
    }
}
