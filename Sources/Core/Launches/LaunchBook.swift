/// The launch state of a session, and the consequences of its launches' events.
///
/// The store keeps it in the session's row and changes it in the transaction that stores the cause. ``LaunchRule``
/// decides whether to launch, ``LaunchState`` is the life of a launch.
package struct LaunchBook: Hashable, Sendable {
    package var lastSeq: Int64 = 0
    package var acknowledgedSeq: Int64 = 0
    /// The newest `task.didComplete`.
    package var lastCompletionSeq: Int64 = 0
    /// The newest `session.didStall`.
    package var lastStallSeq: Int64 = 0
    /// The newest `set.didPublish` and `set.didFail`.
    package var lastPublicationSeq: Int64 = 0
    package var lastSetFailureSeq: Int64 = 0
    /// Versions of sets that may still be published: the launch waits for them.
    package var versionsInFlight: Int64 = 0
    /// The last event that an exhausted launch covered.
    package var exhaustedSeq: Int64 = 0
    /// The open launch, which prevents another one.
    package var openLaunch: Int64?
    /// The number of idle completions in a row; -1 after an acknowledgement.
    package var idleCompletions = 0
    /// The earliest time of the next launch.
    package var notBefore = Timestamp(milliseconds: 0)

    package init() {}

    /// The launch rule with the inputs that the book contains.
    package func rule(presence: Presence, unfinishedTasks: Int64) -> LaunchRule {
        var rule = LaunchRule()
        rule.isAttached = presence.isAttached
        rule.lastDetachedAt = presence.lastDetachedAt
        rule.hasOpenLaunch = openLaunch != nil
        rule.acknowledgedSeq = acknowledgedSeq
        rule.exhaustedThroughSeq = exhaustedSeq
        rule.lastCompletionSeq = lastCompletionSeq
        rule.lastStallSeq = lastStallSeq
        rule.lastPublicationSeq = lastPublicationSeq
        rule.lastSetFailureSeq = lastSetFailureSeq
        rule.versionsInFlight = versionsInFlight
        rule.unfinishedTasks = unfinishedTasks
        rule.notBefore = notBefore
        return rule
    }

    /// Advances the acknowledgement.
    ///
    /// - Returns: Whether it advanced.
    package mutating func acknowledge(through seq: Int64) -> Bool {
        guard seq > acknowledgedSeq, seq <= lastSeq else { return false }
        acknowledgedSeq = seq
        // The following completion increases it to 0: it is not idle, whether its app acknowledges at once or in pages.
        idleCompletions = -1
        return true
    }

    /// Records the completion of a launch, after its acknowledgement.
    ///
    /// Delays the next launch, because an app that acknowledges nothing would be launched again at once.
    package mutating func completed(_ launch: Int64, at now: Timestamp) {
        closed(launch)
        idleCompletions += 1
        notBefore = now + LaunchRule.backoff(idleCompletions: idleCompletions)
    }

    /// Records that a launch is exhausted: only newer causes create another launch.
    package mutating func exhausted(_ launch: Int64, tellingThrough lastSeq: Int64) {
        closed(launch)
        exhaustedSeq = max(exhaustedSeq, lastSeq)
    }

    /// Records that a launch is not open any more.
    package mutating func closed(_ launch: Int64) {
        if openLaunch == launch { openLaunch = nil }
    }

    /// Records that an exhausted launch is redelivered.
    ///
    /// - Throws: ``Refused`` if another launch is open, which covers all events of this one.
    package mutating func reopened(_ launch: Int64) throws(Refused) {
        guard openLaunch == nil || openLaunch == launch else { throw Refused(state: "open", event: "reopen") }
        openLaunch = launch
    }
}
