package import Core
import SQL

extension Store.Launches {
    /// The work due for the launch sender. Costs a few index look-ups.
    package func agenda(at now: Timestamp) async throws -> LaunchAgenda {
        try await database.read { db in try self.agenda(at: now, db) }
    }

    func agenda(at now: Timestamp, _ db: Connection) throws -> LaunchAgenda {
        let due = try db.exists("SELECT 1 FROM app WHERE next_launch_at <= ?1 LIMIT 1", now.milliseconds)
        let isUnsettled = try db.exists("SELECT 1 FROM app WHERE settled_launch IS NOT NULL LIMIT 1")
        let expired = try db.exists(
            "SELECT 1 FROM launch WHERE state IN ('delivering', 'launched') AND due_at <= ?1 LIMIT 1", now.milliseconds)
        let next = try db.first(
            """
            SELECT min(at) FROM (SELECT min(next_launch_at) AS at FROM app WHERE next_launch_at > ?1 \
            UNION ALL SELECT min(due_at) FROM launch WHERE state = 'delivering' AND due_at > ?1 \
            UNION ALL SELECT min(due_at) FROM launch WHERE state = 'launched' AND due_at > ?1) AS next
            """, now.milliseconds
        ) { $0.timeOrNil(0) }
        return LaunchAgenda(
            hasDueLaunches: due, hasExpired: expired, hasUnsettled: isUnsettled, next: next ?? nil)
    }

    /// Claims a launch for its next attempt.
    ///
    /// - Returns: `nil` if the launch is not to be sent: a fetch beyond its deadline ends here.
    func claim(
        _ id: Int64, of app: AppRecord, status: BackgroundRefreshStatus, leaseUntil: Timestamp,
        _ transaction: Transaction
    ) throws -> ClaimedLaunch? {
        try transaction.move(launch: id, .claim(leaseUntil: leaseUntil))
        if let node { try transaction.db.execute("UPDATE launch SET node = ?2 WHERE id = ?1", id, node) }
        // Until the body is written, the launch covers all events.
        try transaction.db.execute(
            """
            UPDATE launch SET last_seq = (SELECT last_seq FROM session WHERE session.id = launch.session) \
            WHERE id = ?1 AND body IS NULL AND session IN (SELECT id FROM session)
            """, id)
        guard var launch = try readClaimed(id, app, status, transaction.db) else { return nil }
        if launch.kind == .performFetch {
            guard try store.apps.noteFetchSent(&launch, app, transaction) else { return nil }
        }
        return launch
    }

    private func readClaimed(
        _ id: Int64, _ app: AppRecord, _ status: BackgroundRefreshStatus, _ db: Connection
    ) throws -> ClaimedLaunch? {
        try db.first(
            """
            SELECT public_id, session, session_identifier, kind, reasons, last_seq, attempts, body, traceparent, \
            created_at, expires_at FROM launch WHERE id = ?1
            """, id
        ) { row in
            ClaimedLaunch(
                id: id, launchId: row.text("public_id"), app: app.id, appIdentifier: app.identifier,
                session: row.integerOrNil("session").map(SessionID.init),
                sessionIdentifier: row.textOrNil("session_identifier"),
                kind: try row.value("kind"),
                reasons: LaunchRule.Reasons(rawValue: row.int("reasons")), lastSeq: row.integer("last_seq"),
                attempt: row.int("attempts"), body: row.blobOrNil("body"), traceparent: row.textOrNil("traceparent"),
                createdAt: row.time("created_at"), expiresAt: row.timeOrNil("expires_at") ?? .latestWritable,
                webhook: app.webhook, previousResult: nil, refreshStatus: app.backgroundRefreshStatus.stricter(status))
        }
    }

    /// The maximum size of the events in one webhook request, because receivers limit request bodies.
    private static let maximumLaunchBytes = 1 << 20

