/// What a session remembers of launching its app, and what follows for it from what happens to its launches.
///
/// The store keeps it in the session's row and changes it in the transaction that stores the cause. Whether to launch
/// says ``LaunchRule``; how a launch lives, ``LaunchState``.
package struct LaunchBook: Hashable, Sendable {
    package var lastSeq: Int64 = 0
    package var acknowledgedSeq: Int64 = 0
    /// The newest `task.didComplete`.
    package var lastCompletionSeq: Int64 = 0
    /// The newest `session.didStall`.
    package var lastStallSeq: Int64 = 0
    /// The last event that an exhausted launch covered.
    package var exhaustedSeq: Int64 = 0
    /// The launch that stands in the way of another.
    package var openLaunch: Int64?
    /// Completions in a row before which nothing was acknowledged; -1 once something was since the last one.
    package var idleCompletions = 0
    /// Before it nothing is launched.
    package var notBefore = Timestamp(milliseconds: 0)

    package init() {}

    /// The question whether to launch, as far as the book knows the answer.
    package func rule(presence: Presence, unfinishedTasks: Int64) -> LaunchRule {
        var rule = LaunchRule()
        rule.isAttached = presence.isAttached
        rule.lastDetachedAt = presence.lastDetachedAt
        rule.hasOpenLaunch = openLaunch != nil
        rule.acknowledgedSeq = acknowledgedSeq
        rule.exhaustedThroughSeq = exhaustedSeq
        rule.lastCompletionSeq = lastCompletionSeq
        rule.lastStallSeq = lastStallSeq
        rule.unfinishedTasks = unfinishedTasks
        rule.notBefore = notBefore
        return rule
    }

    /// Moves the acknowledgement forward.
    ///
    /// - Returns: Whether it moved.
    package mutating func acknowledge(through seq: Int64) -> Bool {
        guard seq > acknowledgedSeq, seq <= lastSeq else { return false }
        acknowledgedSeq = seq
        // The completion that follows counts it up to 0: it is not idle, whether it acknowledges itself or page by page.
        idleCompletions = -1
        return true
    }

    /// A launch was completed, and what its app acknowledged with it is acknowledged.
    ///
    /// Who acknowledges nothing would be launched for the same events at once, again and again: the next launch waits.
    package mutating func completed(_ launch: Int64, at now: Timestamp) {
        closed(launch)
        idleCompletions += 1
        notBefore = now + LaunchRule.backoff(idleCompletions: idleCompletions)
    }

    /// Attempts of a launch have ended without success: from now on newer causes count alone.
    package mutating func exhausted(_ launch: Int64, tellingThrough lastSeq: Int64) {
        closed(launch)
        exhaustedSeq = max(exhaustedSeq, lastSeq)
    }

    /// A launch is not open any more.
    package mutating func closed(_ launch: Int64) {
        if openLaunch == launch { openLaunch = nil }
    }

    /// An exhausted launch is sent again.
    ///
    /// - Throws: ``Refused`` where another one is open, which tells of all that this one would.
    package mutating func reopened(_ launch: Int64) throws(Refused) {
        guard openLaunch == nil || openLaunch == launch else { throw Refused(state: "open", event: "reopen") }
        openLaunch = launch
    }
}
