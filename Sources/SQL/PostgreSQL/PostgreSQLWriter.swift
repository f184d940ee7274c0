import Base
import Glibc

/// The one thread of a node that writes.
///
/// Group commit: it receives all waiting closures, runs them in one transaction and resumes their callers after the
/// commit. Their writes are sent with the commit in one flight. Savepoints would cost more than they save: if a closure
/// fails, the group is undone and its closures run again, one by one.
///
/// A lost connection is replaced. Each group has a number. If the response to its COMMIT is lost, the fence determines
/// whether it was committed.
final class PostgreSQLWriter: Writer {
    private let connection: PostgreSQLConnection
    private let fence: Fence
    /// Drawn at the start, and again after the response to a COMMIT was lost.
    private var token: Int64
    /// The number of the last commit group known to be committed.
    private var committed: Int64 = 0
    private let log: Log
    private let onCommit: @Sendable (Commit) -> Void
    private let onFatalError: @Sendable (SQLError) -> Never

    private let limits: Limits
    /// Closures not yet received.
    private let waiting: JobQueue
    /// When the server became unreachable, by the monotonic clock in milliseconds; `nil` while it is reachable.
    private var awaySince: Int64?
    /// Whether a wait for the server timed out. Later groups do not wait until the server was reached again.
    private var isAway = false
    /// Whether a wait for locks timed out. Later waits are shorter until a group succeeds.
    private var isBlocked = false
    /// When the node last renewed its lease, by the monotonic clock in milliseconds.
    private var lastSign = Clock.system.monotonic()

    /// Time limits, in milliseconds.
    struct Limits: Sendable {
        /// The interval between two renewals of the lease.
        var heartbeat: Int64
        /// The wait for an unreachable server before closures fail, and the wait for locks before they fail as busy.
        var patience: Int64 = 10_000
        /// The maximum time for which a commit may stay in doubt. The next start determines its outcome.
        var doubt: Int64 = 120_000
    }

    /// The maximum wait of a renewal for its row, in milliseconds.
    private static let signPatience: Int64 = 2000
    /// The maximum number of tries of a closure that meets locks or conflicts.
    private static let tries = 8

    init(
        _ connection: PostgreSQLConnection, _ fence: Fence, token: Int64, waiting: JobQueue, limits: Limits, log: Log,
        onCommit: @escaping @Sendable (Commit) -> Void, onFatalError: @escaping @Sendable (SQLError) -> Never
    ) {
        self.connection = connection
        self.fence = fence
        self.token = token
        self.waiting = waiting
        self.limits = limits
        self.log = log
        self.onCommit = onCommit
        self.onFatalError = onFatalError
    }

    // MARK: Groups

    /// The outcome of a commit group.
    private enum Ending {
        /// All writes are durable, or undone because the only closure failed.
        case done([Job.Outcome], hasWritten: Bool)
        /// All was undone, because one of several closures failed after it had written.
        case mixed
        /// All was undone.
        case failed(SQLError)
    }

    func perform(_ jobs: [Job]) {
        // A group that waits for locks cannot renew the lease, which must not expire meanwhile.
        if awaySince == nil, Clock.system.monotonic() - lastSign >= limits.heartbeat / 2 { rest() }
        perform(jobs, until: Clock.system.monotonic() + limits.patience / (isBlocked ? 10 : 1))
    }

    /// - Parameter deadline: The end of waits for locks, by the monotonic clock in milliseconds.
    private func perform(_ jobs: [Job], until deadline: Int64) {
        let (start, tripsBefore) = (ContinuousClock.now, connection.roundTrips)
        for turn in 1... {
            let ending = run(jobs, until: deadline)
            let mayTryAgain = Clock.system.monotonic() < deadline
            switch ending {
            case .done(let outcomes, let hasWritten):
                isBlocked = false
                for outcome in outcomes { outcome.answer() }
                if hasWritten {
                    onCommit(
                        Commit(
                            writes: jobs.count, duration: ContinuousClock.now - start,
                            roundTrips: connection.roundTrips - tripsBefore))
                }
                return
            case .failed(let error) where error.code == .unreachable: return fail(jobs, error)
            case .failed(let error) where error.isLockTimeout && !mayTryAgain:
                isBlocked = true
                fail(jobs, error)
                return rest()
            case .mixed,
                .failed where jobs.count > 1:
                for job in jobs { perform([job], until: deadline) }
                return
            case .failed(let error) where error.isBusy && turn < Self.tries:
                pause(milliseconds: UInt32.random(in: 1...(4 << UInt32(turn))))
            case .failed(let error): return fail(jobs, error)
            }
        }
    }

    private func fail(_ jobs: [Job], _ error: SQLError) {
        for job in jobs { job.fail(error) }
    }

    /// Runs the closures in one transaction, and again after a lost connection.
    private func run(_ jobs: [Job], until lockDeadline: Int64) -> Ending {
        let deadline = Clock.system.monotonic() + (isAway ? 0 : limits.patience)
        while true {
            let ending = attempt(jobs, until: lockDeadline)
            guard case .failed(let error) = ending, error.code == .unreachable else {
                noteBack()
                return ending
            }
            // The loss was determined by a reachable server.
            if error == Self.lost { continue }
            noteAway(error)
            isAway = Clock.system.monotonic() >= deadline
            if isAway { return ending }
            pause(milliseconds: 100)
        }
    }

