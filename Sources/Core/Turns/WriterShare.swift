/// How much of the writer's time cleaning may take: a quarter while requests write, all of it while none does.
package struct WriterShare: Hashable, Sendable {
    /// For this long after a write of a request, in milliseconds, cleaning keeps to its quarter: the next request of the same
    /// client, which still waits for a core or a reader, would else find the machine busy.
    private static let memory: Int64 = 1000

    private var seenWrites = 0
    private var othersSeenAt: Int64?

    package init() {}

    /// Writes that were cleaning's own, besides those that ``rest(after:writes:)`` is told of.
    package mutating func leaveOut(_ writes: Int) { seenWrites += writes }

    /// How long to rest after a piece of work.
    ///
    /// - Parameters:
    ///   - duration: How long the writer was busy with it.
    ///   - writes: All writes so far, this one included.
    ///   - now: Monotonic, in milliseconds.
    package mutating func rest(after duration: Duration, writes: Int, at now: Int64) -> Duration {
        if writes - seenWrites > 1 { othersSeenAt = now }
        seenWrites = writes
        guard let othersSeenAt, now - othersSeenAt < Self.memory else { return .zero }
        return duration * 3
    }
}
