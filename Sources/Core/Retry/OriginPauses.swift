/// Origins that asked for less with 429 or 503: whom they hold back, and until when.
///
/// The app that was told waits for as long as the origin says, in all its sessions; other apps for at most a minute,
/// since one app's trouble with its account must not stop the rest.
package struct OriginPauses: Hashable, Sendable {
    package static let longestForOthers = Duration.seconds(60)

    private struct Pause: Hashable, Sendable {
        /// Until when each app is held back that was told so itself.
        var apps: [Int64: Timestamp] = [:]
        /// Until when everybody else is.
        var others: Timestamp
    }

    private var pauses: [String: Pause] = [:]

    package init() {}

    package static func slowsDown(status: Int) -> Bool { status == 429 || status == 503 }

    /// Notes an answer's `Retry-After`. A longer pause that is running already stays.
    package mutating func note(_ origin: String, app: Int64, retryAfter wait: Duration, at now: Timestamp) {
        let forOthers = now + min(wait, Self.longestForOthers)
        var pause = pauses[origin] ?? Pause(others: forOthers)
        pause.others = max(pause.others, forOthers)
        pause.apps[app] = max(pause.apps[app] ?? now, now + wait)
        pauses[origin] = pause
    }

    /// When the app may go to the origin again; nil for at once.
    package func until(_ origin: String, app: Int64, at now: Timestamp) -> Timestamp? {
        guard let pause = pauses[origin] else { return nil }
        let until = max(pause.apps[app] ?? pause.others, pause.others)
        return until > now ? until : nil
    }

    /// Forgets what is over.
    package mutating func prune(at now: Timestamp) {
        for (origin, var pause) in pauses {
            pause.apps = pause.apps.filter { $0.value > now }
            pauses[origin] = pause.apps.isEmpty && pause.others <= now ? nil : pause
        }
    }

    package var isEmpty: Bool { pauses.isEmpty }
}

/// When origins may be asked again, for the tasks that wait for it. Ends within a tenth of a second are one, so that answers
/// by the thousand leave no more than their Retry-After has tenths.
package struct PauseEnds: Sendable {
    private static let grain = Duration.milliseconds(100)

    private var queue = Heap<Timestamp>()
    private var known: Set<Timestamp> = []

    package init() {}

    package var next: Timestamp? { queue.least }

    package var count: Int { known.count }

    package mutating func insert(_ end: Timestamp) {
        let end = end.roundedUp(to: Self.grain)
        if known.insert(end).inserted { queue.insert(end) }
    }

    /// Forgets ends that have come.
    ///
    /// - Returns: Whether there was one.
    package mutating func removePast(at now: Timestamp) -> Bool {
        var hasAny = false
        while let first = queue.least, first <= now {
            _ = queue.popLeast()
            known.remove(first)
            hasAny = true
        }
        return hasAny
    }
}
