package import Core
import SQLite

extension Store {
    /// Up to `limit` launches of an app after a cursor, with the cursor of each, in the order of their creation.
    package func launches(
        of app: AppID, session identifier: String?, state: LaunchState.Phase?, kind: LaunchKind?,
        after cursor: Int64, limit: Int
    ) async throws -> [(cursor: Int64, launch: LaunchRecord)] {
        try await database.read { db in
            let ids = try db.all(
                """
                SELECT id FROM launch WHERE app = ?1 AND id > ?2 AND (session_identifier = ?3 OR ?3 IS NULL) \
                AND (state = ?4 OR ?4 IS NULL) AND (kind = ?5 OR ?5 IS NULL) ORDER BY id LIMIT ?6
                """, app.rawValue, cursor, identifier, state?.rawValue, kind?.rawValue, limit
            ) { $0.integer(0) }
            return try ids.compactMap { id in try self.readLaunch(id, db).map { (id, $0) } }
        }
    }

    /// A launch with its attempts.
    ///
    /// - Throws: ``DomainError/notFound``.
    package func launch(_ launchId: String, app: AppID) async throws -> LaunchRecord {
        try await database.read { db in
            let id = try self.launchID(launchId, app: app, db)
            guard let launch = try self.readLaunch(id, db) else { throw DomainError.notFound }
            return launch
        }
    }

    /// Sends an open or exhausted launch again now, whatever its schedule and the webhook's breaker say.
    ///
    /// - Throws: ``DomainError/launchNotOpen`` once it is completed or superseded, is a fetch that ended, or is exhausted
    ///   while the session has another one open.
    package func redeliver(
        _ launchId: String, app: AppID, at now: Timestamp
    ) async throws -> (LaunchRecord, Aftermath) {
        let (_, aftermath) = try await transact(at: now) { transaction in
            let db = transaction.db
            let id = try self.launchID(launchId, app: app, db)
            guard let launch = try self.readLaunch(id, db) else { throw DomainError.notFound }
            if launch.kind == .performFetch, !launch.state.isOpen { throw DomainError.launchNotOpen }
            // A fetch has one deadline, which another attempt would not move.
            if launch.kind == .performFetch, case .launched = launch.state { return }
            do {
                try transaction.move(launch: id, .redeliver)
            } catch is Refused {
                throw DomainError.launchNotOpen
            }
            try db.execute(
                "UPDATE webhook_health SET open_until = ?2 WHERE app = ?1 AND open_until > ?2", app.rawValue,
                now.milliseconds)
            guard case .exhausted = launch.state, let owner = try self.readApp(app, db) else { return }
            if let reason = owner.parkReason { try transaction.move(launch: id, .park(reason)) }
            guard let session = launch.session else { return }
            guard let entry = try? transaction.session(session), !entry.isForgotten else {
                throw DomainError.launchNotOpen
            }
            do {
                try entry.book.reopened(id)
            } catch {
                throw DomainError.launchNotOpen
            }
            entry.revision += 1
            entry.isChanged = true
        }
        return (try await launch(launchId, app: app), aftermath)
    }

    func launchID(_ launchId: String, app: AppID, _ db: Connection) throws -> Int64 {
        let id = try db.first(
            "SELECT id FROM launch WHERE public_id = ?1 AND app = ?2", launchId, app.rawValue
        ) { $0.integer(0) }
        guard let id else { throw DomainError.notFound }
        return id
    }

    func readLaunch(_ id: Int64, _ db: Connection) throws -> LaunchRecord? {
        let attempts = try db.all(
            """
            SELECT number, started_at, duration, status, error, excerpt FROM launch_attempt WHERE launch = ?1 \
            ORDER BY number
            """, id
        ) { row in
            LaunchAttempt(
                number: row.int("number"), startedAt: row.time("started_at"),
                duration: .milliseconds(row.integer("duration")), statusCode: row.intOrNil("status"),
                error: row.textOrNil("error"), excerpt: row.textOrNil("excerpt"))
        }
        return try db.first(
            """
            SELECT public_id, app, session, session_identifier, kind, state_document, reasons, last_seq, traceparent, \
            created_at, expires_at, result, due_at, \
            (SELECT open_until FROM webhook_health WHERE webhook_health.app = launch.app) AS open_until \
            FROM launch WHERE id = ?1
            """, id
        ) { row in
            var state = try documents.decode(LaunchState.self, row.blob("state_document"))
            // A breaker or a long stop may have put the attempt off.
            if case .pending(let count, let planned) = state {
                let due = max(planned, row.timeOrNil("due_at") ?? planned, row.timeOrNil("open_until") ?? planned)
                state = .pending(attempts: count, nextAttemptAt: due)
            }
            var completedAt: Timestamp?
            if case .completed(let moment) = state { completedAt = moment }
            return LaunchRecord(
                launchId: row.text("public_id"), app: AppID(row.integer("app")),
                session: row.integerOrNil("session").map(SessionID.init),
                sessionIdentifier: row.textOrNil("session_identifier"),
                kind: try row.value("kind"), state: state,
                reasons: LaunchRule.Reasons(rawValue: row.int("reasons")), lastSeq: row.integer("last_seq"),
                attempts: attempts, traceparent: row.textOrNil("traceparent"), createdAt: row.time("created_at"),
                expiresAt: row.timeOrNil("expires_at"), completedAt: completedAt, result: try row.valueOrNil("result"))
        }
    }
}
