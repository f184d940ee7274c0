import Base
import CSQLite

/// The one thread that writes, and the only one that checkpoints.
///
/// SQLite before 3.51.3 can corrupt a database if two connections write or checkpoint at once ("WAL-reset").
///
/// Group commit: it receives all waiting closures, runs them in one transaction, each in a savepoint, and resumes their
/// callers after the commit. It never waits for further closures.
final class SQLiteWriter: Writer {
    private let connection: SQLiteConnection
    private let log: Log
    private let onCommit: @Sendable (Commit) -> Void
    private let onFatalError: @Sendable (SQLError) -> Never
    private let pageSize: Int
    /// The log pages and the number of commits with writes at the end of the last checkpoint.
    private var pagesAtCheckpoint = 0
    private var commitsAtCheckpoint = 0
    /// When the writer may next wait for readers of a long log; `nil` unless they blocked the last attempt.
    private var nextRestart: Int64?

    /// The idle time after which the log is copied.
    private static let idleTime = Duration.milliseconds(500)
    /// The growth of the log between two checkpoints, in bytes.
    private static let checkpointStep = 4 << 20
    /// The length of the log from which the writer waits for readers, in bytes.
    private static let restartThreshold = 64 << 20
    /// The maximum of this wait in milliseconds, because all writes wait too.
    private static let restartPatience: Int32 = 20
    /// The pause after a failed attempt, in milliseconds. A backup reads for minutes.
    private static let restartPause: Int64 = 1000
    /// The maximum wait of the last checkpoint for readers, in milliseconds. A passive checkpoint never waits.
    private static let endPatience: Int32 = 1000

    init(
        _ connection: SQLiteConnection, log: Log, onCommit: @escaping @Sendable (Commit) -> Void,
        onFatalError: @escaping @Sendable (SQLError) -> Never
    ) throws(SQLError) {
        self.connection = connection
        self.log = log
        self.onCommit = onCommit
        self.onFatalError = onFatalError
        pageSize = try connection.value("PRAGMA page_size") { $0.int(0) } ?? 4096
    }

    var patience: Duration? { hasUncopiedPages ? Self.idleTime : nil }

    func rest() { checkpoint(SQLITE_CHECKPOINT_PASSIVE) }

    func end() { checkpoint(SQLITE_CHECKPOINT_TRUNCATE) }

    // MARK: Group commit

    func perform(_ jobs: [Job]) {
        commit(jobs)
        if hasGrown { checkpoint(SQLITE_CHECKPOINT_PASSIVE) }
    }

    /// Runs all jobs in one transaction and resumes each caller after the commit.
    private func commit(_ jobs: [Job]) {
        let commitsBefore = connection.writingCommits
        let start = ContinuousClock.now
        do throws(SQLError) {
            var answers: [() -> Void] = []
            answers.reserveCapacity(jobs.count)
            try connection.execute("BEGIN IMMEDIATE")
            for job in jobs {
                let outcome = try jobs.count == 1 ? runAlone(job) : runInSavepoint(job)
                answers.append(outcome.answer)
            }
            if !connection.isAutocommit { try commit() }
            let hasWritten = connection.writingCommits > commitsBefore
            for answer in answers { answer() }
            if hasWritten {
                onCommit(
                    Commit(
                        writes: jobs.count, duration: ContinuousClock.now - start,
                        logBytes: connection.logPages * pageSize))
            }
        } catch {
            rollBack()
            for job in jobs { job.fail(error) }
        }
    }

    private func runAlone(_ job: Job) throws(SQLError) -> Job.Outcome {
        let outcome = try run(job)
        if outcome.error != nil { try connection.execute("ROLLBACK") }
        return outcome
    }

    private func runInSavepoint(_ job: Job) throws(SQLError) -> Job.Outcome {
        try connection.execute("SAVEPOINT job")
        let outcome = try run(job)
        if outcome.error != nil { try connection.execute("ROLLBACK TO job") }
        try connection.execute("RELEASE job")
        return outcome
    }

    /// Runs the closure. Throws if the transaction is gone afterwards, whatever the closure's outcome.
    private func run(_ job: Job) throws(SQLError) -> Job.Outcome {
        connection.lastFailure = nil
        let outcome = job.run(connection)
        if connection.isAutocommit {
            throw connection.lastFailure ?? SQLError(code: SQLITE_ABORT, message: "a closure ended the transaction")
        }
        return outcome
    }

    private func commit() throws(SQLError) {
        do throws(SQLError) {
            try connection.execute("COMMIT")
        } catch {
            if error.leavesCommitUnknown { onFatalError(error) }
            throw error
        }
    }

    /// Closes the transaction, unless SQLite has ended it by itself.
    private func rollBack() {
        guard !connection.isAutocommit else { return }
        do throws(SQLError) {
            try connection.execute("ROLLBACK")
        } catch {
            // If the rollback fails, nothing that follows is reliable.
            if !connection.isAutocommit { onFatalError(error) }
        }
    }

    // MARK: Checkpoints

    private var hasUncopiedPages: Bool { connection.writingCommits != commitsAtCheckpoint }

    private var hasGrown: Bool {
        // The log restarts at its beginning when it was copied completely and no reader uses it.
        if connection.logPages < pagesAtCheckpoint { pagesAtCheckpoint = 0 }
        return (connection.logPages - pagesAtCheckpoint) * pageSize >= Self.checkpointStep
    }

    /// Copies the log into the database file. A failure only lengthens the log: its frames are durable.
    private func checkpoint(_ mode: Int32) {
        do throws(SQLError) {
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

    /// Waits briefly for readers, so that the next commit restarts the log.
    private func restartLog() throws(SQLError) {
        let isDone = try checkpoint(SQLITE_CHECKPOINT_RESTART, patience: Self.restartPatience)
        if !isDone, nextRestart == nil {
            log.warning("readers keep the write-ahead log long", ("bytes", connection.logPages * pageSize))
        }
        nextRestart = isDone ? nil : Clock.system.monotonic() + Self.restartPause
    }

    private func checkpoint(_ mode: Int32, patience: Int32) throws(SQLError) -> Bool {
        connection.setBusyTimeout(milliseconds: patience)
        defer { connection.setBusyTimeout(milliseconds: SQLiteConnection.busyTimeout) }
        return try connection.checkpoint(mode)
    }
}