    /// The contents of a session's launch. The cost does not depend on the number of pending events.
    ///
    /// - Parameter limit: The maximum number of events to include.
    package func contents(
        of session: SessionID, through lastSeq: Int64, limit: Int
    ) async throws -> LaunchContents {
        try await database.read { db in
            let acknowledged = try db.first(
                "SELECT acknowledged_seq FROM session WHERE id = ?1", session.rawValue
            ) { $0.integer(0) }.orNotFound()
            let events =
                limit > 0
                ? try store.sessions.readEvents(
                    of: session, after: acknowledged, limit: limit, maximumBytes: Self.maximumLaunchBytes, db
                ).events : []
            return LaunchContents(
                pendingEvents: max(0, lastSeq - acknowledged),
                taskCounts: try self.completions(of: session, after: acknowledged, through: lastSeq, db),
                events: events.filter { $0.seq <= lastSeq })
        }
    }

    /// Counts completions as the difference between the totals that the first and last completion event carry.
    func completions(
        of session: SessionID, after: Int64, through lastSeq: Int64, _ db: Connection
    ) throws -> TaskCounts {
        let first = try db.first(
            """
            SELECT e.data, t.outcome FROM task t JOIN event e ON e.session = t.session AND e.seq = t.completed_seq \
            WHERE t.session = ?1 AND t.completed_seq > ?2 AND t.completed_seq <= ?3 ORDER BY t.completed_seq LIMIT 1
            """, session.rawValue, after, lastSeq
        ) { (TaskCounts(completions: $0.blob("data")), try $0.value("outcome") as Outcome) }
        let last = try db.first(
            """
            SELECT e.data FROM task t JOIN event e ON e.session = t.session AND e.seq = t.completed_seq \
            WHERE t.session = ?1 AND t.completed_seq > ?2 AND t.completed_seq <= ?3 \
            ORDER BY t.completed_seq DESC LIMIT 1
            """, session.rawValue, after, lastSeq
        ) { TaskCounts(completions: $0.blob(0)) }
        guard let (before, outcome) = first, var counts = last else { return TaskCounts() }
        for outcome in Outcome.allCases { counts[outcome] -= before[outcome] }
        counts[outcome] += 1
        return counts
    }

    /// Stores the body that every attempt sends. A stored body is never replaced.
    ///
    /// - Returns: The stored body.
    package func freezeBody(_ body: [UInt8], of id: Int64) async throws -> [UInt8] {
        try await database.write { db in
            try db.first(
                "UPDATE launch SET body = coalesce(body, ?2) WHERE id = ?1 RETURNING body", id, body
            ) { $0.blob(0) } ?? body
        }
    }

