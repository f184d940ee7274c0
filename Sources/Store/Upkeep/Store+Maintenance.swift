import Base
package import Core
import SQL

/// What the janitor removes, one kind at a time. What is due of each is found by an index.
package enum Chore: CaseIterable, Sendable {
    /// Contents whose acknowledgement is older than they are kept.
    case acknowledgedContents
    /// Contents that were not acknowledged in time.
    case unacknowledgedContents
    /// Events, an hour after they were acknowledged.
    case events
    /// Completed tasks, a week after they were acknowledged.
    case tasks
    /// Bodies that no task needs, a day later.
    case bodies
    case resumeData
    /// Answers kept for an `Idempotency-Key`.
    case answers
    /// Launches that ended a month ago.
    case launches
    /// API keys that ended a month ago.
    case keys
    /// What deleted apps have left; their sessions are forgotten here, and removed as ``forgottenSessions``.
    case deletedApps
    /// Sessions that have been invalid for a week.
    case invalidSessions
    case forgottenSessions
    /// How often identifiers were used, a month after the last session that had them.
    case incarnations
    /// Lanes without a task.
    case lanes
    /// Clients of other nodes that left.
    case presence
    /// Pages of the database's file that nothing uses.
    case freePages
}

/// What one piece of cleaning came to.
package struct Cleaning: Sendable {
    /// Whether more is due already.
    package var hasMore = false
    /// How long the writer was busy with it, the commit left out.
    package var duration = Duration.zero
    package var aftermath = Aftermath()
}

extension Store {
    /// Does a piece of a chore in one short transaction.
    ///
    /// - Parameter rows: How many rows it may remove or change, roughly.
    package func clean(_ chore: Chore, at now: Timestamp, rows: Int) async throws -> Cleaning {
        try await database.write { db in
            let began = ContinuousClock.now
            let transaction = Transaction(db, self, now: now)
            var cleaning = Cleaning()
            cleaning.hasMore = try self.clean(chore, rows, transaction)
            cleaning.aftermath = try transaction.finish()
            cleaning.duration = began.duration(to: .now)
            return cleaning
        }
    }

    /// Writes that others and the janitor have asked for and were carried out.
    package var performedWrites: Int { database.performedWrites }

    /// - Returns: Whether more is due.
    private func clean(_ chore: Chore, _ rows: Int, _ transaction: Transaction) throws -> Bool {
        switch chore {
        case .acknowledgedContents: try expireAcknowledgedContents(rows, transaction)
        case .unacknowledgedContents: try expireUnacknowledgedContents(rows, transaction)
        case .events: try dropEvents(rows, transaction)
        case .tasks: try dropTasks(rows, transaction)
        case .bodies: try dropBodies(rows, transaction)
        case .resumeData: try dropResumeData(rows, transaction)
        case .answers: try dropAnswers(rows, transaction)
        case .launches: try dropLaunches(rows, transaction)
        case .keys: try dropKeys(rows, transaction)
        case .deletedApps: try removeDeletedApps(rows, transaction)
        case .invalidSessions: try forgetInvalidSessions(rows, transaction)
        case .forgottenSessions: try removeForgottenSessions(rows, transaction)
        case .incarnations: try dropIncarnations(rows, transaction)
        case .lanes: try dropIdleLanes(rows, transaction)
        case .presence: try dropPresence(rows, transaction)
        case .freePages: try transaction.db.returnFreePages()
        }
    }

    /// Completed tasks are kept for this long after their last event was acknowledged.
    package static let completedRetention = Duration.seconds(7 * 24 * 3600)
    /// API keys are kept for this long after they ended.
    package static let expiredKeyRetention = Duration.seconds(30 * 24 * 3600)

    /// A completed task comes with its content, events of its own, question, body and file.
    static let rowsOfTask = 8
    private static let rowsOfContent = 4

    // MARK: What acknowledgements began

    private func expireAcknowledgedContents(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        let db = transaction.db
        var left = rows
        while left > 0 {
            let due = try db.first(
                """
                SELECT session, through FROM acknowledgement WHERE contents_expired = 0 AND at <= ?1 ORDER BY at LIMIT 1
                """, (transaction.now - policies.contentRetention).milliseconds
            ) { ($0.integer("session"), $0.integer("through")) }
            guard let (session, through) = due else { return false }
            let wanted = max(1, left / Self.rowsOfContent)
            let contents = try db.all(
                "SELECT task FROM content WHERE session = ?1 AND seq <= ?2 AND expired = 0 ORDER BY seq LIMIT ?3",
                session, through, wanted
            ) { $0.integer(0) }
            for task in contents { try expireContent(of: task, transaction) }
            left -= contents.count * Self.rowsOfContent + 1
            if contents.count == wanted { return true }
            try db.execute(
                "UPDATE acknowledgement SET contents_expired = 1 WHERE session = ?1 AND through = ?2", session, through)
        }
        return true
    }

