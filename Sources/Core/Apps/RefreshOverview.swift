/// The state of an app's background refresh.
package struct RefreshOverview: Sendable {
    package var interval: BackgroundRefresh.Interval
    /// The stricter of the app's status and the operator's.
    package var status: BackgroundRefreshStatus
    /// `nil` if no fetch is scheduled.
    package var nextFetchAt: Timestamp?
    /// The reason for the time of the next fetch, or for its absence.
    package var why: String
    /// The latest first.
    package var history: [PastFetch]

    package init(
        interval: BackgroundRefresh.Interval, status: BackgroundRefreshStatus, nextFetchAt: Timestamp?, why: String,
        history: [PastFetch]
    ) {
        self.interval = interval
        self.status = status
        self.nextFetchAt = nextFetchAt
        self.why = why
        self.history = history
    }
}

/// A fetch that was sent.
package struct PastFetch: Hashable, Sendable {
    package var launchId: String
    package var at: Timestamp
    /// The time until the result or the deadline; `nil` while the fetch is open.
    package var duration: Duration?
    package var result: BackgroundRefresh.Result?

    package init(launchId: String, at: Timestamp, duration: Duration?, result: BackgroundRefresh.Result?) {
        self.launchId = launchId
        self.at = at
        self.duration = duration
        self.result = result
    }
}
