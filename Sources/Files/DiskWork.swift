import Glibc

/// Work for the disk threads: each takes what ``DiskTurns`` says.
final class DiskWork: @unchecked Sendable {
    /// Does a piece of work; says whether there is more of it, which then waits for its next turn.
    typealias Step = @Sendable () -> Bool

    // Unchecked: everything is touched only while `mutex` is held.
    private var turns: DiskTurns<Step>
    private var isClosed = false
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init(threads: Int) {
        turns = DiskTurns(threads: threads)
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(changed, nil)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    /// False after the end was announced: the work is not done.
    func add(_ step: @escaping Step, _ length: DiskWorkLength, for owner: Int64) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard !isClosed else { return false }
        turns.add(step, length, for: owner)
        pthread_cond_signal(changed)
        return true
    }

    /// Lets the threads end when all work is done.
    func close() {
        pthread_mutex_lock(mutex)
        isClosed = true
        pthread_cond_broadcast(changed)
        pthread_mutex_unlock(mutex)
    }

    /// The life of one thread: works until the end was announced and nothing is left.
    func run() {
        while let (step, length, owner) = take() {
            let hasMore = step()
            pthread_mutex_lock(mutex)
            turns.end(length)
            if hasMore { turns.add(step, length, for: owner) }
            // A thread may wait for the end of another's long work.
            if length == .long { pthread_cond_broadcast(changed) }
            pthread_mutex_unlock(mutex)
        }
    }

    private func take() -> (step: Step, length: DiskWorkLength, owner: Int64)? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let (step, length, owner) = turns.next() { return (step, length, owner) }
            if isClosed && turns.isEmpty { return nil }
            pthread_cond_wait(changed, mutex)
        }
    }
}
