/// The life of a question to the app.
///
///     open ── answer ──▶ answered          all waiting tasks resume with the answer
///       ├── deadlinePassed ──▶ expired     the task that asked fails; other waiting tasks ask again
///       └── taskEnded ──▶ expired          the answer is not needed any more
///
/// The app or the clock ends `open`. After a crash the question is still open; its deadline is in the store.
package enum QuestionState: Hashable, Sendable {
    case open
    case answered(Answer.Disposition, at: Timestamp)
    case expired

    package enum Event: Hashable, Sendable {
        case answer(Answer.Disposition)
        case deadlinePassed
        /// The last waiting task ended.
        case taskEnded
    }

    package enum Effect: Hashable, Sendable {
        /// Resume the waiting tasks.
        case release
        /// The task that asked ends with -1013 (`userAuthenticationRequired`).
        case failTask
    }

    /// Applies an event to the question.
    ///
    /// - Throws: ``Refused`` for a second or late answer, a deadline that has not passed, and any event but `taskEnded`
    ///   after the end. Nothing has changed then.
    package mutating func handle(
        _ event: Event, deadline: Timestamp, at now: Timestamp
    ) throws(Refused) -> [Effect] {
        switch (self, event) {
        case (.open, .answer(let disposition)) where now < deadline:
            self = .answered(disposition, at: now)
            return [.release]
        case (.open, .deadlinePassed) where now >= deadline:
            self = .expired
            return [.failTask, .release]
        case (.open, .taskEnded):
            self = .expired
            return []
        case (.answered, .taskEnded), (.expired, .taskEnded):
            return []
        case (_, .answer), (_, .deadlinePassed):
            throw Refused(phase.rawValue, event)
        }
    }
}

extension QuestionState {
    /// The state without its data: as clients see it, and as the store queries it.
    package enum Phase: String, Sendable, CaseIterable { case open, answered, expired }

    package var phase: Phase {
        switch self {
        case .open: .open
        case .answered: .answered
        case .expired: .expired
        }
    }

    package var disposition: Answer.Disposition? {
        if case .answered(let disposition, _) = self { disposition } else { nil }
    }

    package var answeredAt: Timestamp? { if case .answered(_, let moment) = self { moment } else { nil } }
}
