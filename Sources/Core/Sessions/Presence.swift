/// Whether a client is attached to a session.
package struct Presence: Hashable, Sendable {
    /// The means by which a client without a lease is attached.
    package enum Kind: String, CaseIterable, Sendable { case stream, wait }

    package var isAttached: Bool
    /// When the last client detached, or the service started.
    package var lastDetachedAt: Timestamp

    package init(isAttached: Bool, lastDetachedAt: Timestamp) {
        self.isAttached = isAttached
        self.lastDetachedAt = lastDetachedAt
    }

    /// Includes a session's lease; the later of two detachments counts.
    ///
    /// - Returns: When the lease and the grace period after it end by themselves, if it is held.
    package mutating func join(_ attachment: Attachment, at now: Timestamp) -> Timestamp? {
        if attachment.isHeld(at: now), let lease = attachment.lease {
            isAttached = true
            return lease.expiresAt + LaunchRule.grace
        }
        if let detachedAt = attachment.detachedAt(now) { lastDetachedAt = max(lastDetachedAt, detachedAt) }
        return nil
    }
}
