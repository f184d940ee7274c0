/// The life of a session.
///
///     active ── invalidate ──▶ invalidating ── noTaskLeft ──▶ invalid
///       └── forget ──────────────────┴──────────────────────────▲
///
/// The app ends `active`. The end of the last task ends `invalidating`, in the same commit. The janitor deletes
/// `invalid` sessions. A crash changes nothing.
package enum SessionState: Hashable, Sendable {
    case active
    /// New tasks are rejected.
    case invalidating
    case invalid(since: Timestamp)

    package enum Event: Hashable, Sendable {
        /// Repeating it changes nothing.
        case invalidate
        /// All its tasks are completed.
        case noTaskLeft
        /// The session ends at once, with its tasks and without events.
        case forget
    }

    package enum Effect: Hashable, Sendable {
        /// Record `session.didBecomeInvalid`.
        case tellInvalid
    }

    /// Applies an event to the session. Every event fits every state.
    @discardableResult
    package mutating func handle(_ event: Event, at now: Timestamp) -> [Effect] {
        switch (self, event) {
        case (.active, .invalidate): self = .invalidating
        case (.invalidating, .noTaskLeft):
            self = .invalid(since: now)
            return [.tellInvalid]
        case (.active, .forget), (.invalidating, .forget): self = .invalid(since: now)
        case (.active, .noTaskLeft), (.invalidating, .invalidate), (.invalid, _): break
        }
        return []
    }
}

extension SessionState {
    /// The state as clients see it, and as the store queries it.
    package enum Phase: String, Sendable, CaseIterable { case active, invalidating, invalid }

    package var phase: Phase {
        switch self {
        case .active: .active
        case .invalidating: .invalidating
        case .invalid: .invalid
        }
    }
}
