public import Wire

/// Webhooks: where they go, and the launches that went there.
extension Client {
    /// A page of the app's launches: all, or those that match what is given. Empty lists match all.
    public func launches(
        of session: String? = nil, states: [Launch.State] = [], kinds: [String] = [], cursor: String? = nil,
        limit: Int = 100
    ) async throws -> Page<Launch> {
        try await page(
            ["v1", "launches"], cursor, limit,
            ["session": session, "state": Self.list(states.map(\.rawValue)), "kind": Self.list(kinds)])
    }

    /// One launch, with its attempts.
    public func launch(_ launchId: String) async throws -> Launch {
        try await send("GET", ["v1", "launches", launchId])
    }

    /// Completes a launch, as calling the completion handler does.
    public func completeLaunch(
        _ launchId: String, through seq: Int64? = nil, epoch: Int64? = nil
    ) async throws -> Launch {
        let completion = LaunchCompletion { ($0.through, $0.epoch) = (seq, epoch) }
        return try await send("POST", ["v1", "launches", launchId, "complete"], body: completion.jsonBytes)
    }

    /// Sends a launch that is not over once more, now.
    public func redeliverLaunch(_ launchId: String) async throws -> Launch {
        try await send("POST", ["v1", "launches", launchId, "redeliver"])
    }

    /// Sends all launches that match and are not over once more, now: after a time in which the receiver was at fault.
    public func redeliverLaunches(_ selection: LaunchSelection) async throws -> SelectionAnswer {
        try await send("POST", ["v1", "launches", "redeliver"], body: selection.jsonBytes, mayTakeLong: true)
    }

    /// Changes where and how the app is launched.
    public func changeWebhook(_ change: WebhookChange) async throws -> App {
        try await send("PATCH", ["v1", "app"], body: OwnAppChange { $0.webhook = .set(change) }.jsonBytes)
    }

    /// Takes the app's webhook away, with all that was set for it but its secret. Launches wait for another.
    public func removeWebhook() async throws -> App {
        try await send("PATCH", ["v1", "app"], body: OwnAppChange { $0.webhook = .clear }.jsonBytes)
    }

    /// Sends a `webhook.ping` now, and tells how it went.
    public func pingWebhook() async throws -> LaunchAttempt {
        try await send("POST", ["v1", "app", "webhook", "ping"], mayTakeLong: true)
    }

    /// Takes away the webhook's replaced secrets that still sign.
    public func revokePreviousWebhookSecrets() async throws {
        _ = try await exchange("DELETE", ["v1", "app", "webhook", "secret", "previous"])
    }

    /// Replaces the webhook's secret; the old one goes on signing for `gracePeriod` seconds.
    public func rotateWebhookSecret(gracePeriod: Double = 86_400) async throws -> RotatedSecret {
        let rotation = SecretRotation { $0.gracePeriod = gracePeriod }
        return try await send("POST", ["v1", "app", "webhook", "secret", "rotate"], body: rotation.jsonBytes)
    }
}
