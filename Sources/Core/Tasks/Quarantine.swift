/// The quarantine of tasks that were in flight when the service crashed: one of them may be the cause, and must not
/// crash the service repeatedly.
///
/// A crash counts against a task until one of its attempts ends by itself, or it has run alone for a while. Kills from
/// outside (SIGKILL, power loss) do not count.
package enum Quarantine {
    package enum Verdict: Hashable, Sendable {
        case goOn
        /// After ``Quarantine/delay``, with no other transfer in flight.
        case runAlone
        case fail
    }

    /// The wait of a suspect, so that other tasks progress between two crashes.
    package static let delay = Duration.seconds(5)
    /// The time alone after which a suspect is cleared. The others wait no longer.
    package static let trial = Duration.seconds(30)

    /// - Parameter crashes: The number of consecutive crashes.
    package static func verdict(after crashes: Int) -> Verdict {
        switch crashes {
        case ..<2: .goOn
        case 2: .runAlone
        default: .fail
        }
    }

    /// The error of a task that crashed the service again while it ran alone.
    package static var error: TaskError {
        TaskError(
            .unknown, "The service crashed three times in a row while the task ran.",
            underlying: TaskError.Underlying(
                domain: "urlsessiond", code: "crashed-service", message: "In the last crash the task ran alone."))
    }
}

/// The turns of suspects, which run alone one at a time. After each the other tasks run for as long as it took.
package struct SoloTurns: Hashable, Sendable {
    private enum State: Hashable {
        case others(until: Timestamp)
        case alone(TaskID, since: Timestamp)
    }

    private var state = State.others(until: Timestamp(milliseconds: .min))

    package init() {}

    /// Whether a task runs alone.
    package var isTaken: Bool { if case .alone = state { true } else { false } }

    /// The next time at which the turn changes by itself.
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

    /// Records that a task is not in flight any more.
    package mutating func ended(_ task: TaskID, at now: Timestamp) {
        guard case .alone(task, let since) = state else { return }
        state = .others(until: now + min(max(now - since, .zero), Quarantine.trial))
    }

    /// The task that has run alone for long enough, if any. The others run beside it from now on.
    package mutating func endTrial(at now: Timestamp) -> TaskID? {
        guard case .alone(let task, let since) = state, now - since >= Quarantine.trial || now < since else {
            return nil
        }
        ended(task, at: now)
        return task
    }
}
