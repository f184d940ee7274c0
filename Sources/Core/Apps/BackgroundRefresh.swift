package import Formats

/// Background App Refresh of one app: the time of its next fetch, and the open fetch, if any.
///
///     idle ──begin──▶ open ──sent──▶ open, with a deadline ──finished(result)──▶ idle
///                      │                                   └──expired──────────▶ idle   counted as failed
///                      └──abandoned──▶ idle                never sent; counts as nothing
///
/// The clock ends `idle` at ``nextFetchAt(identifier:)``, the app or the deadline ends `open`. After a crash an open
/// fetch that was not sent is abandoned, and one that was sent runs into its deadline.
///
/// The interval is no period: it counts from the last attach or fetch. `newData` resets it to the requested interval,
/// `noData` multiplies it by 1.5 and `failed` by 2, up to a day.
package struct BackgroundRefresh: Shape {
    /// `minimumBackgroundFetchInterval`.
    package enum Interval: Hashable, Sendable {
        case never
        /// The shortest interval that the service allows: ``BackgroundRefresh/shortestInterval``.
        case minimum
        case seconds(Double)
    }

    package enum Result: String, Word, CaseIterable { case newData, noData, failed }

    package struct OpenFetch: Shape {
        package var launchId = ""
        package var beganAt = Timestamp()
        /// The time of the first attempt. A retry does not change it.
        package var sentAt: Timestamp?

        package init() {}

        package mutating func visit(_ members: inout some MemberVisitor) {
            members.member("launchId", &launchId)
            members.member("beganAt", &beganAt)
            members.optional("sentAt", &sentAt)
        }

        package var deadline: Timestamp? { sentAt.map { $0 + BackgroundRefresh.timeLimit } }
    }

    package enum Event: Hashable, Sendable {
        /// The app sets its interval. A different interval resets the adaptation.
        case setInterval(Interval)
        /// A client attached to one of the app's sessions.
        case attached
        /// A fetch starts, due or simulated.
        case begin(launchId: String)
        case sent(launchId: String)
        case finished(launchId: String, Result)
        /// The deadline passed, or the attempts failed.
        case expired(launchId: String)
        /// The fetch will not be sent: parked, force-quit, denied or interrupted.
        case abandoned(launchId: String)
        /// Fetches are possible again, for example because the service started or the webhook was enabled.
        case becameAvailable
    }

    package static let shortestInterval = 900.0
    /// In seconds; the maximum of the adapted interval, not of a requested one.
    package static let longestInterval = 86_400.0
    package static let timeLimit = Duration.seconds(30)
    /// The granularity of fetch times, so that fetches of many apps coincide and the service wakes up less often.
    package static let tick = Duration.seconds(60)
    /// The part of an interval over which apps are spread.
    package static let phaseShare = 0.1

    package private(set) var interval = Interval.never
    /// The factor by which results lengthen the requested interval; at least 1.
    package private(set) var stretch = 1.0
    /// The moving average of the duration of fetches, in seconds.
    package private(set) var averageDuration = 0.0
    package private(set) var intervalSetAt: Timestamp?
    package private(set) var lastAttachedAt: Timestamp?
    package private(set) var lastFetchAt: Timestamp?
    /// The earliest next fetch after skipped ones, which are not made up for.
    package private(set) var notBefore: Timestamp?
    package private(set) var previousResult: Result?
    package private(set) var open: OpenFetch?
    /// The last ended fetch, to recognize a repeated answer.
    package private(set) var lastFinished: Finished?

    package struct Finished: Shape {
        package var launchId = ""
        /// The app's answer in time; `nil` without one.
        package var result: Result?

        package init() {}

        package mutating func visit(_ members: inout some MemberVisitor) {
            members.member("launchId", &launchId)
            members.optional("result", &result)
        }
    }

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("interval", &interval)
        members.member("stretch", &stretch)
        members.member("averageDuration", &averageDuration)
        members.optional("intervalSetAt", &intervalSetAt)
        members.optional("lastAttachedAt", &lastAttachedAt)
        members.optional("lastFetchAt", &lastFetchAt)
        members.optional("notBefore", &notBefore)
        members.optional("previousResult", &previousResult)
        members.optional("open", &open)
        members.optional("lastFinished", &lastFinished)
    }

    /// Applies an event to the refresh.
    ///
    /// - Parameter identifier: The app's identifier, which determines its phase.
    /// - Returns: Whether anything changed. A repeated answer in time changes nothing.
    /// - Throws: ``Refused`` if the event does not fit: a fetch while one is open, or a late or foreign answer (409
    ///   `fetch-late`). Nothing has changed then.
    @discardableResult
    package mutating func handle(
        _ event: Event, identifier: String, at now: Timestamp
    ) throws(Refused) -> Bool {
        switch event {
        case .setInterval(let interval):
            guard interval != self.interval else { return false }
            self.interval = interval
            (stretch, averageDuration, notBefore) = (1, 0, nil)
            intervalSetAt = now
        case .attached:
            lastAttachedAt = now
        case .begin(let launchId):
            guard open == nil else { throw Refused("open", event) }
            open = OpenFetch {
                $0.launchId = launchId
                $0.beganAt = now
            }
            notBefore = nil
        case .sent(let launchId):
            guard isOpen(launchId) else { throw Refused(stateName, event) }
            if open?.sentAt == nil { open?.sentAt = now }
        case .finished(let launchId, let result):
            return try finish(launchId, result, event, at: now)
        case .expired(let launchId):
            guard isOpen(launchId) else { throw Refused(stateName, event) }
            end(.failed, answered: nil, at: now)
        case .abandoned(let launchId):
            guard isOpen(launchId) else { throw Refused(stateName, event) }
            open = nil
        case .becameAvailable:
            return skipMissed(identifier, at: now)
        }
        return true
    }

    private mutating func finish(
        _ launchId: String, _ result: Result, _ event: Event, at now: Timestamp
    ) throws(Refused) -> Bool {
        if isOpen(launchId), let deadline = open?.deadline, now <= deadline {
            end(result, answered: result, at: now)
            return true
        }
        guard let lastFinished, lastFinished.result != nil, lastFinished.launchId.utf8.elementsEqual(launchId.utf8)
        else { throw Refused(stateName, event) }
        return false
    }

    private mutating func end(_ result: Result, answered: Result?, at now: Timestamp) {
        guard let open else { return }
        let took = now - (open.sentAt ?? open.beganAt)
        let limited = min(max(0, took.seconds), Self.timeLimit.seconds)
        averageDuration = averageDuration == 0 ? limited : (averageDuration + limited) / 2
        switch result {
        case .newData: stretch = 1
        case .noData: stretch = min(stretch * 1.5, Self.longestInterval)
        case .failed: stretch = min(stretch * 2, Self.longestInterval)
        }
        previousResult = result
        lastFetchAt = now
        lastFinished = Finished {
            $0.launchId = open.launchId
            $0.result = answered
        }
        self.open = nil
    }

    /// Skips fetches that fell due while none was possible: the next one is due one or more intervals later.
    private mutating func skipMissed(_ identifier: String, at now: Timestamp) -> Bool {
        guard let due = nextFetchAt(identifier: identifier), let interval = effectiveInterval, due < now
        else { return false }
        let length = Int64(interval * 1000)
        let missed = ((now - due).milliseconds + length - 1) / length
        notBefore = due + .milliseconds(missed * length)
        return true
    }
}

