public import Wire

/// The app's webhook and its launches.
extension Client {
    /// A page of the app's launches that match the parameters. Empty lists match all.
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

    /// Completes a launch, like calling the completion handler.
    public func completeLaunch(
        _ launchId: String, through seq: Int64? = nil, epoch: Int64? = nil
    ) async throws -> Launch {
        let completion = LaunchCompletion { ($0.through, $0.epoch) = (seq, epoch) }
        return try await send("POST", ["v1", "launches", launchId, "complete"], body: completion.jsonBytes)
    }

    /// Redelivers an open or exhausted launch now.
    public func redeliverLaunch(_ launchId: String) async throws -> Launch {
        try await send("POST", ["v1", "launches", launchId, "redeliver"])
    }

    /// Redelivers all matching open or exhausted launches now, for instance after a fault of the receiver.
    public func redeliverLaunches(_ selection: LaunchSelection) async throws -> SelectionAnswer {
        try await send("POST", ["v1", "launches", "redeliver"], body: selection.jsonBytes, mayTakeLong: true)
    }

    /// Changes the app's webhook.
    public func changeWebhook(_ change: WebhookChange) async throws -> App {
        try await send("PATCH", ["v1", "app"], body: OwnAppChange { $0.webhook = .set(change) }.jsonBytes)
    }

    /// Removes the app's webhook and its settings, but not its secret. Launches are parked until there is another.
    public func removeWebhook() async throws -> App {
        try await send("PATCH", ["v1", "app"], body: OwnAppChange { $0.webhook = .clear }.jsonBytes)
    }

    /// Sends a `webhook.ping` now, and returns the attempt.
    public func pingWebhook() async throws -> LaunchAttempt {
        try await send("POST", ["v1", "app", "webhook", "ping"], mayTakeLong: true)
    }

    /// Deletes the webhook's replaced secrets that still sign.
    public func revokePreviousWebhookSecrets() async throws {
        _ = try await exchange("DELETE", ["v1", "app", "webhook", "secret", "previous"])
    }

    /// Replaces the webhook's secret. The old one still signs for `gracePeriod` seconds.
    public func rotateWebhookSecret(gracePeriod: Double = 86_400) async throws -> RotatedSecret {
        let rotation = SecretRotation { $0.gracePeriod = gracePeriod }
        return try await send("POST", ["v1", "app", "webhook", "secret", "rotate"], body: rotation.jsonBytes)
    }
}
