import Glibc

/// A value that threads share under a mutex, and for whose changes they may wait.
///
/// A ``Locked`` value with a `pthread_cond_t`. For dedicated threads only, because waiting blocks.
package final class Monitor<Value>: @unchecked Sendable {
    // Unchecked: the pointer never changes.
    private let locked: Locked<Value>
    private let changed: UnsafeMutablePointer<pthread_cond_t>

    package init(_ value: consuming sending Value) {
        locked = Locked(value)
        changed = .allocate(capacity: 1)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        let code = pthread_cond_init(changed, &attributes)
        pthread_condattr_destroy(&attributes)
        precondition(code == 0, "pthread_cond_init: \(code)")
    }

    deinit {
        pthread_cond_destroy(changed)
        changed.deallocate()
    }

    /// Runs `body` with exclusive access to the value. Wakes no thread.
    package func withLock<Result>(_ body: (inout sending Value) -> sending Result) -> sending Result {
        locked.withLock(body)
    }

    /// Makes one waiting thread check again.
    package func wakeOne() { pthread_cond_signal(changed) }

    /// Makes all waiting threads check again.
    package func wakeAll() { pthread_cond_broadcast(changed) }

    /// Waits until `find` returns a value: it is called at once, and again after each wake.
    package func wait<Found>(for find: (inout sending Value) -> sending Found?) -> sending Found {
        pthread_mutex_lock(locked.mutex)
        defer { pthread_mutex_unlock(locked.mutex) }
        while true {
            if let found = find(&locked.value) { return found }
            pthread_cond_wait(changed, locked.mutex)
        }
    }

    /// Like ``wait(for:)``, but for at most `limit`: `nil` if nothing was found by then.
    package func wait<Found>(
        atMost limit: Duration, for find: (inout sending Value) -> sending Found?
    ) -> sending Found? {
        var end = Self.time(after: limit)
        pthread_mutex_lock(locked.mutex)
        defer { pthread_mutex_unlock(locked.mutex) }
        while true {
            if let found = find(&locked.value) { return found }
            if pthread_cond_timedwait(changed, locked.mutex, &end) == ETIMEDOUT { return find(&locked.value) }
        }
    }

    private static func time(after limit: Duration) -> timespec {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        let nanoseconds = time.tv_nsec + Int(limit.components.attoseconds / 1_000_000_000)
        time.tv_sec += Int(limit.components.seconds) + nanoseconds / 1_000_000_000
        time.tv_nsec = nanoseconds % 1_000_000_000
        return time
    }
}
