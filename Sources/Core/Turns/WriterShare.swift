/// The janitor's share of the writer's time: a quarter while requests write, all of it otherwise.
package struct WriterShare: Hashable, Sendable {
    /// The time after a request's write, in milliseconds, for which the janitor keeps to its quarter: otherwise the
    /// client's next request, which still waits for a core or a reader, would find the machine busy.
    private static let memory: Int64 = 1000

    private var seenWrites = 0
    private var othersSeenAt: Int64?

    package init() {}

    /// Excludes writes of the janitor that ``rest(after:writes:)`` does not include.
    package mutating func leaveOut(_ writes: Int) { seenWrites += writes }

    /// The pause after a step.
    ///
    /// - Parameters:
    ///   - duration: The time on the writer's thread.
    ///   - writes: The total number of writes, including this one.
    ///   - now: Monotonic, in milliseconds.
    package mutating func rest(after duration: Duration, writes: Int, at now: Int64) -> Duration {
        if writes - seenWrites > 1 { othersSeenAt = now }
        seenWrites = writes
        guard let othersSeenAt, now - othersSeenAt < Self.memory else { return .zero }
        return duration * 3
    }
}
