import Core
import SQL

extension Store.Upkeep {
    /// The retention of an invalid session.
    package static let invalidRetention = Duration.seconds(7 * 24 * 3600)
    /// The retention of an identifier's incarnation number after its last session.
    package static let incarnationRetention = Duration.seconds(30 * 24 * 3600)

    /// Lanes emptied by the commit that deletes their session. The scheduler and the janitor empty the rest as they
    /// reach them.
    private static let lanesAtOnce = 500

    /// Deletes a session with a tombstone. Writes the same few rows, whatever the session contains.
    func forget(_ id: SessionID, _ transaction: Transaction) throws {
        let db = transaction.db
        let entry = try transaction.session(id)
        guard !entry.isForgotten else { return }
        // Streams and held requests end.
        transaction.aftermath.sessions[id] = entry.lastSeq
        transaction.aftermath.hasDeletedTasks = true
        try store.launches.supersede(of: entry, transaction)
        transaction.aftermath.transfersToStop += try db.all(
            "SELECT task FROM live WHERE session = ?1 AND stage = 'active' ORDER BY task", id.rawValue
        ) { TaskID($0.integer(0)) }
        _ = try emptyLanes(of: id, Self.lanesAtOnce, db)
        if entry.book.versionsInFlight > 0 { try store.sets.wakeVersions(of: id, transaction) }
        transaction.addUnfinished(-entry.counts.unfinished, app: entry.app)
        try entry.forget(at: transaction.now, db)
        try db.execute(
            "UPDATE incarnation SET forgotten_at = ?3 WHERE app = ?1 AND identifier = ?2", entry.app.rawValue,
            entry.identifier, transaction.now.milliseconds)
    }

    /// Removes lanes of a session from the queue, up to `limit`.
    ///
    /// - Returns: The number of lanes.
    func emptyLanes(of session: SessionID, _ limit: Int, _ db: Connection) throws -> Int {
        try db.change(
            "UPDATE lane SET queued = 0 WHERE id IN (SELECT id FROM lane WHERE session = ?1 AND queued > 0 LIMIT ?2)",
            session.rawValue, limit)
    }

    func forgetInvalidSessions(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        let wanted = max(1, rows / Self.rowsOfTask)
        let due = try transaction.db.all(
            "SELECT id FROM session WHERE state = 'invalid' AND forgotten = 0 AND invalid_at <= ?1 LIMIT ?2",
            (transaction.now - Self.invalidRetention).milliseconds, wanted
        ) { SessionID($0.integer(0)) }
        for session in due { try forget(session, transaction) }
        return due.count == wanted
    }

    func dropIncarnations(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        try transaction.db.change(
            """
            DELETE FROM incarnation WHERE (app, identifier) IN \
            (SELECT app, identifier FROM incarnation WHERE forgotten_at <= ?1 LIMIT ?2)
            """, (transaction.now - Self.incarnationRetention).milliseconds, rows) == rows
    }

    // MARK: Forgotten sessions

    func removeForgottenSessions(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        var left = rows
        while left > 0 {
            let next = try transaction.db.first("SELECT id FROM session WHERE forgotten = 1 ORDER BY id LIMIT 1") {
                $0.integer(0)
            }
            guard let next else { return false }
            try remove(session: next, &left, transaction)
        }
        return true
    }

