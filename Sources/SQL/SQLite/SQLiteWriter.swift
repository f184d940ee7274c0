import Base
import CSQLite

/// The one thread that writes, and the only one that checkpoints.
///
/// SQLite before 3.51.3 can corrupt a database when two connections write or checkpoint at once ("WAL-reset").
///
/// Group commit: it takes all closures that wait, runs them in one transaction, each in a savepoint, and answers
/// all after the one commit that made them durable. It never waits for company.
final class SQLiteWriter: Writer {
    private let connection: SQLiteConnection
    let state: WriterState
    private let log: Log
    private let onCommit: @Sendable (Commit) -> Void
    private let onFatalError: @Sendable (SQLError) -> Never
    private let pageSize: Int
    /// Pages in the log, and commits that wrote, when the last checkpoint had ended.
    private var pagesAtCheckpoint = 0
    private var commitsAtCheckpoint = 0
    /// When readers in the way of a long log may be waited for again; nil unless they were in it the last time.
    private var nextRestart: Int64?

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
        _ connection: SQLiteConnection, state: WriterState, log: Log,
        onCommit: @escaping @Sendable (Commit) -> Void, onFatalError: @escaping @Sendable (SQLError) -> Never
    ) throws(SQLError) {
        self.connection = connection
        self.state = state
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

    /// Runs all jobs in one transaction and answers each, after the commit.
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

    /// Runs the closure, and throws when the whole transaction is gone after it, whatever it said itself.
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

    /// Leaves no transaction open. After one that SQLite ended by itself there is nothing to do.
    private func rollBack() {
        guard !connection.isAutocommit else { return }
        do throws(SQLError) {
            try connection.execute("ROLLBACK")
        } catch {
            // Without a way back, nothing that follows could be trusted.
            if !connection.isAutocommit { onFatalError(error) }
        }
    }

    // MARK: Checkpoints

    private var hasUncopiedPages: Bool { connection.writingCommits != commitsAtCheckpoint }

    private var hasGrown: Bool {
        // The log restarts at its beginning when all of it was copied and no reader uses it.
        if connection.logPages < pagesAtCheckpoint { pagesAtCheckpoint = 0 }
        return (connection.logPages - pagesAtCheckpoint) * pageSize >= Self.checkpointStep
    }

    /// Copies the log into the database file. A failure costs nothing but a longer log: its frames are durable.
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

    /// Waits for readers, a moment, so that the next commit begins the log anew.
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
