public import Wire

/// Leases of a session, for apps of which only one process may act at a time.
extension Client {
    /// Attaches to a session for `ttl` seconds (5 to 900).
    ///
    /// `takeover` ends another process's lease. From then on acknowledging and completing require the `epoch` of the
    /// current lease, so that the other process is refused. Completing the launch `launchId` releases the lease.
    public func attach(
        to session: String, ttl: Double = 30, launchId: String? = nil, takeover: Bool = false
    ) async throws -> Attachment {
        let request = AttachmentRequest {
            $0.ttl = ttl
            $0.launchId = launchId
            $0.takeover = takeover
        }
        return try await send("POST", ["v1", "sessions", session, "attachment"], body: request.jsonBytes)
    }

    /// Renews a lease.
    public func renewAttachment(_ epoch: Int64, to session: String, ttl: Double = 30) async throws -> Attachment {
        let request = AttachmentRequest { ($0.ttl, $0.epoch) = (ttl, epoch) }
        return try await send("POST", ["v1", "sessions", session, "attachment"], body: request.jsonBytes)
    }

    /// Releases a lease.
    public func detach(_ epoch: Int64, from session: String) async throws {
        _ = try await exchange("DELETE", ["v1", "sessions", session, "attachment"], query: ["epoch": String(epoch)])
    }
}