    /// Removes a session's rows, at most `left`; its own row last.
    private func remove(session id: Int64, _ left: inout Int, _ transaction: Transaction) throws {
        let db = transaction.db
        // Lanes first, because the scheduler reads them.
        left -= try db.change(
            "DELETE FROM lane WHERE id IN (SELECT id FROM lane WHERE session = ?1 LIMIT ?2)", id, left)
        guard left > 0 else { return }
        let tasks = try db.all(
            "SELECT id FROM task WHERE session = ?1 LIMIT ?2", id, max(1, left / Self.rowsOfTask)
        ) { $0.integer(0) }
        for task in tasks { try remove(task: task, transaction) }
        left -= tasks.count * Self.rowsOfTask
        guard left > Self.rowsOfTask else { return left = 0 }
        left -= try db.change(
            "DELETE FROM event WHERE session = ?1 AND seq IN (SELECT seq FROM event WHERE session = ?1 LIMIT ?2)", id,
            left)
        guard left > 0 else { return }
        left -= try db.change(
            """
            DELETE FROM acknowledgement WHERE session = ?1 AND through IN \
            (SELECT through FROM acknowledgement WHERE session = ?1 LIMIT ?2)
            """, id, left)
        guard left > 0 else { return }
        left -= try removeCredentials(of: SessionID(id), left, db)
        guard left > 0 else { return }
        try db.execute("DELETE FROM cookie_jar WHERE session = ?1", id)
        try db.execute("DELETE FROM session WHERE id = ?1", id)
        left -= 2
    }

    /// Removes credentials of a session, up to `limit`.
    ///
    /// - Returns: The number removed.
    func removeCredentials(of session: SessionID, _ limit: Int, _ db: Connection) throws -> Int {
        try db.change(
            "DELETE FROM credential WHERE id IN (SELECT id FROM credential WHERE session = ?1 LIMIT ?2)",
            session.rawValue, limit)
    }

    /// Removes a task with all of its rows except its events.
    func remove(task id: Int64, _ transaction: Transaction) throws {
        let db = transaction.db
        let live = try db.first(
            "DELETE FROM live WHERE task = ?1 RETURNING body, progress_document, flight, stage", id
        ) { row in
            (
                body: row.integerOrNil("body"), progress: row.blobOrNil("progress_document"),
                hasFlight: !row.isNull("flight"), isActive: try row.value("stage") == TaskLife.Phase.active
            )
        }
        if let live {
            if let body = live.body { try store.files.release(body: body, transaction) }
            let progress = try live.progress.map { try documents.decode(TaskProgress.self, $0) }
            if let progress { try store.tasks.abandonUpload(of: TaskID(id), progress, transaction) }
            let isPassedOn =
                try live.hasFlight
                && store.cache.handOverFlight(ledBy: TaskID(id), progress, isWriting: live.isActive, transaction)
            // The last settlement of the transfer passes the partial file on, or discards it.
            let partial = isPassedOn && live.isActive ? nil : Store.Tasks.partialFile(TaskID(id))
            for file in [partial, progress?.adoptedFile].compactMap({ $0 })
            where try !store.tasks.isKept(file, but: TaskID(id), db) {
                try store.files.discard(file, on: progress?.node, transaction)
            }
        }
        try store.tasks.removeKeptForRetry(TaskID(id), transaction)
        let content = try db.first(
            "DELETE FROM content WHERE task = ?1 RETURNING file, object, length, expired, session", id
        ) { row in
            (
                place: StoredPlace(file: row.textOrNil("file"), object: row.textOrNil("object")),
                length: row.integer("length"), isExpired: row.bool("expired"),
                session: SessionID(row.integer("session"))
            )
        }
        if let content, !content.isExpired {
            let app = try transaction.session(content.session).app
            transaction.addStored(-content.length, app: app)
            try store.files.release(content.place, content.length, of: app, transaction)
        }
        try db.execute("DELETE FROM question WHERE task = ?1", id)
        try db.execute("DELETE FROM task WHERE id = ?1", id)
    }

    // MARK: Deleted apps

    func removeDeletedApps(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        let apps = try transaction.db.all("SELECT app FROM deleted_app ORDER BY app LIMIT 100") { AppID($0.integer(0)) }
        var left = rows
        for app in apps {
            try remove(app: app, &left, transaction)
            if left <= 0 { return true }
        }
        return false
    }

