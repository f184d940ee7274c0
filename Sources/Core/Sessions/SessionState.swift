/// The life of a session.
///
///     active ── invalidate ──▶ invalidating ── noTaskLeft ──▶ invalid
///       └── forget ──────────────────┴──────────────────────────▲
///
/// `active` is moved on by the app, `invalidating` by the end of its last task, in the same commit. The janitor forgets
/// what is `invalid`. A crash changes nothing.
package enum SessionState: Hashable, Sendable {
    case active
    /// No new task is let in.
    case invalidating
    case invalid(since: Timestamp)

    package enum Event: Hashable, Sendable {
        /// Repeating it changes nothing.
        case invalidate
        /// All its tasks are completed.
        case noTaskLeft
        /// It ends at once, with its tasks and without events.
        case forget
    }

    package enum Effect: Hashable, Sendable {
        /// Record `session.didBecomeInvalid`.
        case tellInvalid
    }

    /// Takes the session to its next state. Every event fits every state.
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
    /// The state as clients see it, and as the store finds it.
    package enum Phase: String, Sendable, CaseIterable { case active, invalidating, invalid }

    package var phase: Phase {
        switch self {
        case .active: .active
        case .invalidating: .invalidating
        case .invalid: .invalid
        }
    }
}
