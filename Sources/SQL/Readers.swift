import Base
import Glibc

/// Threads that read, each with a read-only connection of its own.
///
/// They run tasks that prefer ``turns(of:)`` as their executor, and these tasks read without a thread switch. There are
/// as many connections as threads, so each job finds a free one. Owners alternate, however many jobs they have queued:
/// a turn lasts until the task first suspends or yields.
package final class Readers: Sendable {
    private struct State {
        var idle: [Idle] = []
        var inUse = 0
        var isClosed = false
    }

    /// Unchecked: a connection is either here or with one reader.
    private struct Idle: @unchecked Sendable {
        let connection: Connection
    }

    /// Jobs that wait for a thread.
    private struct Work {
        struct Turn: Sendable {
            let job: UnownedJob
            let executor: OwnersReaders
        }

        var waiting = OwnerTurns<Turn>()
        var isClosed = false

        /// The next turn for a thread; an inner `nil` ends the thread, `nil` makes it wait.
        mutating func next() -> Turn?? {
            if let next = waiting.next() { return .some(next.work) }
            return isClosed ? .some(nil) : nil
        }
    }

    private let work = Monitor(Work())
    private let threads = Locked<[pthread_t]>([])
    private let state: Monitor<State>
    /// In milliseconds.
    private let longestRead: Int64

    /// - Parameters:
    ///   - longestRead: The time limit of a closure.
    ///   - connect: Returns a new connection.
    init(
        _ name: String, count: Int, longestRead: Duration, connect: () throws(SQLError) -> Connection
    ) throws(SQLError) {
        var state = State()
        for _ in 0..<count { state.idle.append(Idle(connection: try connect())) }
        self.state = Monitor(state)
        self.longestRead = Int64(longestRead / .milliseconds(1))
        for number in 1...count {
            // The threads are never joined: they run jobs for as long as the readers exist.
            try Database.thread("\(name)-\(number)") { [work, threads] in
                threads.withLock { $0.append(pthread_self()) }
                while let turn = work.wait(for: { $0.next() }) {
                    turn.job.runSynchronously(on: turn.executor.asUnownedTaskExecutor())
                }
            }.letGo()
        }
    }

    deinit {
        work.withLock { $0.isClosed = true }
        work.wakeAll()
    }

    /// The executor for the tasks of one owner; 0 stands for all tasks without an owner.
    package func turns(of owner: Int64) -> any TaskExecutor { OwnersReaders(self, owner) }

    fileprivate func add(_ job: UnownedJob, by executor: OwnersReaders) {
        work.withLock { $0.waiting.add(Work.Turn(job: job, executor: executor), for: executor.owner) }
        work.wakeOne()
    }

    /// Runs `body` in one read transaction with one snapshot.
    func read<Result: Sendable>(_ body: @Sendable (Connection) throws -> Result) async throws -> Result {
        if runsHere { return try readHere(body) }
        return try await withTaskExecutorPreference(turns(of: 0)) { try self.readHere(body) }
    }

    /// Whether the current thread is one of the readers.
    private var runsHere: Bool {
        let thread = pthread_self()
        return threads.withLock { $0.contains(thread) }
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

    /// Waits for the reads in flight and closes the connections. Rejects later reads.
    func close() {
        state.withLock { $0.isClosed = true }
        let idle = state.wait { $0.inUse == 0 ? $0.idle.takeAll() : nil }
        withExtendedLifetime(idle) {}  // Closed here, outside the lock.
    }
}

private final class OwnersReaders: TaskExecutor {
    let readers: Readers
    let owner: Int64

    init(_ readers: Readers, _ owner: Int64) {
        self.readers = readers
        self.owner = owner
    }

    func enqueue(_ job: consuming ExecutorJob) { readers.add(UnownedJob(job), by: self) }
}
