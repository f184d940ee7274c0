/// Whether the running tasks of a session make progress, and whether a stall was reported.
///
///                        progress                    progress
///                 ┌────────────────────┐      ┌───────────────────┐
///                 ▼                    │      ▼                   │
///     idle ── a task runs ──▶ watched ─┴── interval over ──▶ stalled
///       ▲                        │                              │
///       └──── no task runs ──────┴──────────────────────────────┘
///
/// The store keeps the value in the session's row. The loop that reads ``checkAt`` advances it; after a crash the row
/// has the time.
package struct StallWatch: Hashable, Sendable {
    package enum Verdict: Hashable, Sendable {
        /// Record the stall.
        case stalled(since: Timestamp)
        /// Judge the session again at ``StallWatch/checkAt``, if there is such a moment.
        case notYet
    }

    /// The maximum time without progress; `nil` for no limit.
    package var interval: Duration?
    /// The last progress, or the last time at which a task began to wait for progress.
    package var progressedAt = Timestamp(milliseconds: 0)
    /// Whether the stall was recorded, and no task has made progress since.
    package var isStalled = false
    /// When the session is judged next. Only a judgement changes it, not progress, so that its index is rarely written.
    package var checkAt: Timestamp?

    package init() {}

    /// Records that a task received or sent bytes that it keeps, or completed.
    package mutating func progressed(at now: Timestamp) {
        isStalled = false
        progressedAt = now
    }

    /// Records that a task began to run, or continued after a wait requested by the app: its interval begins.
    package mutating func began(at now: Timestamp) { progressedAt = now }

    /// Schedules checks only while tasks of the session run.
    package mutating func follow(runningTasks: Int64) {
        guard runningTasks > 0, let interval else { return checkAt = nil }
        if !isStalled, checkAt == nil { checkAt = progressedAt + interval }
    }

    /// Judges the session at ``checkAt``.
    ///
    /// - Parameters:
    ///   - watchedSince: When the service started: the time before does not count.
    ///   - areWaiting: Whether any running task waits for progress, not for its start time or an answer of the app.
    package mutating func judge(watchedSince: Timestamp, areWaiting: Bool, at now: Timestamp) -> Verdict {
        guard let interval, !isStalled else {
            checkAt = nil
            return .notYet
        }
        guard areWaiting else {
            progressedAt = now
            checkAt = now + interval
            return .notYet
        }
        let due = max(progressedAt, watchedSince) + interval
        guard now >= due else {
            checkAt = due
            return .notYet
        }
        isStalled = true
        checkAt = nil
        return .stalled(since: progressedAt)
    }
}