    /// Stores the outcome of an attempt: its row, the launch's state, the webhook's health and their consequences.
    ///
    /// A decision of the app or the operator in the meantime prevails.
    ///
    /// - Parameter jitter: A number in `0..<1`.
    package func record(_ report: LaunchReport, jitter: Double, at now: Timestamp) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let db = transaction.db
            let id = report.launch.id
            let phase = try db.first("SELECT state FROM launch WHERE id = ?1", id) {
                try $0.value(0) as LaunchState.Phase
            }
            guard let phase, let app = try store.apps.read(report.launch.app, db) else { return }
            let isUnderWay = phase.mayBeUnderWay
            if report.verdict == .interrupted {
                if phase == .delivering { try transaction.move(launch: id, .interrupted) }
                return
            }
            try self.insert(report.attempt, launch: id, db)
            // The failures of an earlier URL say nothing about the current one.
            let isOfCurrentURL = report.launch.webhook.url == app.webhook.url
            switch report.verdict {
            case .succeeded(let answer):
                try store.apps.noteSuccess(of: app.id, transaction)
                try self.succeed(report, answer, app, isUnderWay: isUnderWay, transaction)
            case .failed(let retryAfter, let wasAnswered):
                if isUnderWay {
                    try self.fail(
                        report.launch, app, retryAfter: retryAfter, wasAnswered: wasAnswered, jitter: jitter,
                        transaction)
                }
                if isOfCurrentURL { try store.apps.noteFailure(of: app, transaction) }
            case .gone:
                if isUnderWay {
                    try self.fail(
                        report.launch, app, retryAfter: nil, wasAnswered: true, jitter: jitter, transaction)
                }
                if isOfCurrentURL { try store.apps.disable(app, "The receiver answered 410 Gone.", transaction) }
            case .interrupted: break
            }
        }.1
    }

    private func insert(_ attempt: LaunchAttempt, launch: Int64, _ db: Connection) throws {
        try db.execute(
            """
            INSERT INTO launch_attempt (launch, number, started_at, duration, status, error, excerpt) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (launch, number) DO UPDATE \
            SET started_at = ?3, duration = ?4, status = ?5, error = ?6, excerpt = ?7
            """,
            launch, attempt.number, attempt.startedAt.milliseconds, attempt.duration.milliseconds, attempt.statusCode,
            attempt.error, attempt.excerpt)
    }

    private func succeed(
        _ report: LaunchReport, _ answer: LaunchAnswer?, _ app: AppRecord, isUnderWay: Bool, _ transaction: Transaction
    ) throws {
        let launch = report.launch
        if launch.kind == .refreshStatusDidChange {
            // A notice has nothing to complete.
            if isUnderWay { try transaction.move(launch: launch.id, .complete) }
            return
        }
        if let answer, answer.fits(launch.kind) {
            do {
                _ = try take(answer, to: launch.id, launch.launchId, of: app, .webhook, transaction)
                return
            } catch DomainError.acknowledgementOutOfRange {
                // The answer completed events that do not exist, but it proves that the app was launched.
                try note("The answer completes events that do not exist.", on: launch, transaction.db)
            } catch DomainError.attachmentFenced {
                try note("Another client holds the session's attachment.", on: launch, transaction.db)
            }
        }
        guard isUnderWay else { return }
        let completesBy = transaction.now + .seconds(app.webhook.launchDeadline)
        let deadline = launch.kind == .performFetch ? launch.expiresAt : completesBy
        try transaction.move(launch: launch.id, .succeeded(deadline: deadline))
    }

    func fail(
        _ launch: ClaimedLaunch, _ app: AppRecord, retryAfter: Duration?, wasAnswered: Bool, jitter: Double,
        _ transaction: Transaction
    ) throws {
        let schedule: LaunchSchedule =
            launch.kind == .performFetch ? (wasAnswered ? .once : .fetch) : .standard
        let failure = LaunchState.Failure(
            schedule: schedule, jitter: jitter, retryAfter: retryAfter, expiresAt: launch.expiresAt)
        if try transaction.move(launch: launch.id, .failed(failure)).contains(.giveUp) {
            try giveUp(launch.id, app, transaction)
        }
    }

    /// Applies the consequences of an exhausted launch: only newer causes may launch the session's app again.
    func giveUp(_ id: Int64, _ app: AppRecord, _ transaction: Transaction) throws {
        let row = try transaction.db.first(
            "SELECT public_id, session, last_seq, kind FROM launch WHERE id = ?1", id
        ) { row in
            (
                row.text("public_id"), row.integerOrNil("session").map(SessionID.init), row.integer("last_seq"),
                try row.value("kind") as LaunchKind
            )
        }
        guard let (launchId, sessionID, lastSeq, kind) = row else { return }
        if kind == .performFetch { try store.apps.expireFetch(launchId, id: id, app, transaction) }
        guard let sessionID, let session = try transaction.sessionIfPresent(sessionID) else { return }
        session.book.exhausted(id, tellingThrough: lastSeq)
        session.revision += 1
        session.isChanged = true
    }

    private func note(_ error: String, on launch: ClaimedLaunch, _ db: Connection) throws {
        try db.execute(
            "UPDATE launch_attempt SET error = ?3 WHERE launch = ?1 AND number = ?2", launch.id, launch.attempt, error)
    }
}
