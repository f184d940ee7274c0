/// The life of a task that is not completed.
///
///                      ┌────────────── suspend ──────────────┐
///                      ▼                                     │
///     create ──▶ suspended ── resume ──▶ delayed ── due ──▶ queued ◀── due ── retryWait
///                                 └─────────────────────────▶ │  ▲            waitingForConnectivity
///                                                           claim │                ▲
///                                                             ▼  interrupted       │ retry(at:)
///                awaitingAnswer ◀── ask ────────────────── active ─────────────────┘
///                      └── answered ──▶ queued               │
///                                                          finish ──▶ (completed: no stage)
///
/// Where others are queued, a suspect (``Quarantine``) is `quarantined`: it is claimed when nothing else is active.
/// A full disk takes an active task to `waitingForDisk`, and room (`due`) from there to `queued`.
///
/// Who moves it on: `delayed`, `retryWait` and `waitingForConnectivity` the clock, `queued`, `quarantined` and
/// `waitingForDisk` the scheduler, `active` the transfer engine's report, `awaitingAnswer` the app or the question's
/// deadline, `suspended` the app.
/// After a crash `active` is what was under way: recovery feeds it `interrupted`, which charges no attempt.
package enum TaskStage: String, Hashable, Sendable, Codable, CaseIterable {
    case suspended, delayed, queued, active, retryWait, waitingForConnectivity, awaitingAnswer, quarantined
    case waitingForDisk

    /// What may happen to a task that is not completed.
    package enum Event: Hashable, Sendable {
        case suspend
        /// `beginsLater`: an `earliestBeginDate` is still ahead. `hasOpenQuestion`: the app has not answered yet.
        case resume(beginsLater: Bool, hasOpenQuestion: Bool)
        case due
        case claim
        case retry(waitsForConnectivity: Bool)
        case ask
        /// The disk has no room for what comes.
        case noRoom
        case answered
        case interrupted
        /// It is no suspect any more.
        case cleared

        /// Whether an attempt came to its own end.
        package var endsAttempt: Bool {
            switch self {
            case .retry, .ask: true
            default: false
            }
        }
    }

    /// Whether the transfer has to be stopped once the new stage is stored.
    package enum Effect: Hashable, Sendable { case none, stopTransfer }

    /// Takes the task to its next stage.
    ///
    /// Repeating `suspend` and `resume` changes nothing and succeeds.
    ///
    /// - Parameter isSuspect: Whether it has to run alone.
    /// - Throws: ``Refused`` when the event does not fit; the stage is unchanged.
    package mutating func handle(_ event: Event, isSuspect: Bool = false) throws(Refused) -> Effect {
        let effect = try handle(event)
        if self == .queued && isSuspect { self = .quarantined }
        return effect
    }

    private mutating func handle(_ event: Event) throws(Refused) -> Effect {
        switch (self, event) {
        case (.suspended, .suspend): return .none
        case (.active, .suspend):
            self = .suspended
            return .stopTransfer
        case (_, .suspend):
            self = .suspended
            return .none

        case (.suspended, .resume(let beginsLater, let hasOpenQuestion)):
            self = hasOpenQuestion ? .awaitingAnswer : beginsLater ? .delayed : .queued
            return .none
        case (.retryWait, .resume), (.waitingForConnectivity, .resume):
            self = .queued
            return .none
        case (_, .resume): return .none

        case (.delayed, .due), (.retryWait, .due), (.waitingForConnectivity, .due), (.waitingForDisk, .due):
            self = .queued
            return .none
        case (.queued, .claim), (.quarantined, .claim):
            self = .active
            return .none
        case (.active, .retry(let waitsForConnectivity)):
            self = waitsForConnectivity ? .waitingForConnectivity : .retryWait
            return .none
        case (.active, .ask):
            self = .awaitingAnswer
            return .none
        case (.active, .noRoom):
            self = .waitingForDisk
            return .none
        case (.awaitingAnswer, .answered), (.active, .interrupted), (.quarantined, .cleared):
            self = .queued
            return .none

        case (_, .due), (_, .claim), (_, .retry), (_, .ask), (_, .noRoom), (_, .answered), (_, .interrupted),
            (_, .cleared):
            throw Refused(state: "\(self)", event: "\(event)")
        }
    }

    /// The state that clients see.
    package var state: TaskState { self == .suspended ? .suspended : .running }

    /// Whether it waits for a moment that is written beside it.
    package var hasDueDate: Bool { self == .delayed || self == .retryWait || self == .waitingForConnectivity }
}
