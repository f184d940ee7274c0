/// The rule for launching a session's app, evaluated in the transaction that appends an event or detaches a client.
package struct LaunchRule: Hashable, Sendable {
    /// The reasons of a launch. A set, stored as bits.
    package struct Reasons: OptionSet, Hashable, Sendable {
        package let rawValue: Int
        package init(rawValue: Int) { self.rawValue = rawValue }

        package static let tasksFinished = Reasons(rawValue: 1)
        package static let authenticationRequired = Reasons(rawValue: 2)
        package static let delayedRequestReady = Reasons(rawValue: 4)
        package static let tasksStalled = Reasons(rawValue: 8)
        package static let setPublished = Reasons(rawValue: 16)
        package static let setFailed = Reasons(rawValue: 32)
    }

    package enum Verdict: Hashable, Sendable {
        /// Create a launch.
        case launch(Reasons)
        /// A launch is open: it gets the reasons, and nothing is sent.
        case join(Reasons)
        /// There is a cause, but it is too early: evaluate again at this time, or after a detachment if it is `nil`.
        case notNow(until: Timestamp?)
        /// There is no cause.
        case no
    }

    /// The grace period after the last detachment, in which no launch is created: the client may only be reconnecting.
    package static let grace = Duration.seconds(5)
    /// The longest wait after completions that acknowledged nothing.
    static let longestBackoff = Duration.seconds(600)

    package var sendsLaunchEvents = true
    package var isAttached = false
    /// When the last client detached, or the service started; `nil` for never.
    package var lastDetachedAt: Timestamp?
    package var hasOpenLaunch = false
    package var acknowledgedSeq: Int64 = 0
    /// The last event that an exhausted launch covered.
    package var exhaustedThroughSeq: Int64 = 0
    /// The newest `task.didComplete`.
    package var lastCompletionSeq: Int64 = 0
    /// Tasks that are running or canceling; suspended ones do not count.
    package var unfinishedTasks: Int64 = 0
    /// Versions of sets that may still be published.
    package var versionsInFlight: Int64 = 0
    /// The newest `set.didPublish` and `set.didFail`; 0 for none.
    package var lastPublicationSeq: Int64 = 0
    package var lastSetFailureSeq: Int64 = 0
    /// The newest event of an unanswered challenge, and of an unanswered delayed request; 0 for none.
    package var unansweredChallengeSeq: Int64 = 0
    package var unansweredDelayedRequestSeq: Int64 = 0
    /// The newest `session.didStall`; 0 for none.
    package var lastStallSeq: Int64 = 0
    /// The earliest launch after a completion that acknowledged nothing; see ``backoff(idleCompletions:)``.
    package var notBefore: Timestamp?

    package init() {}

    /// Evaluates the rule. Pure. The checks are in the specification's order.
    ///
    /// Times so far ahead that the clock must have been set back since do not count. A detachment may be a little ahead
    /// of `now`, because it may follow the beginning of the transaction, or another node's clock records it.
    package func evaluate(at now: Timestamp) -> Verdict {
        let reasons = reasons
        guard sendsLaunchEvents, !reasons.isEmpty else { return .no }
        if hasOpenLaunch { return .join(reasons) }
        if isAttached { return .notNow(until: nil) }
        let detachedAt = lastDetachedAt.flatMap { $0 <= now + Self.grace ? $0 : nil }
        let earliest = notBefore.flatMap { $0 <= now + Self.longestBackoff + Self.grace ? $0 : nil }
        let free = [detachedAt.map { $0 + Self.grace }, earliest].compactMap { $0 }.max()
        if let free, now < free { return .notNow(until: free) }
        return .launch(reasons)
    }

    /// Causes newer than the acknowledgement and the last exhausted launch.
    package var reasons: Reasons {
        let known = max(acknowledgedSeq, exhaustedThroughSeq)
        var reasons: Reasons = []
        if unfinishedTasks == 0, versionsInFlight == 0 {
            if lastCompletionSeq > known { reasons.insert(.tasksFinished) }
            if lastPublicationSeq > known { reasons.insert(.setPublished) }
            if lastSetFailureSeq > known { reasons.insert(.setFailed) }
        }
        if unansweredChallengeSeq > known { reasons.insert(.authenticationRequired) }
        if unansweredDelayedRequestSeq > known { reasons.insert(.delayedRequestReady) }
        if lastStallSeq > known { reasons.insert(.tasksStalled) }
        return reasons
    }

    /// The wait after consecutive completions without an acknowledgement: 5 s, doubling to ``longestBackoff``; none
    /// after 0.
    package static func backoff(idleCompletions: Int) -> Duration {
        guard idleCompletions > 0 else { return .zero }
        return min(longestBackoff, .seconds(5 << min(idleCompletions - 1, 7)))
    }
}
