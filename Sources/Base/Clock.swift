import Glibc

/// The two clocks of the service, as a value that tests can replace.
package struct Clock: Sendable {
    /// Milliseconds since 1970 UTC. Jumps when the clock is set.
    package let wall: @Sendable () -> Int64
    /// Milliseconds of a clock that only moves forward, suspended time included (`CLOCK_BOOTTIME`).
    package let monotonic: @Sendable () -> Int64

    package init(wall: @escaping @Sendable () -> Int64, monotonic: @escaping @Sendable () -> Int64) {
        self.wall = wall
        self.monotonic = monotonic
    }

    /// The clocks of the machine. The corresponding C function is `clock_gettime`.
    package static let system = Clock(
        wall: { milliseconds(of: CLOCK_REALTIME) },
        monotonic: { milliseconds(of: CLOCK_BOOTTIME) })

    private static func milliseconds(of clock: clockid_t) -> Int64 {
        var time = timespec()
        let code = clock_gettime(clock, &time)
        precondition(code == 0, "clock_gettime: \(errno)")
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}
