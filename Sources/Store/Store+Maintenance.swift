package import Core
import SQLite

extension Store {
    /// Removes what is no longer kept, in small steps: one call is one short transaction.
    ///
    /// - Returns: Whether there may be more to remove at once.
    package func sweep(at now: Timestamp, limit: Int) async throws -> (hasMore: Bool, aftermath: Aftermath) {
        try await transact(at: now) { transaction in
            let db = transaction.db
            var removed = 0
            removed += try self.sweepBodies(limit, transaction)
            removed += try self.sweepEvents(limit, transaction)
            removed += try self.sweepTasks(limit, transaction)
            removed += try self.sweepForgottenSessions(limit, transaction)
            removed += try self.sweepInvalidSessions(limit, transaction)
            try db.execute(
                """
                DELETE FROM idempotency WHERE (principal, idempotency_key) IN \
                (SELECT principal, idempotency_key FROM idempotency WHERE created_at <= ?1 LIMIT ?2)
                """, (now - Self.idempotencyPeriod).milliseconds, limit)
            removed += db.changes
            try self.sweepResumeData(transaction)
            return removed >= limit
        }
    }

    /// Completed tasks are kept for this long after their last event was acknowledged.
    package static let completedRetention = Duration.seconds(7 * 24 * 3600)
    /// An invalid session stays readable for this long.
    package static let invalidRetention = Duration.seconds(7 * 24 * 3600)

    private func sweepBodies(_ limit: Int, _ transaction: Transaction) throws -> Int {
        let due = try transaction.db.all(
            "SELECT id FROM body WHERE expires_at <= ?1 AND uses = 0 LIMIT ?2", transaction.now.milliseconds, limit
        ) { $0.integer(0) }
        for id in due { try remove(body: id, transaction) }
        return due.count
    }

    /// Drops events an hour after they were acknowledged.
    private func sweepEvents(_ limit: Int, _ transaction: Transaction) throws -> Int {
        let db = transaction.db
        let due = try db.all(
            "SELECT session, through FROM acknowledgement WHERE at <= ?1 AND at > 0 ORDER BY at LIMIT 16",
            (transaction.now - Self.acknowledgedRetention).milliseconds
        ) { ($0.integer(0), $0.integer(1)) }
        var removed = 0
        for (session, through) in due {
            try db.execute(
                """
                DELETE FROM event WHERE session = ?1 AND seq IN \
                (SELECT seq FROM event WHERE session = ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3)
                """, session, through, limit)
            removed += db.changes
            if db.changes < limit {
                try db.execute(
                    "UPDATE session SET dropped_seq = max(dropped_seq, ?2) WHERE id = ?1", session, through)
                // Kept with a negative time for the tasks, which live longer than their events.
                try db.execute(
                    "UPDATE acknowledgement SET at = -at WHERE session = ?1 AND through = ?2", session, through)
            } else {
                try db.execute(
                    """
                    UPDATE session SET dropped_seq = ifnull((SELECT min(seq) - 1 FROM event WHERE session = ?1), \
                    dropped_seq) WHERE id = ?1
                    """, session)
            }
        }
        return removed
    }

    /// Drops completed tasks a week after their last event was acknowledged.
    private func sweepTasks(_ limit: Int, _ transaction: Transaction) throws -> Int {
        let db = transaction.db
        let before = -(transaction.now - Self.completedRetention).milliseconds
        let due = try db.all(
            "SELECT session, through FROM acknowledgement WHERE at < 0 AND at >= ?1 ORDER BY at DESC LIMIT 16", before
        ) { ($0.integer(0), $0.integer(1)) }
        var removed = 0
        for (session, through) in due {
            let tasks = try db.all(
                """
                SELECT t.id FROM task t LEFT JOIN content c ON c.task = t.id WHERE t.session = ?1 AND t.state = 3 \
                AND ifnull(c.expired, 1) = 1 AND t.completed_seq <= ?2 LIMIT ?3
                """, session, through, limit
            ) { $0.integer(0) }
            for task in tasks { try delete(task: task, transaction) }
            removed += tasks.count
            if tasks.count == limit { continue }
            try db.execute("DELETE FROM acknowledgement WHERE session = ?1 AND through = ?2", session, through)
            // Contents may be kept for longer than their tasks: then it is looked at again in an hour.
            try db.execute(
                """
                INSERT INTO acknowledgement (session, through, at) SELECT ?1, ?2, ?3 WHERE EXISTS \
                (SELECT 1 FROM task WHERE session = ?1 AND completed_seq <= ?2)
                """, session, through, before - 3_600_000)
        }
        return removed
    }

