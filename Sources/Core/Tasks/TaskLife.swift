/// The life of a task.
///
///                      ┌────────────── suspend ──────────────┐
///                      ▼                                     │
///     create ──▶ suspended ── resume ──▶ delayed ── due ──▶ queued ◀── due ── retryWait
///                                 └─────────────────────────▶ │  ▲            waitingForConnectivity
///                                                           claim │                ▲
///                                                             ▼  interrupted       │ retry
///                awaitingAnswer ◀── ask ────────────────── active ─────────────────┘
///                      └── answered ──▶ queued               │
///                                                          finish ──▶ completed ◀── end ── all others
///
/// While others are queued, a suspect (``Quarantine``) is `quarantined`: it is claimed when no task is active. `finish`
/// may be late: the app may have suspended the task, and resumed it, while the transfer ended. A full disk moves an
/// active task to `waitingForDisk`, and space (`due`) from there to `queued`. An active task that would fetch what another
/// one fetches moves to `following`, and the end of that transfer (`due`) from there to `queued`.
///
/// The clock ends `delayed`, `retryWait` and `waitingForConnectivity`, the scheduler ends `queued`, `quarantined` and
/// `waitingForDisk`, the transfer engine's report ends `active`, the app or the question's deadline ends
/// `awaitingAnswer`, the app ends `suspended`. The deadline ends any running state. After a crash, recovery applies
/// `interrupted` to `active` tasks, which charges no attempt.
package enum TaskLife: Hashable, Sendable {
    /// `remaining` is the rest of the resource timeout, `question` the unanswered question.
    case suspended(remaining: Duration, question: QuestionID?)
    case running(Stage, deadline: Timestamp)
    indirect case completed(Outcome, TaskResult, at: Timestamp)

    package enum Stage: Hashable, Sendable {
        /// `earliestBeginDate` is in the future.
        case delayed(until: Timestamp)
        case queued, quarantined, active
        case retryWait(until: Timestamp)
        case waitingForConnectivity(until: Timestamp)
        /// The disk lacks space for `needed` bytes beside `kept` ones; not retried before `notBefore`.
        case waitingForDisk(needed: Int64, kept: Int64, notBefore: Timestamp)
        case awaitingAnswer(QuestionID)
        /// Another task of the app transfers the same response.
        case following
    }

    package enum Event: Hashable, Sendable {
        case suspend
        /// With its `earliestBeginDate`.
        case resume(beginsAt: Timestamp?)
        /// A changed `earliestBeginDate`, for a task that has not begun.
        case reschedule(beginsAt: Timestamp?, timeout: Duration)
        case due
        case claim
        case retry(at: Timestamp, waitsForConnectivity: Bool)
        case ask(QuestionID)
        /// Another task transfers the same response.
        case follow
        /// The disk has no space for the received bytes.
        case noRoom(needed: Int64, kept: Int64, notBefore: Timestamp)
        /// The bytes kept on the full disk were removed.
        case emptied
        /// The app answered the question, or the deadline passed.
        case answered
        case interrupted
        /// The task is no suspect any more.
        case cleared
        /// The task became a suspect while it was queued.
        case suspected
        /// The attempt completed the task.
        indirect case finish(Outcome, TaskResult)
        /// The task ends from outside, in any state.
        indirect case end(Outcome, TaskResult)

        /// Whether an attempt ended by itself.
        package var endsAttempt: Bool {
            switch self {
            case .retry, .ask: true
            default: false
            }
        }
    }

    package enum Effect: Hashable, Sendable {
        /// Stop the transfer once the new state is stored.
        case stopTransfer
    }

    /// A new task, with its whole resource timeout left.
    package init(isSuspended: Bool, beginsAt: Timestamp?, timeout: Duration, at now: Timestamp) {
        self = .suspended(remaining: timeout, question: nil)
        if !isSuspended { resume(timeout, nil, beginsAt, .queued, now) }
    }

    /// Applies an event to the task.
    ///
    /// Repeating `suspend` and `resume` changes nothing and succeeds.
    ///
    /// - Parameter isSuspect: Whether the task must run alone.
    /// - Throws: ``Refused`` if the event does not fit; nothing has changed then.
    package mutating func handle(
        _ event: Event, isSuspect: Bool = false, at now: Timestamp
    ) throws(Refused) -> [Effect] {
        let ready: Stage = isSuspect ? .quarantined : .queued
        switch (self, event) {
        case (.suspended, .suspend): break
        case (.running(let stage, let deadline), .suspend):
            self = .suspended(remaining: max(.zero, deadline - stage.start(now)), question: question)
            return stage == .active ? [.stopTransfer] : []
        case (.suspended(let remaining, let question), .resume(let beginsAt)):
            resume(remaining, question, beginsAt, ready, now)
        case (.suspended(let remaining, _?), .answered): self = .suspended(remaining: remaining, question: nil)
        case (.suspended, .reschedule): break

        case (.running(let stage, let deadline), .reschedule(let beginsAt, let timeout)) where !stage.hasBegun:
            // A later date restarts the whole resource timeout.
            let start = max(now, beginsAt ?? now)
            self =
                start > now
                ? .running(.delayed(until: start), deadline: start + timeout)
                : .running(ready, deadline: now + min(deadline - stage.start(now), timeout))

        case (_, .finish(let outcome, let result)) where mayFinish: self = .completed(outcome, result, at: now)
        case (.suspended, .end(let outcome, let result)), (.running, .end(let outcome, let result)):
            let isActive = phase == .active
            self = .completed(outcome, result, at: now)
            return isActive ? [.stopTransfer] : []

        case (.running(let stage, let deadline), _):
            guard let next = stage.next(event, ready) else { throw Refused(phase?.rawValue ?? state.rawValue, event) }
            self = .running(next, deadline: deadline)
        case (.suspended, _), (.completed, _): throw Refused(phase?.rawValue ?? state.rawValue, event)
        }
        return []
    }

    /// Whether a transfer of the task may end it: the transfer is in flight, or was when the app suspended the task.
    private var mayFinish: Bool {
        switch self {
        case .suspended: true
        case .running(let stage, _): stage == .active || !stage.hasBegun
        case .completed: false
        }
    }

    private mutating func resume(
        _ remaining: Duration, _ question: QuestionID?, _ beginsAt: Timestamp?, _ ready: Stage, _ now: Timestamp
    ) {
        let start = max(now, beginsAt ?? now)
        let stage = question.map(Stage.awaitingAnswer) ?? (start > now ? .delayed(until: start) : ready)
        self = .running(stage, deadline: start + remaining)
    }
}

