/// When failed attempts of a launch are repeated.
package struct LaunchSchedule: Hashable, Sendable {
    /// The wait after the first failed attempt, after the second, …; the attempt after the last wait is the last.
    package var delays: [Duration]

    package init(delays: [Duration]) { self.delays = delays }

    /// Of a session's launch: eleven attempts within four days.
    package static let standard = LaunchSchedule(
        delays: [5, 30, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400].map { .seconds($0) })
    /// Of a fetch whose connection failed before any answer: once more.
    package static let fetch = LaunchSchedule(delays: [.seconds(5)])
    /// Of what is tried once.
    package static let once = LaunchSchedule(delays: [])

    /// The most that jitter adds to a delay.
    package static let jitterShare = 0.2
    /// How long after its creation a launch of the standard schedule is attempted at most: all delays with full jitter,
    /// and time for the attempts themselves.
    package static let lifetime = Duration.seconds(4 * 86_400)

    /// The wait before the next attempt.
    ///
    /// - Parameters:
    ///   - attempt: The attempt that just failed, from 1.
    ///   - jitter: A number in `0..<1`. Jitter only adds, so that no attempt is early.
    ///   - retryAfter: What the receiver asked for with 429 or 503; it counts when it is longer.
    /// - Returns: Nil when the attempts are spent.
    package func delay(afterAttempt attempt: Int, jitter: Double, retryAfter: Duration?) -> Duration? {
        guard attempt >= 1, attempt <= delays.count else { return nil }
        let added = Double(delays[attempt - 1].milliseconds) * Self.jitterShare * min(max(0, jitter), 1)
        let delay = delays[attempt - 1] + .milliseconds(Int64(added))
        return max(delay, min(retryAfter ?? .zero, RetryAfter.longest))
    }
}
