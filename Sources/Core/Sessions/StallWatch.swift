/// Whether the running tasks of a session make progress, and whether the app was told that they make none.
///
///                        progress                    progress
///                 ┌────────────────────┐      ┌───────────────────┐
///                 ▼                    │      ▼                   │
///     idle ── a task runs ──▶ watched ─┴── interval over ──▶ stalled
///       ▲                        │                              │
///       └──── no task runs ──────┴──────────────────────────────┘
///
/// The store keeps the value in the session's row. The loop that reads ``checkAt`` moves it on; after a crash the row
/// says when.
package struct StallWatch: Hashable, Sendable {
    package enum Verdict: Hashable, Sendable {
        /// Record the stall.
        case stalled(since: Timestamp)
        /// Judge the session again at ``StallWatch/checkAt``, if there is such a moment.
        case notYet
    }

    /// How long no running task may make progress; `nil` for ever.
    package var interval: Duration?
    /// The last progress, or the last moment at which a task began to wait for progress.
    package var progressedAt = Timestamp(milliseconds: 0)
    /// Whether the stall was recorded, and no task has made progress since.
    package var isStalled = false
    /// When the session is judged next. Progress does not move it: the judgement does, which keeps its index still.
    package var checkAt: Timestamp?

    package init() {}

    /// A task received or sent bytes that it keeps, or completed.
    package mutating func progressed(at now: Timestamp) {
        isStalled = false
        progressedAt = now
    }

    /// A task began to run, or to run again after a wait that the app asked for: its interval begins.
    package mutating func began(at now: Timestamp) { progressedAt = now }

    /// Judges the session only while tasks of it run.
    package mutating func follow(runningTasks: Int64) {
        guard runningTasks > 0, let interval else { return checkAt = nil }
        if !isStalled, checkAt == nil { checkAt = progressedAt + interval }
    }

    /// Judges the session at its moment.
    ///
    /// - Parameters:
    ///   - watchedSince: When the service began to run: it makes no progress while it does not.
    ///   - areWaiting: Whether any running task waits for progress, and not for its time or an answer of the app.
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