    private func noteAway(_ error: SQLError) {
        guard awaySince == nil else { return }
        awaySince = Clock.system.monotonic()
        log.warning("the database is out of reach", ("error", error.message))
    }

    private func noteBack() {
        isAway = false
        guard let since = awaySince else { return }
        awaySince = nil
        log.info("the database is back", ("milliseconds", Clock.system.monotonic() - since))
    }

    /// Runs the closures in one transaction. Without closures, it renews the lease.
    ///
    /// - Parameter deadline: The end of waits for locks.
    private func attempt(_ jobs: [Job], until deadline: Int64) -> Ending {
        let patience = max(1, deadline - Clock.system.monotonic())
        do throws(SQLError) {
            // A stopped or disconnected node delays the others by at most five seconds, whether the server waits to
            // receive from it or to send to it. Its last statements, which no process waits for, wait for the turn no
            // longer than others. Each statement has its index and touches few rows. On a table that was never analysed
            // the planner would read all rows. Only plain index scans mark the entries of deleted rows, so that later
            // scans skip them.
            try connection.begin(
                "BEGIN ISOLATION LEVEL READ COMMITTED",
                """
                SELECT set_config('idle_in_transaction_session_timeout', '5000', TRUE), \
                set_config('tcp_user_timeout', '5000', TRUE), set_config('lock_timeout', ?1, TRUE), \
                set_config('enable_seqscan', 'off', TRUE), set_config('enable_bitmapscan', 'off', TRUE)
                """, String(patience))
            if !jobs.isEmpty { try connection.takeTurn(within: patience) }
            var outcomes: [Job.Outcome] = []
            outcomes.reserveCapacity(jobs.count)
            for job in jobs {
                let before = connection.writes
                let outcome = job.run(connection)
                if let failure = connection.failure { throw failure }
                outcomes.append(outcome)
                guard outcome.error != nil, connection.writes > before else { continue }
                connection.rollBack()
                return jobs.count == 1 ? .done(outcomes, hasWritten: false) : .mixed
            }
            let hasWritten = connection.writes > 0
            let isSilent = Clock.system.monotonic() - lastSign >= limits.heartbeat
            guard hasWritten || jobs.isEmpty || isSilent else {
                try connection.waitForAnswers()
                connection.rollBack()
                return .done(outcomes, hasWritten: false)
            }
            return try commit() ? .done(outcomes, hasWritten: hasWritten) : .failed(Self.lost)
        } catch {
            connection.rollBack()
            return .failed(error)
        }
    }

    private static let lost = SQLError(.unreachable, "the connection was lost before the commit")

    // MARK: Commits

    /// Commits the writes.
    ///
    /// - Returns: Whether the group was committed. False if the connection was lost before.
    private func commit() throws(SQLError) -> Bool {
        let number = committed + 1
        do throws(SQLError) {
            try fence.sign(connection, token, number)
            try connection.commit()
            committed = number
            lastSign = Clock.system.monotonic()
            return true
        } catch {
            if error.code == .postgresql("22012") {
                // Another process took the node's place, or a closure divided by zero.
                connection.rollBack()
                findOut()
            }
            guard error.code == .unreachable else { throw error }
            log.warning("the answer to a commit was lost", ("error", error.message))
            findOut()
            noteBack()
            return committed == number
        }
    }

    /// Reads the last committed number from the fence, for as long as that takes, because the group's callers depend on
    /// it. Waiting closures fail after the usual time.
    private func findOut() {
        let next = Self.drawToken()
        let start = Clock.system.monotonic()
        let (patience, deadline) = (start + (isAway ? 0 : limits.patience), start + limits.doubt)
        while true {
            do throws(SQLError) {
                return try settle(next)
            } catch {
                let isFinal = error.code == .superseded || Clock.system.monotonic() > deadline
                if isFinal { onFatalError(error) }
                noteAway(error)
                isAway = Clock.system.monotonic() > patience
                if isAway { refuseWaiting(error) }
                pause(milliseconds: 200)
            }
        }
    }

    /// Determines the outcome of a commit group in doubt, once and for all.
    ///
    /// - Parameter next: The new token.
    /// - Throws: ``SQLError/Code/superseded`` if another process took the node's place.
    private func settle(_ next: Int64) throws(SQLError) {
        let found = try connection.transact { db throws(SQLError) in
            guard let found = try fence.settle(db, token, next) else {
                throw SQLError(.superseded, "another process took this node's place in the store")
            }
            return found
        }
        (token, committed) = (next, found)
    }

    static func drawToken() -> Int64 { Int64.random(in: 1...Int64.max) }

    private func refuseWaiting(_ error: SQLError) {
        guard case .jobs(let jobs) = waiting.take(atMost: .max, patience: .zero) else { return }
        fail(jobs, error)
    }

    private func pause(milliseconds: UInt32) { usleep(milliseconds * 1000) }

    // MARK: Without work

    var patience: Duration? { .milliseconds(limits.heartbeat) }

    func rest() {
        switch attempt([], until: Clock.system.monotonic() + Self.signPatience) {
        case .failed(let error) where error.code == .unreachable: noteAway(error)
        case .failed(let error):
            log.warning("the database could not be told that this node lives", ("error", error.message))
        case .done, .mixed: noteBack()
        }
    }

    func end() {
        // The lease expires by itself.
        guard !isAway else { return }
        do throws(SQLError) {
            try connection.transact { db throws(SQLError) in try fence.leave(db, token) }
        } catch {
            log.warning("the node's place in the store could not be left", ("error", error.message))
        }
    }
}
