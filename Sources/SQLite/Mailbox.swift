import Glibc

/// Work waiting for the threads that take it, in the order it came.
///
/// Over `pthread_mutex_t` and `pthread_cond_t`, as `Locked` is, and for the same reason.
final class Mailbox<Item: Sendable>: @unchecked Sendable {
    // Unchecked: all that varies is touched only while `mutex` is held.
    private var items: [Item] = []
    private var isClosed = false
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let arrived: UnsafeMutablePointer<pthread_cond_t>

    enum Delivery {
        case items([Item])
        /// Nothing came in time.
        case nothing
        /// Closed, and all that was put in is taken.
        case closed
    }

    init() {
        mutex = .allocate(capacity: 1)
        arrived = .allocate(capacity: 1)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        let codes = (pthread_mutex_init(mutex, nil), pthread_cond_init(arrived, &attributes))
        pthread_condattr_destroy(&attributes)
        precondition(codes == (0, 0), "pthread_mutex_init, pthread_cond_init: \(codes)")
    }

    deinit {
        pthread_cond_destroy(arrived)
        pthread_mutex_destroy(mutex)
        arrived.deallocate()
        mutex.deallocate()
    }

    /// Adds one, unless the mailbox is closed.
    ///
    /// - Returns: Whether somebody will take it.
    func put(_ item: Item) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard !isClosed else { return false }
        items.append(item)
        pthread_cond_signal(arrived)
        return true
    }

    /// How many wait now.
    var count: Int {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return items.count
    }

    /// Takes what waits, at most `limit`, and waits for the first when there is none.
    ///
    /// - Parameter patience: Milliseconds to wait; `nil` waits for ever.
    func take(atMost limit: Int, patience: Int? = nil) -> Delivery {
        let end = patience.map(Self.monotonicTime(in:))
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while items.isEmpty {
            if isClosed { return .closed }
            guard var end else {
                pthread_cond_wait(arrived, mutex)
                continue
            }
            if pthread_cond_timedwait(arrived, mutex, &end) == ETIMEDOUT && items.isEmpty && !isClosed {
                return .nothing
            }
        }
        if items.count <= limit {
            let taken = items
            items = []
            return .items(taken)
        }
        let taken = Array(items[..<limit])
        items.removeFirst(limit)
        return .items(taken)
    }

    /// Takes no more in. What is in is still delivered.
    func close() {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        isClosed = true
        pthread_cond_broadcast(arrived)
    }

    private static func monotonicTime(in milliseconds: Int) -> timespec {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        let nanoseconds = time.tv_nsec + milliseconds % 1000 * 1_000_000
        time.tv_sec += milliseconds / 1000 + nanoseconds / 1_000_000_000
        time.tv_nsec = nanoseconds % 1_000_000_000
        return time
    }
}