    private func dropEvents(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        let db = transaction.db
        var left = rows
        while left > 0 {
            let due = try db.first(
                """
                SELECT session, through FROM acknowledgement WHERE events_dropped = 0 AND at <= ?1 ORDER BY at LIMIT 1
                """, (transaction.now - Self.acknowledgedRetention).milliseconds
            ) { ($0.integer("session"), $0.integer("through")) }
            guard let (session, through) = due else { return false }
            let dropped = try db.change(
                """
                DELETE FROM event WHERE session = ?1 AND seq IN \
                (SELECT seq FROM event WHERE session = ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3)
                """, session, through, left)
            if dropped == left {
                try db.execute(
                    """
                    UPDATE session SET dropped_seq = coalesce((SELECT min(seq) - 1 FROM event WHERE session = ?1), \
                    last_seq) WHERE id = ?1
                    """, session)
                return true
            }
            left -= dropped + 2
            try db.execute("UPDATE session SET dropped_seq = ?2 WHERE id = ?1 AND dropped_seq < ?2", session, through)
            try db.execute(
                "UPDATE acknowledgement SET events_dropped = 1 WHERE session = ?1 AND through = ?2", session, through)
        }
        return true
    }

    /// Where contents are kept for longer than a week, tasks wait for those acknowledged together with them.
    private func dropTasks(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        let db = transaction.db
        var left = rows
        while left > 0 {
            let due = try db.first(
                """
                SELECT session, through FROM acknowledgement WHERE contents_expired = 1 AND events_dropped = 1 \
                AND at <= ?1 ORDER BY at LIMIT 1
                """, (transaction.now - Self.completedRetention).milliseconds
            ) { ($0.integer("session"), $0.integer("through")) }
            guard let (session, through) = due else { return false }
            let wanted = max(1, left / Self.rowsOfTask)
            let tasks = try db.all(
                "SELECT id FROM task WHERE session = ?1 AND completed_seq <= ?2 ORDER BY completed_seq LIMIT ?3",
                session, through, wanted
            ) { $0.integer(0) }
            for task in tasks { try remove(task: task, transaction) }
            left -= tasks.count * Self.rowsOfTask + 1
            if tasks.count == wanted { return true }
            try db.execute("DELETE FROM acknowledgement WHERE session = ?1 AND through = ?2", session, through)
        }
        return true
    }

    // MARK: What has its own time

    private func dropBodies(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        let due = try transaction.db.all(
            "SELECT id FROM body WHERE expires_at <= ?1 AND uses = 0 LIMIT ?2", transaction.now.milliseconds,
            max(1, rows / Self.rowsOfContent)
        ) { $0.integer(0) }
        for id in due { try remove(body: id, transaction) }
        return due.count == max(1, rows / Self.rowsOfContent)
    }

    private func dropAnswers(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        try transaction.db.change(
            """
            DELETE FROM idempotency WHERE (principal, idempotency_key) IN \
            (SELECT principal, idempotency_key FROM idempotency WHERE created_at <= ?1 LIMIT ?2)
            """, (transaction.now - Self.idempotencyPeriod).milliseconds, rows) == rows
    }

    private func dropKeys(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        try transaction.db.change(
            """
            DELETE FROM api_key WHERE key_identifier IN \
            (SELECT key_identifier FROM api_key WHERE expires_at <= ?1 LIMIT ?2)
            """, (transaction.now - Self.expiredKeyRetention).milliseconds, rows) == rows
    }

    /// Looks at some lanes and drops those without a task; the next call goes on behind them.
    private func dropIdleLanes(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        let db = transaction.db
        let cursor = idleLaneCursor.withLock { $0 }
        let lanes = try db.all(
            """
            SELECT id, queued > 0 OR EXISTS (SELECT 1 FROM live WHERE lane = lane.id) AS used FROM lane WHERE id > ?1 \
            ORDER BY id LIMIT ?2
            """, cursor, rows
        ) { (id: $0.integer("id"), isUsed: $0.bool("used")) }
        let idle = lanes.filter { !$0.isUsed }
        for lane in idle { try db.execute("DELETE FROM lane WHERE id = ?1", lane.id) }
        idleLaneCursor.withLock { $0 = lanes.count < rows ? 0 : lanes.last?.id ?? 0 }
        return lanes.count == rows && !idle.isEmpty
    }
}
