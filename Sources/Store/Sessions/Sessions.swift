package import Core
import SQL

extension Store.Sessions {
    /// Creates the session, or reconnects to it if the identifier exists.
    ///
    /// - Parameters:
    ///   - configuration: `nil` matches any configuration, and creates the default one.
    ///   - onlyCreates: Refuses to reconnect.
    ///   - expected: The state of the identifier that the caller expects.
    /// - Throws: ``DomainError/sessionExists``, ``DomainError/configurationMismatch(_:)``,
    ///   ``DomainError/sessionInvalidated`` while the session is being invalidated; ``DomainError/revisionMismatch``.
    package func open(
        _ identifier: String, app: AppID, configuration: SessionConfiguration?, description: String?,
        onlyCreates: Bool, expecting expected: SessionCondition = .none, at now: Timestamp,
        recording: Recording<SessionRecord>? = nil
    ) async throws -> (session: SessionRecord, arrival: SessionArrival, aftermath: Aftermath) {
        let (found, aftermath) = try await transact(at: now) {
            [documents] transaction -> (SessionRecord, SessionArrival) in
            let db = transaction.db
            let existing = try self.read(identifier, app: app, db)
            guard expected.holds(for: existing) else { throw DomainError.revisionMismatch }
            if let existing {
                switch existing.state {
                case .active:
                    if onlyCreates { throw DomainError.sessionExists }
                    if let configuration {
                        let names = try configuration.differences(from: existing.configuration)
                        if !names.isEmpty { throw DomainError.configurationMismatch(names) }
                    }
                    return (existing, .reconnected)
                case .invalidating:
                    throw onlyCreates ? DomainError.sessionExists : DomainError.sessionInvalidated
                case .invalid:
                    try store.upkeep.forget(existing.id, transaction)
                }
            } else if try store.apps.read(app, db) == nil {
                throw DomainError.notFound
            }
            let session = try self.insert(
                identifier, app: app, configuration: configuration ?? SessionConfiguration(),
                description: description, now, db)
            try recording?.record(session, documents, now, db)
            return (session, .created)
        }
        return (found.0, found.1, aftermath)
    }

    package func read(_ identifier: String, app: AppID) async throws -> SessionRecord {
        try await database.read { db in try self.read(identifier, app: app, db).orNotFound() }
    }

    package func read(_ id: SessionID) async throws -> SessionRecord {
        try await database.read { db in try self.read(id, db).orNotFound() }
    }

    package func list(
        of app: AppID, _ span: ListSpan = ListSpan(), after cursor: Int64, limit: Int
    ) async throws -> [SessionRecord] {
        try await database.read { db in
            let stretch = try span.stretch(
                after: cursor, db.positions("SELECT id, created_at FROM session WHERE id >= ?1 ORDER BY id LIMIT 1"))
            let ids = try db.all(
                """
                SELECT id FROM session WHERE app = ?1 AND forgotten = 0 AND id > ?2 AND id < ?3 \
                ORDER BY id ASC LIMIT ?4
                """, app.rawValue, stretch.low, stretch.high, limit, descending: span.isDescending
            ) { SessionID($0.integer(0)) }
            return try ids.compactMap { try self.read($0, db) }
        }
    }

    /// Changes the mutable members of a session. An outer `nil` leaves a member unchanged.
    package func change(
        _ id: SessionID, description: String??, bandwidthLimit: Int64??, ifRevision revision: Int64?
    ) async throws -> SessionRecord {
        try await database.write { [documents] db in
            let old = try self.read(id, db).orNotFound()
            if let revision, revision != old.revision { throw DomainError.revisionMismatch }
            var session = old
            if let description { session.sessionDescription = description }
            if let bandwidthLimit { session.configuration.bandwidthLimit = bandwidthLimit }
            // Compared as bytes: Swift's strings are equal in all Unicode forms.
            let descriptions = [old, session].map { $0.sessionDescription.map { Array($0.utf8) } }
            if descriptions[0] == descriptions[1], session.configuration == old.configuration { return old }
            session.revision += 1
            try db.execute(
                "UPDATE session SET description = ?2, configuration_document = ?3, revision = ?4 WHERE id = ?1",
                id.rawValue, session.sessionDescription,
                documents.encode(
                    session.configuration, sealedAs: Self.context(session.app, session.identifier),
                    if: session.configuration.holdsSecrets),
                session.revision)
            return session
        }
    }

    /// Rejects new tasks from now on. The session becomes invalid with its last task.
    ///
    /// Repeating the call changes nothing.
    ///
    /// - Parameter cancelsTasks: Whether to store a cancellation of the tasks, which the caller carries out.
    /// - Throws: ``DomainError/revisionMismatch``.
    package func invalidate(
        _ id: SessionID, cancelsTasks: Bool = false, ifRevision revision: Int64? = nil, at now: Timestamp
    ) async throws -> (SessionRecord, Aftermath) {
        try await transact(at: now, returning: { try self.read(id, $0) }) { transaction in
            let session = try transaction.session(id, ifRevision: revision)
            session.invalidate(at: now)
            if cancelsTasks {
                try store.tasks.beginCancellation(of: session.app, id, reason: nil, transaction.db)
            }
        }
    }

