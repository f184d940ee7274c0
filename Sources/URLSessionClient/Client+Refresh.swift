public import Wire

/// Background App Refresh.
extension Client {
    /// The refresh interval, the next fetch, and the results of the last ones.
    public func backgroundRefresh() async throws -> BackgroundRefresh {
        try await send("GET", ["v1", "app", "background-refresh"])
    }

    /// Sets the minimum interval between fetches; the default is `never`.
    public func setMinimumBackgroundFetchInterval(_ interval: FetchInterval) async throws -> BackgroundRefresh {
        try await send(
            "PUT", ["v1", "app", "background-refresh"],
            body: BackgroundRefreshChange(minimumBackgroundFetchInterval: interval).jsonBytes)
    }

    /// Starts a fetch now, whatever the interval.
    public func simulateFetch() async throws -> Launch {
        try await send("POST", ["v1", "app", "background-refresh", "simulate"])
    }

    /// Completes a fetch with its result, within 30 s of its webhook.
    public func completeFetch(_ launchId: String, result: LaunchCompletion.FetchResult) async throws -> Launch {
        try await send(
            "POST", ["v1", "launches", launchId, "complete"], body: LaunchCompletion { $0.result = result }.jsonBytes)
    }
}
