/// Whether the store takes writes, asked at most once a second, however many want to know.
///
/// Asking costs a commit and a sync, and anybody may ask: it takes no key.
actor StoreProbe<Reason: Sendable> {
    /// Milliseconds for which an answer serves.
    private static var period: Int64 { 1000 }

    private var answer: (at: Int64, reason: Reason?)?
    private var isAsking = false
    private var waiting: [CheckedContinuation<Reason?, Never>] = []

    /// Why the store takes no writes, nil where it does. Who comes while it is asked waits for the same answer.
    ///
    /// - Parameters:
    ///   - now: Monotonic milliseconds.
    ///   - ask: Asks the store.
    func reason(at now: Int64, ask: @Sendable () async -> Reason?) async -> Reason? {
        if let answer, now < answer.at + Self.period { return answer.reason }
        if isAsking { return await withCheckedContinuation { waiting.append($0) } }
        isAsking = true
        let reason = await ask()
        isAsking = false
        answer = (now, reason)
        let served = waiting
        waiting = []
        for continuation in served { continuation.resume(returning: reason) }
        return reason
    }
}