    /// Deletes the session at once with a tombstone. The janitor removes its rows and files in small steps.
    ///
    /// - Parameter overtakesMoves: Whether to delete it while content of its tasks is being moved to a destination.
    /// - Returns: The session before its deletion, and the transfers to stop.
    /// - Throws: ``DomainError/notFound``, ``DomainError/revisionMismatch``, ``MoveUnderWay``.
    package func forget(
        _ id: SessionID, ifRevision revision: Int64? = nil, overtakesMoves: Bool = false, at now: Timestamp
    ) async throws -> (SessionRecord, Aftermath) {
        try await transact(at: now) { transaction in
            guard var session = try self.read(id, transaction.db) else { throw DomainError.notFound }
            if let revision, revision != session.revision { throw DomainError.revisionMismatch }
            if !overtakesMoves { try store.files.checkMoves(in: id, transaction.db) }
            try store.upkeep.forget(id, transaction)
            session.state = try transaction.session(id).state
            return session
        }
    }

    private func insert(
        _ identifier: String, app: AppID, configuration: SessionConfiguration, description: String?, _ now: Timestamp,
        _ db: Connection
    ) throws -> SessionRecord {
        let incarnation =
            try db.first(
                """
                INSERT INTO incarnation (app, identifier, last) VALUES (?1, ?2, 1) \
                ON CONFLICT (app, identifier) DO UPDATE SET last = incarnation.last + 1, forgotten_at = NULL \
                RETURNING last
                """, app.rawValue, identifier
            ) { $0.integer(0) } ?? 1
        let id = try db.insert(
            """
            INSERT INTO session (app, identifier, incarnation, state, configuration_document, sends_launches, \
            resource_timeout, description, created_at, discretionary, stall_interval) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
            """,
            app.rawValue, identifier, incarnation, SessionState.active.phase.rawValue,
            documents.encode(
                configuration, sealedAs: Self.context(app, identifier), if: configuration.holdsSecrets),
            configuration.sessionSendsLaunchEvents, Int64(configuration.timeoutIntervalForResource * 1000),
            description, now.milliseconds, configuration.isDiscretionary,
            configuration.stallInterval.map { Int64($0 * 1000) })
        return try read(SessionID(id), db).orNotFound()
    }

    static func context(_ app: AppID, _ identifier: String) -> String { "session/\(app.rawValue)/\(identifier)" }

    func read(_ identifier: String, app: AppID, _ db: Connection) throws -> SessionRecord? {
        let id = try db.first(
            "SELECT id FROM session WHERE app = ?1 AND identifier = ?2 AND forgotten = 0", app.rawValue, identifier
        ) { SessionID($0.integer(0)) }
        return try id.flatMap { try read($0, db) }
    }

    func read(_ id: SessionID, _ db: Connection) throws -> SessionRecord? {
        try db.first(
            """
            SELECT s.app, s.identifier, s.incarnation, s.state, s.configuration_document, s.description, s.suspended, \
            s.running, s.succeeded, s.http_error, s.failed, s.cancelled, s.not_modified, s.bytes_received, \
            s.bytes_sent, s.last_seq, s.acknowledged_seq, s.dropped_seq, s.attachment_document, \
            l.public_id AS open_launch, s.created_at, s.invalid_at, s.revision, s.next_task \
            FROM session s JOIN app a ON a.id = s.app LEFT JOIN launch l ON l.id = s.open_launch \
            WHERE s.id = ?1 AND s.forgotten = 0
            """, id.rawValue
        ) { row in
            let app = AppID(row.integer("app"))
            let identifier = row.text("identifier")
            return SessionRecord(
                id: id, app: app, identifier: identifier, incarnation: row.integer("incarnation"),
                state: try SessionState(row),
                configuration: try documents.decode(
                    SessionConfiguration.self, row.blob("configuration_document"),
                    sealedAs: Self.context(app, identifier)),
                sessionDescription: row.textOrNil("description"), counts: TaskCounts(row),
                countOfBytesReceived: row.integer("bytes_received"), countOfBytesSent: row.integer("bytes_sent"),
                lastEventSeq: row.integer("last_seq"), acknowledgedSeq: row.integer("acknowledged_seq"),
                droppedSeq: row.integer("dropped_seq"),
                attachment: try row.blobOrNil("attachment_document").map { try documents.decode(Attachment.self, $0) },
                lastTaskNumber: row.integer("next_task") - 1, openLaunch: row.textOrNil("open_launch"),
                createdAt: row.time("created_at"), revision: row.integer("revision"))
        }
    }
}

extension Store.Sessions {
    /// Empties the session's cookies and credentials.
    ///
    /// - Throws: ``DomainError/revisionMismatch``.
    package func reset(_ id: SessionID, ifRevision revision: Int64? = nil) async throws {
        let limit = 500
        var expected = revision
        while try await database.write({ [expected] db in
            if let expected, try self.read(id, db)?.revision != expected { throw DomainError.revisionMismatch }
            try db.execute("DELETE FROM cookie_jar WHERE session = ?1", id.rawValue)
            // The counter makes nodes discard the session's cookies in memory.
            try db.execute("UPDATE session SET revision = revision + 1, resets = resets + 1 WHERE id = ?1", id.rawValue)
            return try store.upkeep.removeCredentials(of: id, limit, db) == limit
        }) { expected = nil }
    }
}
