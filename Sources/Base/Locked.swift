package import Glibc

/// A value that threads share under a mutex.
///
/// Over `pthread_mutex_t` rather than `Synchronization.Mutex`, which ThreadSanitizer does not understand on Linux. For
/// leaf data only: hold the lock for a few lines, call nothing that locks, never cross an `await`.
package final class Locked<Value>: @unchecked Sendable {
    // Unchecked: `value` is accessed only while `mutex` is held.
    @usableFromInline package var value: Value
    @usableFromInline package let mutex: UnsafeMutablePointer<pthread_mutex_t>

    package init(_ value: consuming sending Value) {
        self.value = value
        mutex = .allocate(capacity: 1)
        let code = pthread_mutex_init(mutex, nil)
        precondition(code == 0, "pthread_mutex_init: \(code)")
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Runs `body` with exclusive access to the value.
    @inlinable
    package func withLock<Result, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&value)
    }
}
