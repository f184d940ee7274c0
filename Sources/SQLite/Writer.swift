import Base
import CSQLite
import Synchronization

/// The one thread that writes, and the only one that checkpoints.
///
/// SQLite before 3.51.3 can corrupt a database when two connections write or checkpoint at once ("WAL-reset").
///
/// Group commit: it takes all closures that wait, runs them in one transaction, each in a savepoint, and answers
/// all after the one commit that made them durable. It never waits for company.
final class Writer {
    private let connection: Connection
    private let mailbox: Mailbox<Job>
    private let state: WriterState
    private let log: Log
    private let onCommit: @Sendable (Commit) -> Void
    private let onFatalError: @Sendable (SQLiteError) -> Never
    private let pageSize: Int
    /// Pages in the log, and commits that wrote, when the last checkpoint had ended.
    private var pagesAtCheckpoint = 0
    private var commitsAtCheckpoint = 0
    /// When readers in the way of a long log may be waited for again; nil unless they were in it the last time.
    private var nextRestart: Int64?

    /// Closures in one commit at most.
    private static let groupLimit = 512
    /// Without work for so long, the log is copied.
    private static let idleTime = Duration.milliseconds(500)
    /// Bytes by which the log grows between two checkpoints.
    private static let checkpointStep = 4 << 20
    /// Bytes of log from which on readers in the way are waited for.
    private static let restartThreshold = 64 << 20
    /// Milliseconds for which they are: everybody's writes wait as well.
    private static let restartPatience: Int32 = 20
    /// Milliseconds until the next time, where they stayed. A backup reads for minutes.
    private static let restartPause: Int64 = 1000
    /// Milliseconds for which the last checkpoint waits for readers; a passive one never does.
    private static let endPatience: Int32 = 1000

    init(
        _ connection: Connection, mailbox: Mailbox<Job>, state: WriterState, log: Log,
        onCommit: @escaping @Sendable (Commit) -> Void, onFatalError: @escaping @Sendable (SQLiteError) -> Never
    ) throws(SQLiteError) {
        self.connection = connection
        self.mailbox = mailbox
        self.state = state
        self.log = log
        self.onCommit = onCommit
        self.onFatalError = onFatalError
        pageSize = try connection.value("PRAGMA page_size") { $0.int(0) } ?? 4096
    }

    /// Works until the mailbox is closed and empty.
    func run() {
        while true {
            switch mailbox.take(atMost: Self.groupLimit, patience: hasUncopiedPages ? Self.idleTime : nil) {
            case .items(let jobs):
                state.count(jobs.count)
                perform(jobs)
                if hasGrown { checkpoint(SQLITE_CHECKPOINT_PASSIVE) }
            case .nothing:
                checkpoint(SQLITE_CHECKPOINT_PASSIVE)
            case .closed:
                checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
                return
            }
        }
    }

    // MARK: Group commit

    /// Runs all jobs in one transaction and answers each, after the commit.
    private func perform(_ jobs: [Job]) {
        let commitsBefore = connection.writingCommits
        let start = ContinuousClock.now
        var sawFull = false
        do throws(SQLiteError) {
            var answers: [() -> Void] = []
            answers.reserveCapacity(jobs.count)
            try connection.execute("BEGIN IMMEDIATE")
            for job in jobs {
                let outcome = try jobs.count == 1 ? runAlone(job) : runInSavepoint(job)
                if let error = outcome.error as? SQLiteError, error.isFull { sawFull = true }
                answers.append(outcome.answer)
            }
            if !connection.isAutocommit { try commit() }
            let hasWritten = connection.writingCommits > commitsBefore
            if sawFull || hasWritten { state.setFull(sawFull) }
            for answer in answers { answer() }
            if hasWritten {
                onCommit(
                    Commit(
                        writes: jobs.count, duration: ContinuousClock.now - start,
                        logBytes: connection.logPages * pageSize))
            }
        } catch {
            rollBack()
            if error.isFull { state.setFull(true) }
            for job in jobs { job.fail(error) }
        }
    }

    private func runAlone(_ job: Job) throws(SQLiteError) -> Job.Outcome {
        let outcome = try run(job)
        if outcome.error != nil { try connection.execute("ROLLBACK") }
        return outcome
    }

