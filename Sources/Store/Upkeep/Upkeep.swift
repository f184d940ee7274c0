import Base
package import Core
import SQL

/// The kinds of rows that the janitor removes. An index finds the expired rows of each kind.
package enum Chore: CaseIterable, Sendable {
    /// Contents whose retention after the acknowledgement has ended.
    case acknowledgedContents
    /// Contents that were not acknowledged in time.
    case unacknowledgedContents
    /// Events, an hour after they were acknowledged.
    case events
    /// Completed tasks, a week after they were acknowledged.
    case tasks
    /// Bodies that no task has used for a day.
    case bodies
    case resumeData
    /// Answers kept for an `Idempotency-Key`.
    case answers
    /// Launches that ended a month ago.
    case launches
    /// API keys that ended a month ago.
    case keys
    /// Rows of deleted apps. Their sessions get a tombstone here, and are removed by ``forgottenSessions``.
    case deletedApps
    /// Sessions that have been invalid for a week.
    case invalidSessions
    case forgottenSessions
    /// Incarnation numbers, a month after the last session of their identifier.
    case incarnations
    /// Lanes without a task.
    case lanes
    /// Clients that have detached from other nodes.
    case presence
    /// Entries of the cache beyond its capacity.
    case cache
    /// Flights without a leader, or without followers.
    case flights
    /// Pauses of origins that have ended.
    case pauses
    /// Unused pages of the database file.
    case freePages
}

/// The outcome of one step of a chore.
package struct Cleaning: Sendable {
    /// Whether more rows have expired already.
    package var hasMore = false
    /// The time on the writer's thread, without the commit.
    package var duration = Duration.zero
    package var aftermath = Aftermath()
}

extension Store.Upkeep {
    /// Performs a step of a chore in one short transaction.
    ///
    /// - Parameter rows: The approximate maximum of rows removed or changed.
    package func clean(_ chore: Chore, at now: Timestamp, rows: Int) async throws -> Cleaning {
        try await database.write { db in
            let began = ContinuousClock.now
            let transaction = Transaction(db, store, now: now)
            var cleaning = Cleaning()
            cleaning.hasMore = try self.clean(chore, rows, transaction)
            cleaning.aftermath = try transaction.finish()
            cleaning.duration = began.duration(to: .now)
            return cleaning
        }
    }

    /// - Returns: Whether more rows have expired.
    private func clean(_ chore: Chore, _ rows: Int, _ transaction: Transaction) throws -> Bool {
        switch chore {
        case .acknowledgedContents: try expireAcknowledgedContents(rows, transaction)
        case .unacknowledgedContents: try store.files.expireUnacknowledgedContents(rows, transaction)
        case .events: try dropEvents(rows, transaction)
        case .tasks: try dropTasks(rows, transaction)
        case .bodies: try dropBodies(rows, transaction)
        case .resumeData: try store.tasks.dropResumeData(rows, transaction)
        case .answers: try dropAnswers(rows, transaction)
        case .launches: try dropLaunches(rows, transaction)
        case .keys: try dropKeys(rows, transaction)
        case .deletedApps: try removeDeletedApps(rows, transaction)
        case .invalidSessions: try forgetInvalidSessions(rows, transaction)
        case .forgottenSessions: try removeForgottenSessions(rows, transaction)
        case .incarnations: try dropIncarnations(rows, transaction)
        case .lanes: try dropIdleLanes(rows, transaction)
        case .presence: try store.sessions.dropPresence(rows, transaction)
        case .cache: try store.cache.evict(max(1, rows / Self.rowsOfContent), transaction)
        case .flights: try store.cache.endStrayFlights(rows, transaction)
        case .pauses: try dropPauses(rows, transaction)
        case .freePages: try transaction.db.returnFreePages()
        }
    }

    /// The retention of completed tasks after the acknowledgement of their last event.
    package static let completedRetention = Duration.seconds(7 * 24 * 3600)
    /// The retention of API keys after their expiry.
    package static let expiredKeyRetention = Duration.seconds(30 * 24 * 3600)

    /// The rows of a completed task: its own, its content, events, question, body and file.
    static let rowsOfTask = 8
    private static let rowsOfContent = 4

    // MARK: Acknowledged rows

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
            for task in contents { try store.files.expireContent(of: task, transaction) }
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
                """, (transaction.now - Store.Sessions.acknowledgedRetention).milliseconds
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

    /// If contents are kept for longer than a week, tasks wait for the contents acknowledged together with them.
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

    // MARK: Rows with their own expiry

    private func dropBodies(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        let due = try transaction.db.all(
            "SELECT id FROM body WHERE expires_at <= ?1 AND uses = 0 LIMIT ?2", transaction.now.milliseconds,
            max(1, rows / Self.rowsOfContent)
        ) { $0.integer(0) }
        for id in due { try store.files.remove(body: id, transaction) }
        return due.count == max(1, rows / Self.rowsOfContent)
    }

    private func dropAnswers(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        try transaction.db.change(
            """
            DELETE FROM idempotency WHERE (principal, idempotency_key) IN \
            (SELECT principal, idempotency_key FROM idempotency WHERE created_at <= ?1 LIMIT ?2)
            """, (transaction.now - Store.Apps.idempotencyPeriod).milliseconds, rows) == rows
    }

    private func dropPauses(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        try transaction.db.change(
            """
            DELETE FROM origin_pause WHERE (app, origin) IN \
            (SELECT app, origin FROM origin_pause WHERE ends_at <= ?1 LIMIT ?2)
            """, transaction.now.milliseconds, rows) == rows
    }

    private func dropKeys(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        try transaction.db.change(
            """
            DELETE FROM api_key WHERE key_identifier IN \
            (SELECT key_identifier FROM api_key WHERE expires_at <= ?1 LIMIT ?2)
            """, (transaction.now - Self.expiredKeyRetention).milliseconds, rows) == rows
    }

    /// Checks some lanes and deletes those without a task. The next call continues after them.
    private func dropIdleLanes(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        let db = transaction.db
        let cursor = store.idleLaneCursor.withLock { $0 }
        let lanes = try db.all(
            """
            SELECT id, queued > 0 OR EXISTS (SELECT 1 FROM live WHERE lane = lane.id) AS used FROM lane WHERE id > ?1 \
            ORDER BY id LIMIT ?2
            """, cursor, rows
        ) { (id: $0.integer("id"), isUsed: $0.bool("used")) }
        let idle = lanes.filter { !$0.isUsed }
        for lane in idle { try db.execute("DELETE FROM lane WHERE id = ?1", lane.id) }
        store.idleLaneCursor.withLock { $0 = lanes.count < rows ? 0 : lanes.last?.id ?? 0 }
        return lanes.count == rows && !idle.isEmpty
    }
}
