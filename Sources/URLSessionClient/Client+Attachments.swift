public import Wire

/// Leases of a session, for apps of which only one process may act at a time.
extension Client {
    /// Attaches to a session for `ttl` seconds (5 to 900).
    ///
    /// With `takeover` another process's lease ends, and from then on acknowledging and completing need the `epoch` of the
    /// lease: who lost it is refused. Completing the launch named ends the lease.
    public func attach(
        to session: String, ttl: Double = 30, launchId: String? = nil, takeover: Bool = false
    ) async throws -> Attachment {
        try await send(
            "POST", ["v1", "sessions", session, "attachment"],
            body: AttachmentRequest(ttl: ttl, launchId: launchId, takeover: takeover).jsonBytes)
    }

    /// Prolongs a lease.
    public func renewAttachment(_ epoch: Int64, to session: String, ttl: Double = 30) async throws -> Attachment {
        try await send(
            "POST", ["v1", "sessions", session, "attachment"],
            body: AttachmentRequest(ttl: ttl, epoch: epoch).jsonBytes)
    }

    /// Gives a lease back.
    public func detach(_ epoch: Int64, from session: String) async throws {
        _ = try await exchange(
            "DELETE", ["v1", "sessions", session, "attachment"], query: ["epoch": String(epoch)])
    }
}
