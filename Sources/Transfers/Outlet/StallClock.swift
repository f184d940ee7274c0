import Base
package import Core
import Store

/// The time at which the next session is checked for a stall.
package final class StallClock: Sendable {
    private let next = Locked<Timestamp?>(nil)
    private let bell: Doorbell
    private let clock: Clock

    init(clock: Clock) {
        self.clock = clock
        bell = Doorbell(clock: clock)
    }

    /// Notes a time that a commit has set.
    func note(_ moment: Timestamp) {
        let isEarlier = next.withLock { next in
            if let known = next, known <= moment { return false }
            next = moment
            return true
        }
        if isEarlier { bell.ring() }
    }

    /// Waits until `moment`, at most for `limit`.
    ///
    /// - Parameter moment: As read from the store. An earlier one that a commit notes meanwhile counts as well.
    package func wait(until moment: Timestamp?, atMost limit: Duration) async {
        next.withLock { $0 = moment }
        let delay = min(limit, moment.map { max(.milliseconds(1), $0 - clock.now) } ?? limit)
        await bell.wait(until: clock.monotonic() + delay.milliseconds)
    }
}
