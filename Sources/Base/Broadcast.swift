/// Wakes all watches of a key, such as the held requests of one session.
///
/// Keys without a watch have no state. To miss no signal, watch first, then read:
///
///     let watch = broadcast.watch(session)
///     while true {
///         let events = read()
///         if !events.isEmpty || clock.monotonic() >= deadline { return events }
///         await watch.wait(until: deadline)
///     }
package final class Broadcast<Key: Hashable & Sendable>: Sendable {
    private struct State {
        var lastWatch: UInt64 = 0
        var bells: [Key: [UInt64: Doorbell]] = [:]
    }

    private let clock: Clock
    private let state = Locked(State())

    package init(clock: Clock = .system) { self.clock = clock }

    /// Wakes all watches of `key`. Callable from any thread, never blocks.
    package func signal(_ key: Key) {
        let bells = state.withLock { state in state.bells[key].map { Array($0.values) } ?? [] }
        for bell in bells { bell.ring() }
    }

    /// Starts watching `key`. Later signals are remembered until the watch is released.
    ///
    /// - Parameter other: Another watch, whose wait the signals end too.
    package func watch(_ key: Key, waking other: Watch? = nil) -> Watch {
        let bell = other?.bell ?? Doorbell(clock: clock)
        let number = state.withLock { state in
            state.lastWatch += 1
            state.bells[key, default: [:]][state.lastWatch] = bell
            return state.lastWatch
        }
        return Watch(broadcast: self, key: key, number: number, bell: bell)
    }

    package var keys: [Key] { state.withLock { Array($0.bells.keys) } }

    package func countOfWatches(of key: Key) -> Int { state.withLock { $0.bells[key]?.count ?? 0 } }

    private func end(_ number: UInt64, of key: Key) {
        state.withLock { state in
            state.bells[key]?[number] = nil
            if state.bells[key]?.isEmpty == true { state.bells[key] = nil }
        }
    }

    /// A watch, which ends with its last reference.
    package final class Watch: Sendable {
        private let broadcast: Broadcast
        private let key: Key
        private let number: UInt64
        fileprivate let bell: Doorbell

        fileprivate init(broadcast: Broadcast, key: Key, number: UInt64, bell: Doorbell) {
            self.broadcast = broadcast
            self.key = key
            self.number = number
            self.bell = bell
        }

        deinit { broadcast.end(number, of: key) }

        /// Wakes this watch only.
        package func wake() { bell.ring() }

        /// Waits for a signal since the start of the watch or the last wait, like ``Doorbell/wait(until:)``.
        @discardableResult
        package func wait(until deadline: Int64?) async -> Bool { await bell.wait(until: deadline) }
    }
}
