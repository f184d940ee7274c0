/// The slots for webhook attempts.
///
/// A slot covers the start of an attempt: an attempt without a response after ``patience`` continues without a slot.
/// Silent receivers therefore delay others by at most that time, whatever their number. Some slots are reserved for
/// apps with nothing in flight. An app whose last attempt got no response has one slot until an attempt gets one.
package struct LaunchSlots: Sendable {
    /// The maximum number of attempts that hold a slot.
    package static let total = 64
    /// The number of slots reserved for apps with nothing in flight.
    package static let kept = 16
    package static let perWebhook = 4
    package static let patience = Duration.seconds(1)

    /// Attempts that hold a slot, the oldest first, with monotonic times in milliseconds.
    private var holders: [(launch: Int64, since: Int64)] = []
    private var underWay: [AppID: Int] = [:]
    private var silent: Set<AppID> = []
    /// The number of attempts begun. The app that began the last one is served last.
    package private(set) var turn: Int64 = 0

    package init() {}

    /// The number of apps with an attempt in flight.
    package var busyApps: Int { underWay.count }

    package var hasFree: Bool { holders.count < Self.total }

    package func underWay(of app: AppID) -> Int { underWay[app] ?? 0 }

    /// Whether the app may start another attempt.
    ///
    /// - Parameter places: The limit by its circuit breaker.
    package func hasRoom(for app: AppID, places: Int = perWebhook) -> Bool {
        let busy = underWay(of: app)
        let places = min(places, silent.contains(app) ? 1 : Self.perWebhook)
        return busy < places && holders.count < (busy == 0 ? Self.total : Self.total - Self.kept)
    }

    package mutating func began(_ launch: Int64, of app: AppID, at now: Int64) {
        holders.append((launch, now))
        underWay[app, default: 0] += 1
        turn += 1
    }

    /// - Parameter wasAnswered: Whether the receiver sent a status; `nil` if that is unknown.
    package mutating func ended(_ launch: Int64, of app: AppID, wasAnswered: Bool?) {
        holders.removeAll { $0.launch == launch }
        let left = underWay(of: app) - 1
        underWay[app] = left > 0 ? left : nil
        switch wasAnswered {
        case true?: silent.remove(app)
        case false?: silent.insert(app)
        case nil: break
        }
    }

    /// Releases the slots of attempts that have waited long.
    ///
    /// - Returns: The time at which the next slot is released, or `nil` if no slot is held.
    package mutating func takeBack(at now: Int64) -> Int64? {
        let patience = Self.patience.milliseconds
        holders.removeAll { $0.since + patience <= now }
        return holders.first.map { $0.since + patience }
    }
}
