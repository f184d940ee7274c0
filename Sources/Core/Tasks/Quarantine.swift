/// What becomes of tasks that were under way when the service crashed: one of them may be the cause, and must not keep the
/// service down.
///
/// A crash counts against a task until an attempt of it ends by itself, or it has run alone for a while. What kills without
/// a fault of the service's own (SIGKILL, power) counts nothing.
package enum Quarantine {
    package enum Verdict: Hashable, Sendable {
        case goOn
        /// Once ``Quarantine/delay`` is over, with nothing beside it.
        case runAlone
        case fail
    }

    /// How long a suspect waits, so that the others get on between two crashes.
    package static let delay = Duration.seconds(5)
    /// How long a suspect has to run alone before it is cleared. The others wait no longer.
    package static let trial = Duration.seconds(30)

    /// - Parameter crashes: In a row.
    package static func verdict(after crashes: Int) -> Verdict {
        switch crashes {
        case ..<2: .goOn
        case 2: .runAlone
        default: .fail
        }
    }

    /// How a task ends that crashed the service once more while it ran alone.
    package static var error: TaskError {
        TaskError(
            .unknown, "The service crashed three times in a row while the task was under way.",
            underlying: TaskError.Underlying(
                domain: "urlsessiond", code: "crashed-service", message: "The last time nothing else was under way."))
    }
}

/// Whose turn it is while tasks have to run alone: one at a time, and afterwards the others for as long as it took.
package struct SoloTurns: Hashable, Sendable {
    private enum State: Hashable {
        case others(until: Timestamp)
        case alone(TaskID, since: Timestamp)
    }

    private var state = State.others(until: Timestamp(milliseconds: .min))

    package init() {}

    /// Whether a task runs that nothing may run beside.
    package var isTaken: Bool { if case .alone = state { true } else { false } }

    /// The next moment at which something changes by itself.
    package var next: Timestamp? {
        switch state {
        case .others(let until): until.milliseconds > .min ? until : nil
        case .alone(_, let since): since + Quarantine.trial
        }
    }

    package func mayBegin(at now: Timestamp) -> Bool {
        if case .others(let until) = state { until <= now } else { false }
    }

    package mutating func begin(_ task: TaskID, at now: Timestamp) { state = .alone(task, since: now) }

    /// A task is not under way any more.
    package mutating func ended(_ task: TaskID, at now: Timestamp) {
        guard case .alone(task, let since) = state else { return }
        state = .others(until: now + min(max(now - since, .zero), Quarantine.trial))
    }

    /// The task that has run alone for long enough. The others go on beside it.
    package mutating func endTrial(at now: Timestamp) -> TaskID? {
        guard case .alone(let task, let since) = state, now - since >= Quarantine.trial || now < since else {
            return nil
        }
        ended(task, at: now)
        return task
    }
}