    private func sweepInvalidSessions(_ limit: Int, _ transaction: Transaction) throws -> Int {
        let due = try transaction.db.all(
            "SELECT id FROM session WHERE state = 2 AND forgotten = 0 AND invalid_at <= ?1 LIMIT ?2",
            (transaction.now - Self.invalidRetention).milliseconds, limit
        ) { SessionID($0.integer(0)) }
        for session in due { try forget(session, transaction) }
        return due.count
    }

    /// Removes forgotten sessions, a few tasks at a time.
    private func sweepForgottenSessions(_ limit: Int, _ transaction: Transaction) throws -> Int {
        let db = transaction.db
        guard
            let session = try db.first(
                "SELECT id FROM session WHERE forgotten = 1 ORDER BY id LIMIT 1", read: { $0.integer(0) })
        else { return 0 }
        let tasks = try db.all("SELECT id FROM task WHERE session = ?1 LIMIT ?2", session, limit) { $0.integer(0) }
        for task in tasks { try delete(task: task, transaction) }
        if tasks.count == limit { return limit }
        try db.execute(
            "DELETE FROM event WHERE session = ?1 AND seq IN (SELECT seq FROM event WHERE session = ?1 LIMIT ?2)",
            session, limit)
        if db.changes == limit { return limit }
        try db.execute("DELETE FROM lane WHERE session = ?1", session)
        try db.execute("DELETE FROM acknowledgement WHERE session = ?1", session)
        try db.execute("DELETE FROM question WHERE session = ?1", session)
        try db.execute("DELETE FROM credential WHERE session = ?1", session)
        try db.execute("DELETE FROM cookie_jar WHERE session = ?1", session)
        try db.execute("DELETE FROM session WHERE id = ?1", session)
        return tasks.count + 1
    }

    private func delete(task id: Int64, _ transaction: Transaction) throws {
        let db = transaction.db
        if let live = try LiveTask.read(TaskID(id), db) {
            if let body = live.body { try release(body: body, transaction) }
            try db.execute("DELETE FROM live WHERE task = ?1", id)
            try discard(Self.partialFile(live.id), transaction)
            if let file = try progress(of: live).adoptedFile { try discard(file, transaction) }
        }
        let content = try db.first(
            "DELETE FROM content WHERE task = ?1 RETURNING file, iif(expired, 0, length), session", id
        ) { ($0.textOrNil(0), $0.integer(1), SessionID($0.integer(2))) }
        if let (file, length, session) = content {
            if length > 0 { transaction.addStored(-length, app: try transaction.session(session).app) }
            if let file { try discard(file, transaction) }
        }
        try db.execute("DELETE FROM question WHERE task = ?1", id)
        try db.execute("DELETE FROM task WHERE id = ?1", id)
    }

    /// Whether a file below the data folder belongs to something.
    package func isNeeded(file path: String) async throws -> Bool {
        try await database.read { db in
            if path.hasPrefix("partial/"), let task = Int64(path.dropFirst("partial/".count)) {
                return try db.first("SELECT 1 FROM live WHERE task = ?1", task) { _ in true } ?? false
            }
            return try db.first(
                """
                SELECT 1 WHERE EXISTS (SELECT 1 FROM content WHERE file = ?1) \
                OR EXISTS (SELECT 1 FROM body WHERE file = ?1) \
                OR EXISTS (SELECT 1 FROM resume_data WHERE file = ?1)
                """, path
            ) { _ in true } ?? false
        }
    }
}