extension BackgroundRefresh {
    /// The adapted interval between the last attach or fetch and the next one, in seconds; `nil` if there is none.
    package var effectiveInterval: Double? {
        let asked: Double
        switch interval {
        case .never: return nil
        case .minimum: asked = Self.shortestInterval
        case .seconds(let seconds): asked = seconds > Self.shortestInterval ? seconds : Self.shortestInterval
        }
        // Slow answers reduce the frequency of fetches.
        let slowness = averageDuration > Self.timeLimit.seconds / 2 ? 1.25 : 1
        // Ten years, to prevent an overflow by an extreme interval.
        return min(max(asked, min(asked * stretch * slowness, Self.longestInterval)), 315_360_000)
    }

    /// The due time of the next fetch according to the app's own history; `nil` if there is none.
    ///
    /// Never within the interval after the last attach or fetch. Up to a tenth of it is added, by the app's identifier,
    /// and the result is rounded up to a tick. The caller checks conditions, status and webhook.
    package func nextFetchAt(identifier: String) -> Timestamp? {
        guard open == nil, let interval = effectiveInterval,
            let base = [intervalSetAt, lastAttachedAt, lastFetchAt].compactMap({ $0 }).max()
        else { return nil }
        let phase = interval * Self.phaseShare * Spreading.fraction(identifier)
        let due = base + .milliseconds(Int64((interval + phase) * 1000))
        return max(due, notBefore ?? due).roundedUp(to: Self.tick)
    }

    private var stateName: String { open == nil ? "idle" : "open" }

    private func isOpen(_ launchId: String) -> Bool {
        open.map { $0.launchId.utf8.elementsEqual(launchId.utf8) } ?? false
    }
}

extension BackgroundRefresh.Interval: MemberValue {
    package static var kind: String { "\"never\", \"minimum\" or a number of seconds" }

    package static func read(_ json: JSON, _ rule: Never?, _ position: JSONPosition) -> Self? {
        switch json {
        case .string("never"): .never
        case .string("minimum"): .minimum
        default: json.numberValue.map(Self.seconds) ?? position.reject(kind, json)
        }
    }

    package func write(to writer: inout JSONWriter) {
        switch self {
        case .never: writer.string("never")
        case .minimum: writer.string("minimum")
        case .seconds(let seconds): writer.value(seconds)
        }
    }
}

extension Timestamp {
    /// The next multiple of a duration since 1970; the moment itself if it is a multiple.
    func roundedUp(to duration: Duration) -> Timestamp {
        let length = duration.milliseconds
        let (quotient, remainder) = milliseconds.flooredDivision(by: length)
        guard remainder > 0 else { return self }
        let (product, overflow) = (quotient + 1).multipliedReportingOverflow(by: length)
        return overflow ? self : Timestamp(milliseconds: product)
    }
}
