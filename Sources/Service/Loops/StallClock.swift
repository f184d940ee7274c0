import Base
import Core
import Store

/// When the first session is judged for a stall.
final class StallClock: Sendable {
    private let next = Locked<Timestamp?>(nil)
    private let bell: Doorbell
    private let clock: Clock

    init(clock: Clock) {
        self.clock = clock
        bell = Doorbell(clock: clock)
    }

    /// Notes a moment that a commit has set.
    func note(_ moment: Timestamp) {
        let isEarlier = next.withLock { next in
            if let known = next, known <= moment { return false }
            next = moment
            return true
        }
        if isEarlier { bell.ring() }
    }

    /// Waits until the moment, at most for `limit`.
    ///
    /// - Parameter moment: As the store has it. One that a commit notes meanwhile counts as well.
    func wait(until moment: Timestamp?, atMost limit: Duration) async {
        next.withLock { $0 = moment }
        let delay = min(limit, moment.map { max(.milliseconds(1), $0 - clock.now) } ?? limit)
        await bell.wait(until: clock.monotonic() + delay.milliseconds)
    }
}

extension Service {
    /// Sessions that are judged in one commit.
    private static let judgedAtOnce = 20
    /// The longest time between two looks, after which a moment that another node has set is seen.
    private static let longestPause = Duration.seconds(30)

    /// Records stalls of sessions, and progress that no commit has recorded, until it is cancelled.
    func watchStalls() async {
        var noted: [SessionID: Int64] = [:]
        while !Task.isCancelled {
            let (moving, shortest) = live.progress()
            let now = clock.monotonic()
            noted = noted.filter { now - $0.value < Self.longestPause.milliseconds }
            // A note for each quarter of the shortest interval is enough.
            let period = min(Self.longestPause, max(.milliseconds(100), (shortest ?? Self.longestPause) / 4))
            let unnoted = moving.filter { noted[$0].map { now - $0 >= period.milliseconds } ?? true }
            var next: Timestamp?
            do {
                next = try await store.nextStallCheck()
                let isDue = nodes.isKeeper && next.map { $0 <= clock.now } ?? false
                if isDue || !unnoted.isEmpty {
                    outlet.handle(
                        try await store.judgeStalls(
                            moving: unnoted, watchedSince: startedAt, at: clock.now,
                            limit: nodes.isKeeper ? Self.judgedAtOnce : 0))
                    for session in unnoted { noted[session] = now }
                    next = try await store.nextStallCheck()
                }
                if !nodes.isKeeper { next = nil }
            } catch {
                if Store.Obstacle(error) != .away { log.warning("stalls could not be recorded", ("error", "\(error)")) }
                next = clock.now + .seconds(1)
            }
            await outlet.stalls.wait(until: next, atMost: period)
        }
    }
}