extension TaskLife.Stage {
    /// The next stage after an event that keeps the deadline; `nil` if the event does not fit.
    fileprivate func next(_ event: TaskLife.Event, _ ready: Self) -> Self? {
        switch (self, event) {
        case (.retryWait, .resume), (.waitingForConnectivity, .resume), (.delayed, .due), (.retryWait, .due),
            (.waitingForConnectivity, .due), (.waitingForDisk, .due), (.following, .due), (.awaitingAnswer, .answered),
            (.active, .interrupted), (.quarantined, .cleared):
            ready
        case (_, .resume), (_, .reschedule): self
        case (.queued, .claim), (.quarantined, .claim): .active
        case (.queued, .suspected): .quarantined
        case (.active, .retry(let moment, false)): .retryWait(until: moment)
        case (.active, .retry(let moment, true)): .waitingForConnectivity(until: moment)
        case (.active, .ask(let question)): .awaitingAnswer(question)
        case (.active, .follow): .following
        case (.active, .noRoom(let needed, let kept, let moment)):
            .waitingForDisk(needed: needed, kept: kept, notBefore: moment)
        case (.waitingForDisk(let needed, let kept, let moment), .emptied):
            .waitingForDisk(needed: needed + kept, kept: 0, notBefore: moment)
        case (_, .suspend), (_, .due), (_, .claim), (_, .retry), (_, .ask), (_, .follow), (_, .noRoom), (_, .emptied),
            (_, .answered),
            (_, .interrupted), (_, .cleared), (_, .suspected), (_, .finish), (_, .end):
            nil
        }
    }

    /// When the resource timeout starts to count.
    fileprivate func start(_ now: Timestamp) -> Timestamp {
        if case .delayed(let moment) = self { max(now, moment) } else { now }
    }

    fileprivate var hasBegun: Bool {
        switch self {
        case .delayed, .queued, .quarantined: false
        default: true
        }
    }
}

extension TaskLife {
    /// The state without its data, as the store queries it.
    package enum Phase: String, Hashable, Sendable, CaseIterable {
        case suspended, delayed, queued, active, retryWait, waitingForConnectivity, awaitingAnswer, quarantined
        case waitingForDisk, following

        /// Whether such a task runs, and waits neither for its start time nor for an answer of the app.
        package var waitsForProgress: Bool {
            switch self {
            case .queued, .active, .retryWait, .waitingForConnectivity, .quarantined, .waitingForDisk, .following: true
            case .suspended, .delayed, .awaitingAnswer: false
            }
        }
    }

    /// `nil` for a completed task.
    package var phase: Phase? {
        switch self {
        case .suspended: .suspended
        case .completed: nil
        case .running(let stage, _):
            switch stage {
            case .delayed: .delayed
            case .queued: .queued
            case .quarantined: .quarantined
            case .active: .active
            case .retryWait: .retryWait
            case .waitingForConnectivity: .waitingForConnectivity
            case .waitingForDisk: .waitingForDisk
            case .awaitingAnswer: .awaitingAnswer
            case .following: .following
            }
        }
    }

    /// Whether the task runs, and waits neither for its start time nor for an answer of the app.
    package var waitsForProgress: Bool { phase?.waitsForProgress ?? false }

    /// The state that clients see.
    package var state: TaskState {
        switch self {
        case .suspended: .suspended
        case .running: .running
        case .completed: .completed
        }
    }

    /// The time that the task waits for, if any.
    package var dueAt: Timestamp? {
        switch self {
        case .running(.delayed(let moment), _), .running(.retryWait(let moment), _),
            .running(.waitingForConnectivity(let moment), _):
            moment
        default: nil
        }
    }

    /// When the resource timeout ends.
    package var deadline: Timestamp? { if case .running(_, let deadline) = self { deadline } else { nil } }

    /// The question that the task waits for, if any.
    package var question: QuestionID? {
        switch self {
        case .suspended(_, let question): question
        case .running(.awaitingAnswer(let question), _): question
        default: nil
        }
    }
}
