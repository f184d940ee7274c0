import Glibc

/// Writes lines to a descriptor from a thread of its own, so that whoever logs never waits for whoever reads.
///
/// What waits is bounded. Lines beyond are dropped and counted; the count becomes a line when there is room again. The
/// descriptor stays as it is: a terminal's is shared with the shell, so that `O_NONBLOCK` is not ours to set.
package final class LogWriter: @unchecked Sendable {
    // Unchecked: all that varies is touched only while `mutex` is held.
    private var lines: [[UInt8]] = []
    private var bytes = 0
    private var dropped = 0
    private var isWriting = false
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let changed: UnsafeMutablePointer<pthread_cond_t>
    private let descriptor: Int32
    private let capacity: Int
    private let told: @Sendable (_ dropped: Int) -> [UInt8]

    /// Starts the thread, which lives as long as the process.
    ///
    /// - Parameters:
    ///   - capacity: Bytes that may wait.
    ///   - told: Makes the line that says how many were dropped.
    package init(
        descriptor: Int32 = STDERR_FILENO, capacity: Int = 1 << 20,
        told: @escaping @Sendable (_ dropped: Int) -> [UInt8]
    ) {
        self.descriptor = descriptor
        self.capacity = capacity
        self.told = told
        mutex = .allocate(capacity: 1)
        changed = .allocate(capacity: 1)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        let codes = (pthread_mutex_init(mutex, nil), pthread_cond_init(changed, &attributes))
        pthread_condattr_destroy(&attributes)
        precondition(codes == (0, 0), "pthread_mutex_init, pthread_cond_init: \(codes)")
        do {
            try SystemThread.start("log") { self.run() }
        } catch {
            preconditionFailure("\(error)")
        }
    }

    /// Takes a line, or drops and counts it. Blocks nobody.
    package func write(_ line: [UInt8]) {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard bytes + line.count <= capacity else {
            dropped += 1
            return
        }
        lines.append(line)
        bytes += line.count
        pthread_cond_broadcast(changed)
    }

    /// Waits until all lines are written, at most for `limit`: for the end of the process.
    package func flush(within limit: Duration) {
        var end = timespec()
        clock_gettime(CLOCK_MONOTONIC, &end)
        let nanoseconds = end.tv_nsec + Int(limit.components.attoseconds / 1_000_000_000)
        end.tv_sec += Int(limit.components.seconds) + nanoseconds / 1_000_000_000
        end.tv_nsec = nanoseconds % 1_000_000_000
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while isWriting || !lines.isEmpty || dropped > 0 {
            if pthread_cond_timedwait(changed, mutex, &end) == ETIMEDOUT { return }
        }
    }

    // MARK: The thread

    private func run() -> Never {
        while true {
            let (lines, dropped) = take()
            for line in lines { send(line) }
            // They were dropped because these lines waited, so it belongs behind them.
            if dropped > 0 { send(told(dropped)) }
        }
    }

    private func take() -> (lines: [[UInt8]], dropped: Int) {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        isWriting = false
        pthread_cond_broadcast(changed)
        while lines.isEmpty && dropped == 0 { pthread_cond_wait(changed, mutex) }
        defer { (lines, bytes, dropped, isWriting) = ([], 0, 0, true) }
        return (lines, dropped)
    }

    /// Writes a line, with one `write(2)` where the other side takes it. Where there is no other side it is lost.
    private func send(_ line: [UInt8]) {
        var rest = line[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                // Whoever shares the descriptor made it so.
                var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&state, 1, -1)
            } else if errno != EINTR {
                return
            }
        }
    }
}
