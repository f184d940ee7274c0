public import Wire

/// Background App Refresh.
extension Client {
    /// How often the app is fetched, when next, and what came of the last times.
    public func backgroundRefresh() async throws -> BackgroundRefresh {
        try await send("GET", ["v1", "app", "background-refresh"])
    }

    /// Says how often the app wants to be woken to fetch; `never` until then.
    public func setMinimumBackgroundFetchInterval(_ interval: FetchInterval) async throws -> BackgroundRefresh {
        try await send(
            "PUT", ["v1", "app", "background-refresh"],
            body: BackgroundRefreshChange(minimumBackgroundFetchInterval: interval).jsonBytes)
    }

    /// Has the app fetched now, whatever the interval.
    public func simulateFetch() async throws -> Launch {
        try await send("POST", ["v1", "app", "background-refresh", "simulate"])
    }

    /// Says what came of a fetch, within 30 s of its webhook.
    public func completeFetch(_ launchId: String, result: LaunchCompletion.FetchResult) async throws -> Launch {
        try await send(
            "POST", ["v1", "launches", launchId, "complete"], body: LaunchCompletion(result: result).jsonBytes)
    }
}
