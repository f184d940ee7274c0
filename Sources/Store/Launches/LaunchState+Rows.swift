import Core
import SQL

/// A launch in its row: `state_document` is its state. The other columns are derived from the state for queries.
extension Transaction {
    /// Inserts a new launch, due at once or parked.
    ///
    /// - Parameter session: The session that launches its app, if any.
    /// - Returns: The number of the launch.
    @discardableResult
    func insertLaunch(
        _ launchId: String, _ kind: LaunchKind, of app: AppID, for session: SessionEntry? = nil,
        _ parkReason: LaunchState.ParkReason?, _ reasons: LaunchRule.Reasons = [], traceparent: String? = nil
    ) throws -> Int64 {
        var state = LaunchState.pending(attempts: 0, nextAttemptAt: now)
        if let parkReason { _ = try state.handle(.park(parkReason), at: now) }
        let id = try db.insert(
            """
            INSERT INTO launch (public_id, app, session, session_identifier, kind, state, state_document, due_at, \
            reasons, last_seq, traceparent, created_at, expires_at) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
            """,
            launchId, app.rawValue, session?.id.rawValue, session?.identifier, kind.rawValue, state.name,
            documents.encode(state), state.dueAt?.milliseconds, reasons.rawValue, session?.lastSeq ?? 0,
            traceparent, now.milliseconds, (now + LaunchSchedule.lifetime).milliseconds)
        if let due = state.dueAt { try launchBecomesDue(of: app, at: due) }
        return id
    }

    /// Applies an event to a launch. Every change of a launch's state uses this function.
    @discardableResult
    func move(launch id: Int64, _ event: LaunchState.Event) throws -> [LaunchState.Effect] {
        let (app, kind, document) = try db.first(
            "SELECT app, kind, state_document FROM launch WHERE id = ?1", id
        ) { row in
            (AppID(row.integer("app")), try row.value("kind") as LaunchKind, row.blob("state_document"))
        }.orNotFound()
        var state = try documents.decode(LaunchState.self, document)
        var effects = try state.handle(event, at: now)
        if case .pending = state, event != .redeliver, kind == .refreshStatusDidChange,
            try isOutdated(notice: id, of: app)
        {
            effects += try state.handle(.clientAttached, at: now)
        }
        try db.execute(
            """
            UPDATE launch SET state = ?2, state_document = ?3, due_at = ?4, attempts = coalesce(?5, attempts), \
            urgency = coalesce(?6, urgency), ended_at = ?7 WHERE id = ?1
            """, id, state.name, documents.encode(state), state.dueAt?.milliseconds, state.attempts,
            LaunchUrgency(of: state, after: event)?.rawValue, state.endedAt?.milliseconds)
        switch state {
        case .pending(_, let due): try launchBecomesDue(of: app, at: due)
        case .delivering, .launched: aftermath.hasDueLaunches = true
        case .parked, .completed, .superseded, .exhausted: break
        }
        return effects
    }

    /// Whether a newer notice of the app's refresh status exists, which the older one must not follow.
    private func isOutdated(notice id: Int64, of app: AppID) throws -> Bool {
        try db.exists(
            "SELECT 1 FROM launch WHERE app = ?1 AND id > ?2 AND kind = ?3 LIMIT 1", app.rawValue, id,
            LaunchKind.refreshStatusDidChange.rawValue)
    }
}

extension Store.Launches {
    func read(_ id: Int64, _ db: Connection) throws -> LaunchRecord? {
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
            created_at, expires_at, result, \
            (SELECT open_until FROM webhook_health WHERE webhook_health.app = launch.app) AS open_until \
            FROM launch WHERE id = ?1
            """, id
        ) { row in
            var state = try documents.decode(LaunchState.self, row.blob("state_document"))
            // An open circuit breaker delays all of an app's launches.
            if case .pending(let count, let due) = state, let openUntil = row.timeOrNil("open_until") {
                state = .pending(attempts: count, nextAttemptAt: max(due, openUntil))
            }
            return LaunchRecord(
                launchId: row.text("public_id"), app: AppID(row.integer("app")),
                session: row.integerOrNil("session").map(SessionID.init),
                sessionIdentifier: row.textOrNil("session_identifier"),
                kind: try row.value("kind"), state: state,
                reasons: LaunchRule.Reasons(rawValue: row.int("reasons")), lastSeq: row.integer("last_seq"),
                attempts: attempts, traceparent: row.textOrNil("traceparent"), createdAt: row.time("created_at"),
                expiresAt: row.timeOrNil("expires_at"), result: try row.valueOrNil("result"))
        }
    }
}