    /// Removes the rows of a deleted app, at most `left`; its mark last.
    ///
    /// A batch that leaves less room than one more of its items takes may have been full. The step ends with it then,
    /// because more may be stored.
    private func remove(app id: AppID, _ left: inout Int, _ transaction: Transaction) throws {
        let db = transaction.db
        let sessions = try db.all(
            "SELECT id FROM session WHERE app = ?1 AND forgotten = 0 LIMIT ?2", id.rawValue, max(1, left / 2)
        ) { SessionID($0.integer(0)) }
        for session in sessions where left > 0 {
            try transaction.session(session).forget(at: transaction.now, db)
            left -= 1 + (try emptyLanes(of: session, left, db))
        }
        guard left > 0 else { return }
        let launches = try db.all("SELECT id FROM launch WHERE app = ?1 LIMIT ?2", id.rawValue, max(1, left / 3)) {
            $0.integer(0)
        }
        for launch in launches { try remove(launch: launch, db) }
        left -= launches.count * 3
        guard launches.isEmpty || left >= 3 else { return left = 0 }
        try removeOwnRows(of: id.rawValue, &left, db)
        guard left > 0 else { return }
        let resumeData = try store.tasks.removeResumeData(of: id, left, transaction)
        left -= resumeData
        guard resumeData == 0 || left >= 2 else { return left = 0 }
        // The work on sets removes them, and the files that they share with the cache.
        guard try !store.sets.forgetSets(of: id, max(1, left), transaction) else { return }
        let cached = try store.cache.removeCache(of: id, left, transaction)
        left -= cached
        guard cached == 0 || left >= 4 else { return left = 0 }
        // The bodies come last, because the tasks use them.
        let hasSessions = try db.exists("SELECT 1 FROM session WHERE app = ?1 LIMIT 1", id.rawValue)
        guard !hasSessions else { return }
        let bodies = try db.all("SELECT id FROM body WHERE app = ?1 LIMIT ?2", id.rawValue, max(1, left / 3)) {
            $0.integer(0)
        }
        for body in bodies {
            try db.execute("UPDATE body SET uses = 0 WHERE id = ?1", body)
            try store.files.remove(body: body, transaction)
        }
        left -= bodies.count * 3
        guard bodies.isEmpty || left >= 3 else { return left = 0 }
        try db.execute("DELETE FROM deleted_app WHERE app = ?1", id.rawValue)
    }

    /// Removes the rows that the tasks of a deleted app do not use, at most `left`.
    private func removeOwnRows(of app: Int64, _ left: inout Int, _ db: Connection) throws {
        left -= try db.change(
            """
            DELETE FROM incarnation WHERE app = ?1 AND identifier IN \
            (SELECT identifier FROM incarnation WHERE app = ?1 LIMIT ?2)
            """, app, left)
        guard left > 0 else { return }
        left -= try db.change(
            """
            DELETE FROM origin_pause WHERE app = ?1 AND origin IN \
            (SELECT origin FROM origin_pause WHERE app = ?1 LIMIT ?2)
            """, app, left)
        guard left > 0 else { return }
        left -= try db.change(
            "DELETE FROM credential WHERE id IN (SELECT id FROM credential WHERE app = ?1 LIMIT ?2)", app, left)
        guard left > 0 else { return }
        left -= try db.change(
            """
            DELETE FROM api_key WHERE key_identifier IN (SELECT key_identifier FROM api_key WHERE app = ?1 LIMIT ?2)
            """, app, left)
        guard left > 0 else { return }
        left -= try db.change(
            "DELETE FROM webhook_secret WHERE id IN (SELECT id FROM webhook_secret WHERE app = ?1 LIMIT ?2)",
            app, left)
    }

    // MARK: Launches

    func dropLaunches(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        let wanted = max(1, rows / 3)
        let old = try transaction.db.all(
            "SELECT id FROM launch WHERE ended_at <= ?1 ORDER BY ended_at LIMIT ?2",
            (transaction.now - Store.Launches.retention).milliseconds, wanted
        ) { $0.integer(0) }
        for id in old { try remove(launch: id, transaction.db) }
        return old.count == wanted
    }

    func remove(launch id: Int64, _ db: Connection) throws {
        try db.execute("DELETE FROM launch_attempt WHERE launch = ?1", id)
        try db.execute("DELETE FROM launch WHERE id = ?1", id)
    }
}
