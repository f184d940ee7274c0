import Base

/// Threads that read, each with a connection of its own, which never writes.
///
/// They run whatever prefers them as its executor, and what runs on them reads at once: nothing waits for another
/// thread. There are as many connections as threads, so whoever runs here finds one that nobody uses.
package final class Readers: TaskExecutor {
    private struct State {
        var idle: [Idle] = []
        var inUse = 0
        var isClosed = false
    }

    /// Unchecked: a connection is here or with the one who reads, never both.
    private struct Idle: @unchecked Sendable {
        let connection: Connection
    }

    private let jobs = Mailbox<UnownedJob>()
    private let state: Monitor<State>
    /// In milliseconds.
    private let longestRead: Int64

    /// - Parameters:
    ///   - longestRead: How long a closure may run.
    ///   - connect: Makes a connection.
    init(
        _ name: String, count: Int, longestRead: Duration, connect: () throws(SQLError) -> Connection
    ) throws(SQLError) {
        var state = State()
        for _ in 0..<count { state.idle.append(Idle(connection: try connect())) }
        self.state = Monitor(state)
        self.longestRead = Int64(longestRead / .milliseconds(1))
        let executor = asUnownedTaskExecutor()
        for number in 1...count {
            // Nobody waits for their end: they run jobs for as long as somebody has the readers.
            try Database.thread("\(name)-\(number)") { [jobs] in
                while case .items(let jobs) = jobs.take(atMost: 1) {
                    for job in jobs { job.runSynchronously(on: executor) }
                }
            }.letGo()
        }
    }

    deinit { jobs.close() }

    package func enqueue(_ job: consuming ExecutorJob) { _ = jobs.put(UnownedJob(job)) }

    /// Runs `body` in one read transaction: it sees one snapshot.
    func read<Result: Sendable>(_ body: @Sendable (Connection) throws -> Result) async throws -> Result {
        try await withTaskExecutorPreference(self) { try self.readHere(body) }
    }

    private func readHere<Result>(_ body: (Connection) throws -> Result) throws -> Result {
        guard let reader = takeIdle() else { throw SQLError.closed }
        defer { putBack(reader) }
        return try reader.connection.read(until: Clock.system.monotonic() + longestRead, body)
    }

    private func takeIdle() -> Idle? {
        state.withLock { state in
            guard !state.isClosed, let reader = state.idle.popLast() else { return nil }
            state.inUse += 1
            return reader
        }
    }

    private func putBack(_ reader: Idle) {
        let isAwaited = state.withLock { state in
            state.idle.append(reader)
            state.inUse -= 1
            return state.isClosed
        }
        if isAwaited { state.wakeAll() }
    }

    /// Waits for those who read and closes the connections. Whoever reads later is refused.
    func close() {
        state.withLock { $0.isClosed = true }
        let idle = state.wait { $0.inUse == 0 ? $0.idle.takeAll() : nil }
        withExtendedLifetime(idle) {}  // Closed here, outside the lock.
    }
}
