import Glibc

/// A value that threads share, one at a time, and whose changes they may wait for.
///
/// Over `pthread_mutex_t` and `pthread_cond_t`, as ``Locked`` is, and for the same reason. For threads of our own:
/// waiting blocks.
package final class Monitor<Value>: @unchecked Sendable {
    // Unchecked: `value` is touched only while `mutex` is held.
    private var value: Value
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let changed: UnsafeMutablePointer<pthread_cond_t>

    package init(_ value: consuming sending Value) {
        self.value = value
        mutex = .allocate(capacity: 1)
        changed = .allocate(capacity: 1)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        let codes = (pthread_mutex_init(mutex, nil), pthread_cond_init(changed, &attributes))
        pthread_condattr_destroy(&attributes)
        precondition(codes == (0, 0), "pthread_mutex_init, pthread_cond_init: \(codes)")
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    /// Runs `body` while no other thread can see the value. Wakes no thread.
    package func withLock<Result>(_ body: (inout sending Value) -> sending Result) -> sending Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body(&value)
    }

    /// Has one that waits look again.
    package func wakeOne() { pthread_cond_signal(changed) }

    /// Has all that wait look again.
    package func wakeAll() { pthread_cond_broadcast(changed) }

    /// Waits until `find` finds something: it is asked at once, and again after each wake.
    package func wait<Found>(for find: (inout sending Value) -> sending Found?) -> sending Found {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let found = find(&value) { return found }
            pthread_cond_wait(changed, mutex)
        }
    }

    /// As ``wait(for:)``, but for `limit` at most: nil when nothing was found by then.
    package func wait<Found>(
        atMost limit: Duration, for find: (inout sending Value) -> sending Found?
    ) -> sending Found? {
        var end = Self.time(after: limit)
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let found = find(&value) { return found }
            if pthread_cond_timedwait(changed, mutex, &end) == ETIMEDOUT { return find(&value) }
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
