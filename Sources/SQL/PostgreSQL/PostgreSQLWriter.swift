import Base
import Glibc

/// The one thread of a node that writes.
///
/// Group commit: it takes all closures that wait, runs them in one transaction and answers all after the commit. What they
/// write is sent with the commit in one flight. There are no savepoints, which would cost more than what they save: where
/// one fails, the group is undone and its closures run again, one by one.
///
/// A connection that is lost is made anew. Each group carries a number; when the answer to its COMMIT is lost, the node's
/// row says whether it was committed.
final class PostgreSQLWriter: Writer {
    let state: WriterState
    private let connection: PostgreSQLConnection
    private var node: PostgreSQLNode
    private let log: Log
    private let onCommit: @Sendable (Commit) -> Void
    private let onFatalError: @Sendable (SQLError) -> Never

    private let limits: Limits
    /// Closures that wait for their turn.
    private let waiting: Mailbox<Job>
    /// Since when the server is out of reach, by the monotonic clock in milliseconds; nil while it is not.
    private var awaySince: Int64?
    /// Whether it was waited for in vain. It is not waited for again until it was seen.
    private var isAway = false
    /// Whether others' locks were waited for in vain. They are not waited for as long again until a group is done.
    private var isBlocked = false
    /// When the node said last that it lives, by the monotonic clock in milliseconds.
    private var lastSign = Clock.system.monotonic()

    /// How long something takes at most, in milliseconds.
    struct Limits: Sendable {
        /// From one sign of life of the node to the next.
        var heartbeat = Int64(PostgreSQLNode.lease) * 1000 / 3
        /// For how long a server is waited for before closures are answered that it is away, and others' locks before they
        /// are answered that it is busy.
        var patience: Int64 = 10_000
        /// For how long the outcome of a commit may stay unknown. The next start finds out.
        var doubt: Int64 = 120_000
    }

    /// How long a sign of life waits for its row, in milliseconds.
    private static let signPatience: Int64 = 2000
    /// Times that a closure is tried that others were in the way of.
    private static let tries = 8

    init(
        _ connection: PostgreSQLConnection, _ node: PostgreSQLNode, waiting: Mailbox<Job>, limits: Limits,
        state: WriterState, log: Log,
        onCommit: @escaping @Sendable (Commit) -> Void, onFatalError: @escaping @Sendable (SQLError) -> Never
    ) {
        self.connection = connection
        self.node = node
        self.waiting = waiting
        self.limits = limits
        self.state = state
        self.log = log
        self.onCommit = onCommit
        self.onFatalError = onFatalError
    }

    // MARK: Groups

    /// What became of a group.
    private enum Ending {
        /// All that was done is durable, or undone where its only closure failed.
        case done([Job.Outcome], hasWritten: Bool)
        /// All was undone, since one of several closures failed that had written.
        case mixed
        /// All was undone.
        case failed(SQLError)
    }

    func perform(_ jobs: [Job]) {
        // A group that waits for locks says nothing, and must not seem dead for that.
        if awaySince == nil, Clock.system.monotonic() - lastSign >= limits.heartbeat / 2 { rest() }
        perform(jobs, until: Clock.system.monotonic() + limits.patience / (isBlocked ? 10 : 1))
    }

    /// - Parameter deadline: Until when others' locks are waited for, by the monotonic clock in milliseconds.
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

    /// Runs the closures in one transaction; again where the connection was lost.
    private func run(_ jobs: [Job], until lockDeadline: Int64) -> Ending {
        let deadline = Clock.system.monotonic() + (isAway ? 0 : limits.patience)
        while true {
            let ending = attempt(jobs, until: lockDeadline)
            guard case .failed(let error) = ending, error.code == .unreachable else {
                noteBack()
                return ending
            }
            // What was lost was found out from a server that is there.
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

    /// Runs the closures in one transaction. No closures are a sign of life.
    ///
    /// - Parameter deadline: Until when others' locks are waited for.
    private func attempt(_ jobs: [Job], until deadline: Int64) -> Ending {
        let patience = max(1, deadline - Clock.system.monotonic())
        do throws(SQLError) {
            // A node that stands still, or that the network has lost, keeps the others waiting for five seconds at most,
            // whether the server waits for it to say something or to take something; and what it sent last, which no
            // process waits for any more, waits for its turn no longer than the others do.
            // Each statement has its index and touches few rows. Before a table was analysed the server thinks otherwise and
            // reads all of it; and only plain index scans leave out, the next time, entries of rows that are gone.
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

    /// Commits what was written.
    ///
    /// - Returns: Whether it is committed. It is not where the connection was lost before that.
    private func commit() throws(SQLError) -> Bool {
        let number = node.committed + 1
        do throws(SQLError) {
            try node.sign(number, connection)
            try connection.commit()
            node.committed = number
            lastSign = Clock.system.monotonic()
            return true
        } catch {
            if error.code == .postgresql("22012") {
                // Another process has the node's place, or a closure has divided by zero.
                connection.rollBack()
                findOut()
            }
            guard error.code == .unreachable else { throw error }
            log.warning("the answer to a commit was lost", ("error", error.message))
            findOut()
            noteBack()
            return node.committed == number
        }
    }

    /// Asks the node's row how far it came, for as long as that takes: none of the group can be answered before. Others
    /// wait no longer than usual.
    private func findOut() {
        let next = PostgreSQLNode.nextEpoch()
        let start = Clock.system.monotonic()
        let (patience, deadline) = (start + (isAway ? 0 : limits.patience), start + limits.doubt)
        while true {
            do throws(SQLError) {
                return try node.settle(next, connection)
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

    private func refuseWaiting(_ error: SQLError) {
        guard case .items(let jobs) = waiting.take(atMost: .max, patience: .zero) else { return }
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
        // The lease ends by itself.
        guard !isAway else { return }
        do throws(SQLError) {
            try node.leave(connection)
        } catch {
            log.warning("the node's place in the store could not be left", ("error", error.message))
        }
    }
}
