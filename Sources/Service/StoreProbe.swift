/// The reason why the service accepts no work.
package struct Unreadiness: Sendable {
    package let error: ServiceError
    /// For people.
    package let detail: String
}

/// Whether the store accepts writes, tested at most once a second for any number of callers.
///
/// The test costs a commit and a sync, and its route requires no key.
actor StoreProbe {
    /// Milliseconds for which a result is reused.
    static let period: Int64 = 1000

    private var answer: (at: Int64, reason: Unreadiness?)?
    private var isAsking = false
    private var waiting: [CheckedContinuation<Unreadiness?, Never>] = []

    /// Why the store accepts no writes, nil if it does. A call during a test waits for the result of that test.
    ///
    /// - Parameters:
    ///   - now: Monotonic milliseconds.
    ///   - ask: Tests the store.
    func reason(at now: Int64, ask: @Sendable () async -> Unreadiness?) async -> Unreadiness? {
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