    private func runInSavepoint(_ job: Job) throws(SQLiteError) -> Job.Outcome {
        try connection.execute("SAVEPOINT job")
        let outcome = try run(job)
        if outcome.error != nil { try connection.execute("ROLLBACK TO job") }
        try connection.execute("RELEASE job")
        return outcome
    }

    /// Runs the closure, and throws when the whole transaction is gone after it, whatever it said itself.
    private func run(_ job: Job) throws(SQLiteError) -> Job.Outcome {
        connection.lastFailure = nil
        let outcome = job.run(connection)
        if connection.isAutocommit {
            throw connection.lastFailure ?? SQLiteError(code: SQLITE_ABORT, message: "a closure ended the transaction")
        }
        return outcome
    }

    private func commit() throws(SQLiteError) {
        do throws(SQLiteError) {
            try connection.execute("COMMIT")
        } catch {
            if error.leavesCommitUnknown { onFatalError(error) }
            throw error
        }
    }

    /// Leaves no transaction open. After one that SQLite ended by itself there is nothing to do.
    private func rollBack() {
        guard !connection.isAutocommit else { return }
        do throws(SQLiteError) {
            try connection.execute("ROLLBACK")
        } catch {
            // Without a way back, nothing that follows could be trusted.
            if !connection.isAutocommit { onFatalError(error) }
        }
    }

    // MARK: Checkpoints

    private var hasUncopiedPages: Bool { connection.writingCommits != commitsAtCheckpoint }

    private var hasGrown: Bool {
        // The log starts anew at its beginning when all of it was copied and nobody reads from it.
        if connection.logPages < pagesAtCheckpoint { pagesAtCheckpoint = 0 }
        return (connection.logPages - pagesAtCheckpoint) * pageSize >= Self.checkpointStep
    }

    /// Copies the log into the database file. A failure costs nothing but a longer log: its frames are durable.
    private func checkpoint(_ mode: Int32) {
        do throws(SQLiteError) {
            if mode == SQLITE_CHECKPOINT_PASSIVE, isLong, nextRestart ?? 0 <= Clock.system.monotonic() {
                try restartLog()
            } else {
                _ = try checkpoint(mode, patience: Self.endPatience)
            }
        } catch {
            log.warning("checkpoint failed, the write-ahead log grows", ("error", error))
        }
        pagesAtCheckpoint = connection.logPages
        commitsAtCheckpoint = connection.writingCommits
    }

    private var isLong: Bool { connection.logPages * pageSize > Self.restartThreshold }

    /// Waits for readers, a moment, so that the next commit begins the log anew.
    private func restartLog() throws(SQLiteError) {
        let isDone = try checkpoint(SQLITE_CHECKPOINT_RESTART, patience: Self.restartPatience)
        if !isDone, nextRestart == nil {
            log.warning("readers keep the write-ahead log long", ("bytes", connection.logPages * pageSize))
        }
        nextRestart = isDone ? nil : Clock.system.monotonic() + Self.restartPause
    }

    private func checkpoint(_ mode: Int32, patience: Int32) throws(SQLiteError) -> Bool {
        connection.setBusyTimeout(milliseconds: patience)
        defer { connection.setBusyTimeout(milliseconds: Connection.busyTimeout) }
        return try connection.checkpoint(mode)
    }
}

/// What a commit came to.
package struct Commit: Sendable {
    /// Closures that it made durable.
    package let writes: Int
    /// From the first closure until all were answered.
    package let duration: Duration
    /// Length of the write-ahead log after it.
    package let logBytes: Int
}

/// What everybody may ask about the writer.
final class WriterState: Sendable {
    private let full = Atomic(false)
    private let performed = Atomic(0)

    /// Closures that have had their turn.
    var performedWrites: Int { performed.load(ordering: .relaxed) }

    func count(_ jobs: Int) { performed.add(jobs, ordering: .relaxed) }

    var isFull: Bool { full.load(ordering: .acquiring) }

    func setFull(_ isFull: Bool) { full.store(isFull, ordering: .releasing) }
}
