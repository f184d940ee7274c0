import CLinux
import Glibc

/// A POSIX thread with a name and all signals blocked, so that they reach the thread that waits for them, and so that
/// writing to a closed socket is an error instead of `SIGPIPE`.
enum EngineThread {
    /// Starts a detached thread. Throws the code of `pthread_create`.
    static func start(_ name: String, _ body: @escaping @Sendable () -> Void) throws(EngineError) {
        let box = Unmanaged.passRetained(
            Box {
                _ = pthread_setname_np(pthread_self(), name)
                body()
            })
        var thread = pthread_t()
        let code = pthread_create(&thread, nil, runBox, box.toOpaque())
        guard code == 0 else {
            box.release()
            throw EngineError(operation: "pthread_create", errno: code)
        }
        pthread_detach(thread)
    }

    fileprivate final class Box {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
}

private func runBox(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let context else { return nil }
    var signals = sigset_t()
    sigfillset(&signals)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    Unmanaged<EngineThread.Box>.fromOpaque(context).takeRetainedValue().body()
    return nil
}

/// The engine could not be set up.
package struct EngineError: Error, CustomStringConvertible {
    package let operation: String
    package let errno: Int32

    package var description: String { "\(operation): \(String(cString: strerror(errno)))" }
}

/// Work for threads: closures in order, taken by whoever is free.
final class WorkQueue: @unchecked Sendable {
    // Unchecked: everything is touched only while `mutex` is held.
    private var work: [@Sendable () -> Void] = []
    private var next = 0
    private var isClosed = false
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let arrived = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(arrived, nil)
    }

    deinit {
        pthread_cond_destroy(arrived)
        pthread_mutex_destroy(mutex)
        arrived.deallocate()
        mutex.deallocate()
    }

    /// False when the queue is closed: the work is not done.
    func add(_ item: @escaping @Sendable () -> Void) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard !isClosed else { return false }
        work.append(item)
        pthread_cond_signal(arrived)
        return true
    }

    /// Lets the threads end when all work is done.
    func close() {
        pthread_mutex_lock(mutex)
        isClosed = true
        pthread_cond_broadcast(arrived)
        pthread_mutex_unlock(mutex)
    }

    /// The life of one thread: works until the queue is closed and empty.
    func run() {
        while let item = take() { item() }
    }

    private func take() -> (@Sendable () -> Void)? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while next == work.count {
            if isClosed { return nil }
            pthread_cond_wait(arrived, mutex)
        }
        let item = work[next]
        next += 1
        if next == work.count {
            work.removeAll(keepingCapacity: true)
            next = 0
        } else if next > 1024 && next * 2 > work.count {
            work.removeFirst(next)
            next = 0
        }
        return item
    }
}
