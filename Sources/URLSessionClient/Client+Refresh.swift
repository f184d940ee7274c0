public import Wire

/// Background App Refresh.
extension Client {
    /// How often the app is woken to fetch, when next, and how the last fetches ended.
    public func backgroundRefresh() async throws -> BackgroundRefresh {
        try await send("GET", ["v1", "app", "background-refresh"])
    }

    /// Sets how often the app wants to be woken to fetch; the default is `never`.
    public func setMinimumBackgroundFetchInterval(_ interval: FetchInterval) async throws -> BackgroundRefresh {
        try await send(
            "PUT", ["v1", "app", "background-refresh"],
            body: BackgroundRefreshChange(minimumBackgroundFetchInterval: interval).jsonBytes)
    }

    /// Wakes the app to fetch now, whatever its interval.
    public func simulateFetch() async throws -> Launch {
        try await send("POST", ["v1", "app", "background-refresh", "simulate"])
    }

    /// Completes a fetch with its result, within 30 s of its webhook.
    public func completeFetch(_ launchId: String, result: LaunchCompletion.FetchResult) async throws -> Launch {
        try await send(
            "POST", ["v1", "launches", launchId, "complete"], body: LaunchCompletion { $0.result = result }.jsonBytes)
    }
}
