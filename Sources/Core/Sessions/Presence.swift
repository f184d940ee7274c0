/// Whether a client follows a session.
package struct Presence: Hashable, Sendable {
    /// What attaches a client that has no lease.
    package enum Kind: String, CaseIterable, Sendable { case stream, wait }

    package var isAttached: Bool
    /// When the last client left, or when the service started.
    package var lastDetachedAt: Timestamp

    package init(isAttached: Bool, lastDetachedAt: Timestamp) {
        self.isAttached = isAttached
        self.lastDetachedAt = lastDetachedAt
    }

    /// Counts a session's lease in; the later of two departures counts.
    ///
    /// - Returns: When the lease and the grace behind it end by themselves, where it is held.
    package mutating func join(_ attachment: Attachment, at now: Timestamp) -> Timestamp? {
        if attachment.isHeld(at: now), let lease = attachment.lease {
            isAttached = true
            return lease.expiresAt + LaunchRule.grace
        }
        if let detachedAt = attachment.detachedAt(now) { lastDetachedAt = max(lastDetachedAt, detachedAt) }
        return nil
    }
}
