public import Wire

/// The app itself and, with an operator's key, all apps.
extension Client {
    /// The size and savings of the cache of the app behind the key.
    public func cacheUsage() async throws -> CacheUsage { try await send("GET", ["v1", "cache"]) }

    /// Empties the cache of the app behind the key, or removes the responses of one URL.
    public func emptyCache(of url: String? = nil) async throws {
        _ = try await exchange("DELETE", ["v1", "cache"], query: url.map { ["url": $0] } ?? [:])
    }

    /// The app behind the key.
    public func app() async throws -> App { try await send("GET", ["v1", "app"]) }

    /// Cancels every task of the app, and does not launch it until ``activate()``.
    public func forceQuit() async throws -> App {
        try await send("POST", ["v1", "app", "force-quit"], mayTakeLong: true)
    }

    /// Ends a force quit.
    public func activate() async throws -> App { try await send("POST", ["v1", "app", "activate"]) }

    // MARK: Operators

    /// A page of all apps.
    public func apps(cursor: String? = nil, limit: Int = 100) async throws -> Page<App> {
        try await page(["v1", "apps"], cursor, limit)
    }

    /// One app.
    public func app(_ identifier: String) async throws -> App { try await send("GET", ["v1", "apps", identifier]) }

    /// Creates an app. Its key and its webhook's secret are only in this response.
    public func createApp(_ app: AppCreation) async throws -> App {
        try await send("POST", ["v1", "apps"], body: app.jsonBytes)
    }

    /// Changes an app.
    public func change(_ change: AppChange, ofApp identifier: String) async throws -> App {
        try await send("PATCH", ["v1", "apps", identifier], body: change.jsonBytes)
    }

    /// Deletes an app with all its resources.
    public func deleteApp(_ identifier: String) async throws {
        _ = try await exchange("DELETE", ["v1", "apps", identifier])
    }

    /// A page of an app's keys, without the keys themselves.
    public func keys(ofApp identifier: String, cursor: String? = nil, limit: Int = 100) async throws -> Page<AppKey> {
        try await page(["v1", "apps", identifier, "keys"], cursor, limit)
    }

    /// Creates a key, which is only in this response.
    public func createKey(_ key: AppKeyCreation = AppKeyCreation(), ofApp identifier: String) async throws -> AppKey {
        try await send("POST", ["v1", "apps", identifier, "keys"], body: key.jsonBytes)
    }

    /// Revokes a key at once.
    public func deleteKey(_ keyIdentifier: String, ofApp identifier: String) async throws {
        _ = try await exchange("DELETE", ["v1", "apps", identifier, "keys", keyIdentifier])
    }
}
