/// The schedule of a launch's retries.
package struct LaunchSchedule: Hashable, Sendable {
    /// The wait after the first failed attempt, after the second, …; the attempt after the last wait is the last one.
    package var delays: [Duration]

    package init(delays: [Duration]) { self.delays = delays }

    /// The schedule of a session's launch: eleven attempts within four days.
    package static let standard = LaunchSchedule(
        delays: [5, 30, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400].map { .seconds($0) })
    /// The schedule of a fetch whose connection failed before any response: one retry.
    package static let fetch = LaunchSchedule(delays: [.seconds(5)])
    /// A single attempt.
    package static let once = LaunchSchedule(delays: [])

    /// The maximum fraction that jitter adds to a delay.
    package static let jitterShare = 0.2
    /// The maximum age of a launch with the standard schedule: all delays with full jitter, and time for the attempts
    /// themselves.
    package static let lifetime = Duration.seconds(4 * 86_400)

    /// The time between the last attempt for which a receiver may ask and the end of attempts.
    package static let reserve = Duration.seconds(60)

    /// The wait before the next attempt.
    ///
    /// - Parameters:
    ///   - attempt: The attempt that has failed, from 1.
    ///   - jitter: A number in `0..<1`. Jitter only adds, so that no attempt is early.
    ///   - retryAfter: The receiver's `Retry-After` with 429 or 503, used if it is longer.
    /// - Returns: `nil` if no attempt is left.
    package func delay(afterAttempt attempt: Int, jitter: Double, retryAfter: Duration?) -> Duration? {
        guard attempt >= 1, attempt <= delays.count else { return nil }
        let added = Double(delays[attempt - 1].milliseconds) * Self.jitterShare * min(max(0, jitter), 1)
        let delay = delays[attempt - 1] + .milliseconds(Int64(added))
        return max(delay, retryAfter ?? .zero)
    }
}
