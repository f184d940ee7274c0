/// The life of a question to the app.
///
///     open ──answer──▶ answered          all who wait go on as the answer says
///       ├──deadlinePassed──▶ expired     the task whose question it is fails, it alone; others who wait ask anew
///       └──taskEnded──▶ expired          nobody needs the answer any more
///
/// `open` is moved on by the app or the clock; after a crash it is still open, its deadline is in the store.
package enum QuestionState: Hashable, Sendable, Codable {
    case open(deadline: Timestamp)
    case answered(at: Timestamp)
    case expired(at: Timestamp)

    package enum Event: String, Hashable, Sendable, CaseIterable { case answer, deadlinePassed, taskEnded }

    package enum Effect: Hashable, Sendable {
        /// Hand the answer to the task and queue it.
        case continueTask
        /// The task ends with -1013 (`userAuthenticationRequired`).
        case failTask
    }

    /// Takes the question to its next state.
    ///
    /// - Throws: ``Refused`` for a second or late answer, a deadline that has not passed, and anything but `taskEnded`
    ///   after the end. Nothing has changed then.
    package mutating func handle(_ event: Event, at now: Timestamp) throws(Refused) -> [Effect] {
        switch (self, event) {
        case (.open(let deadline), .answer) where now < deadline:
            self = .answered(at: now)
            return [.continueTask]
        case (.open(let deadline), .deadlinePassed) where now >= deadline:
            self = .expired(at: now)
            return [.failTask]
        case (.open, .taskEnded):
            self = .expired(at: now)
            return []
        case (.answered, .taskEnded), (.expired, .taskEnded):
            return []
        case (.open, .answer), (.open, .deadlinePassed), (.answered, .answer), (.answered, .deadlinePassed),
            (.expired, .answer), (.expired, .deadlinePassed):
            throw Refused(state: name, event: event.rawValue)
        }
    }

    package var name: String {
        switch self {
        case .open: "open"
        case .answered: "answered"
        case .expired: "expired"
        }
    }
}
