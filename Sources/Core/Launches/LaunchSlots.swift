/// Who may send a webhook now.
///
/// A slot is for an attempt's beginning: who has not answered after ``patience`` waits on without one. So receivers that
/// accept and say nothing delay the others by that at most, however many they are. Some slots are kept for apps with
/// nothing under way, and an app whose last attempt was not answered has one place until one is.
package struct LaunchSlots: Sendable {
    /// Attempts under way at once that have not waited long.
    package static let total = 64
    /// Of these, how many only an app with nothing under way gets.
    package static let kept = 16
    package static let perWebhook = 4
    package static let patience = Duration.seconds(1)

    /// Attempts that hold a slot, the oldest first; moments of the monotonic clock in milliseconds.
    private var holders: [(launch: Int64, since: Int64)] = []
    private var underWay: [AppID: Int] = [:]
    private var silent: Set<AppID> = []
    /// How many attempts have begun. The app that began one last is served last.
    package private(set) var turn: Int64 = 0

    package init() {}

    /// Apps with an attempt under way.
    package var busyApps: Int { underWay.count }

    package var hasFree: Bool { holders.count < Self.total }

    package func underWay(of app: AppID) -> Int { underWay[app] ?? 0 }

    /// Whether the app may begin another attempt.
    ///
    /// - Parameter places: How many its breaker leaves it.
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

    /// - Parameter wasAnswered: Whether the receiver sent a status; nil if that is unknown.
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

    /// Takes the slots of those that have waited long.
    ///
    /// - Returns: The time at which the next lease ends, or nil if no slot is held.
    package mutating func takeBack(at now: Int64) -> Int64? {
        let patience = Self.patience.milliseconds
        holders.removeAll { $0.since + patience <= now }
        return holders.first.map { $0.since + patience }
    }
}
