/// Whether a client follows a session.
package struct Presence: Hashable, Sendable {
    package var isAttached: Bool
    /// When the last client left, or when the service started.
    package var lastDetachedAt: Timestamp

    package init(isAttached: Bool, lastDetachedAt: Timestamp) {
        self.isAttached = isAttached
        self.lastDetachedAt = lastDetachedAt
    }
}
