/// A pause that an origin (`scheme://host:port`) has requested of an app.
package struct OriginPause: Hashable, Sendable {
    /// The app that received the response, and the origin.
    package struct Place: Hashable, Sendable {
        let app: Int64
        let origin: String
    }

    package let origin: String
    package let app: Int64
    package var place: Place { Place(app: app, origin: origin) }
    package let end: Timestamp
    package let endForOthers: Timestamp

    package init(_ origin: String, app: Int64, end: Timestamp, endForOthers: Timestamp) {
        (self.origin, self.app, self.end, self.endForOthers) = (origin, app, end, endForOthers)
    }

    /// - Parameter wait: The response's `Retry-After`.
    package init(_ origin: String, app: Int64, retryAfter wait: Duration, at now: Timestamp) {
        self.init(
            origin, app: app, end: now + wait, endForOthers: now + min(wait, OriginPauses.longestForOthers))
    }
}

/// Origin pauses, from responses with 429 or 503.
///
/// The app that received the response is paused for as long as the origin requested, in all its sessions. Other apps
/// are paused for at most a minute, because a problem of one app's account must not stop the rest.
package struct OriginPauses: Hashable, Sendable {
    package static let longestForOthers = Duration.seconds(60)

    private struct Pause: Hashable, Sendable {
        /// The end of the pause of each app that received a response itself.
        var apps: [Int64: Timestamp] = [:]
        /// The end of the pause of all other apps.
        var others: Timestamp
    }

    private var pauses: [String: Pause] = [:]

    package init() {}

    package static func slowsDown(status: Int) -> Bool { status == 429 || status == 503 }

    /// Takes a pause into account. A longer current one stays.
    ///
    /// - Returns: The pause that holds now; `nil` if it held before.
    @discardableResult
    package mutating func note(_ pause: OriginPause) -> OriginPause? {
        let known = pauses[pause.origin]
        var new = known ?? Pause(others: pause.endForOthers)
        let end = max(new.apps[pause.app] ?? pause.end, pause.end)
        new.others = max(new.others, pause.endForOthers)
        new.apps[pause.app] = end
        guard new != known else { return nil }
        pauses[pause.origin] = new
        return OriginPause(pause.origin, app: pause.app, end: end, endForOthers: new.others)
    }

    /// When the app may use the origin again; `nil` for now.
    package func until(_ origin: String, app: Int64, at now: Timestamp) -> Timestamp? {
        guard let pause = pauses[origin] else { return nil }
        let until = max(pause.apps[app] ?? pause.others, pause.others)
        return until > now ? until : nil
    }

    /// Removes ended pauses.
    package mutating func prune(at now: Timestamp) {
        for (origin, var pause) in pauses {
            pause.apps = pause.apps.filter { $0.value > now }
            pauses[origin] = pause.apps.isEmpty && pause.others <= now ? nil : pause
        }
    }

    package var isEmpty: Bool { pauses.isEmpty }
}

/// The ends of origin pauses, for the tasks that wait for them. Ends within a tenth of a second are merged, so that
/// thousands of responses leave at most ten ends per second.
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

    /// Removes ends that have passed.
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
