/// Wakes a loop that waits for work.
///
/// Rings coalesce, and a ring without a waiting loop is remembered for the next wait: a ring after a commit ensures
/// that the loop checks the store again. If several loops wait, a ring wakes all of them.
package final class Doorbell: Sendable {
    private struct State {
        var isRung = false
        var lastWaiter: UInt64 = 0
        var waiters: [UInt64: CheckedContinuation<Bool, Never>] = [:]
    }

    private let clock: Clock
    private let state = Locked(State())

    package init(clock: Clock = .system) { self.clock = clock }

    /// Wakes the waiting loops, or the next one that waits. Callable from any thread, never blocks.
    package func ring() {
        let woken = state.withLock { state in
            state.isRung = state.waiters.isEmpty
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for continuation in woken { continuation.resume(returning: true) }
    }

    /// Waits for a ring, for the deadline or for the Swift task's cancellation, whichever is first.
    ///
    /// - Parameter deadline: In milliseconds of ``Clock/monotonic``; `nil` waits without limit.
    /// - Returns: Whether it rang. No ring is lost: after `false`, the next wait gets it.
    @discardableResult
    package func wait(until deadline: Int64?) async -> Bool {
        guard let deadline else { return await waitForRing() }
        let (left, overflow) = deadline.subtractingReportingOverflow(clock.monotonic())
        guard left > 0 || overflow else { return answer() }
        // A hundred years suffice, and `Task.sleep` calculates with the value.
        let limit = Duration.milliseconds(overflow ? .max : left)
        let pause = min(limit, .seconds(3_155_760_000))
        return await withTaskGroup(of: Bool.self) { group in
            group.addTask { await self.waitForRing() }
            group.addTask {
                try? await Task.sleep(for: pause)
                return false
            }
            var didRing = await group.next() ?? false
            group.cancelAll()
            while let other = await group.next() { didRing = didRing || other }
            return didRing
        }
    }

    /// Consumes a remembered ring.
    private func answer() -> Bool {
        state.withLock { state in
            defer { state.isRung = false }
            return state.isRung
        }
    }

    private func waitForRing() async -> Bool {
        let waiter = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let atOnce: Bool? = state.withLock { state in
                    if state.isRung {
                        state.isRung = false
                        return true
                    }
                    // The flag is set before the handler below runs, so one of the two notices the cancellation.
                    if Task.isCancelled { return false }
                    state.waiters[waiter] = continuation
                    return nil
                }
                if let atOnce { continuation.resume(returning: atOnce) }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: waiter) }?.resume(returning: false)
        }
    }
}
