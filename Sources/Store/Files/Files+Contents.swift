package import Core
import SQL

extension Store.Files {
    /// The location of a finished task's content.
    ///
    /// - Throws: ``DomainError/notFound`` if the task is not finished or left no content.
    package func content(of task: TaskID) async throws -> ContentLocation {
        try await database.read { db in
            try db.first(
                """
                SELECT length, algorithm, digest, coalesce((SELECT at + ?2 FROM acknowledgement \
                WHERE session = content.session AND through >= content.seq ORDER BY through LIMIT 1), expires_at) \
                AS expires_at, expired, bytes, file, object FROM content WHERE task = ?1
                """, task.rawValue, self.policies.contentRetention.milliseconds
            ) { row in
                let record = try ContentRecord(row, expiresAt: row.timeOrNil("expires_at"))
                let object = row.textOrNil("object").map { StoredObject(key: $0, length: record.length) }
                return ContentLocation(record: record, storage: object.map { .objects([$0]) } ?? .init(row))
            }.orNotFound()
        }
    }

    /// Frees a content at once. Repeating it changes nothing.
    ///
    /// - Throws: ``DomainError/notFound``; ``DomainError/revisionMismatch`` if the content does not match `expected`.
    package func claimContent(
        of task: TaskID, expecting expected: ClaimCondition? = nil, at now: Timestamp
    ) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let found = try transaction.db.first(
                "SELECT expired, (SELECT revision FROM task WHERE id = ?1) AS revision FROM content WHERE task = ?1",
                task.rawValue
            ) { (isExpired: $0.bool("expired"), revision: $0.integer("revision")) }.orNotFound()
            let isExpected =
                switch expected {
                case .unexpired: !found.isExpired
                case .revision(let revision): found.revision == revision
                case nil: true
                }
            guard isExpected else { throw DomainError.revisionMismatch }
            try self.expireContent(of: task.rawValue, transaction)
        }.1
    }

    /// Frees the contents of up to `limit` matching tasks of a session, starting after a number.
    ///
    /// - Parameter revision: The session's revision that the caller expects, or `nil`.
    /// - Returns: The numbers of contents and of freed contents, and the last number visited, `nil` at the end.
    /// - Throws: ``DomainError/revisionMismatch``.
    package func claimContents(
        _ filter: TaskFilter, in session: SessionID, after number: Int64, limit: Int,
        ifRevision revision: Int64? = nil, at now: Timestamp
    ) async throws -> (matched: Int, changed: Int, last: Int64?, aftermath: Aftermath) {
        let (result, aftermath) = try await transact(at: now) { transaction -> (Int, Int, Int64?) in
            _ = try transaction.session(session, ifRevision: revision)
            let found = try Store.Tasks.taskIDs(session, filter, after: number, limit: limit, transaction.db)
            var (matched, changed) = (0, 0)
            for (task, _) in found {
                let isExpired = try transaction.db.first(
                    "SELECT expired FROM content WHERE task = ?1", task.rawValue
                ) { $0.bool(0) }
                guard let isExpired else { continue }
                matched += 1
                guard !isExpired else { continue }
                try self.expireContent(of: task.rawValue, transaction)
                changed += 1
            }
            return (matched, changed, found.count < limit ? nil : found.last?.1)
        }
        return (result.0, result.1, result.2, aftermath)
    }

    /// Expires contents that were not acknowledged in time. Acknowledged contents have a retention of their own.
    func expireUnacknowledgedContents(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        let db = transaction.db
        let wanted = max(1, rows / 4)
        let due = try db.all(
            """
            SELECT c.task, c.seq <= s.acknowledged_seq AS acknowledged FROM content c JOIN session s ON s.id = c.session \
            WHERE c.expired = 0 AND c.expires_at <= ?1 ORDER BY c.expires_at LIMIT ?2
            """, transaction.now.milliseconds, wanted
        ) { (task: $0.integer("task"), isAcknowledged: $0.bool("acknowledged")) }
        for content in due {
            if content.isAcknowledged {
                try db.execute("UPDATE content SET expires_at = NULL WHERE task = ?1", content.task)
            } else {
                try expireContent(of: content.task, transaction)
                transaction.aftermath.unreadContents += 1
            }
        }
        return due.count == wanted
    }

    func expireContent(of task: Int64, _ transaction: Transaction) throws {
        let kept = try transaction.db.first(
            "SELECT file, object, length, session FROM content WHERE task = ?1 AND expired = 0", task
        ) { ($0.textOrNil("file"), $0.textOrNil("object"), $0.integer("length"), SessionID($0.integer("session"))) }
        guard let (file, object, length, session) = kept else { return }
        try transaction.db.execute(
            """
            UPDATE content SET expired = 1, bytes = NULL, file = NULL, object = NULL, indexed = 0 WHERE task = ?1
            """, task)
        let app = try transaction.session(session).app
        transaction.addStored(-length, app: app)
        try release(StoredPlace(file: file, object: object), length, of: app, transaction)
    }
}

extension ContentRecord {
    /// - Parameter expiresAt: The expiry, which an acknowledgement may have changed from the row's.
    init(_ row: Row, expiresAt: Timestamp?) throws {
        self.init(
            length: row.integer("length"),
            digest: ContentDigest(algorithm: try row.value("algorithm"), value: row.text("digest")),
            expiresAt: expiresAt, isExpired: row.bool("expired"))
    }
}
