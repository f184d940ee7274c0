package import Base

/// A clock that advances only when a test advances it.
package final class ManualClock: Sendable {
    private let time: Locked<(wall: Int64, monotonic: Int64)>

    /// Creates a clock with both times in milliseconds.
    package init(wall: Int64 = 1_800_000_000_000, monotonic: Int64 = 1_000_000) {
        time = Locked((wall, monotonic))
    }

    /// The clock for the tested code.
    package var clock: Clock {
        Clock(wall: { self.time.withLock { $0.wall } }, monotonic: { self.time.withLock { $0.monotonic } })
    }

    package func advance(by milliseconds: Int64) {
        time.withLock {
            $0.wall += milliseconds
            $0.monotonic += milliseconds
        }
    }

    /// Sets the wall clock alone, as an operator does.
    package func setWall(_ milliseconds: Int64) { time.withLock { $0.wall = milliseconds } }
}
