package import Core
import SQLite

extension Store {
    /// Up to `limit` launches of an app after a cursor, with the cursor of each.
    package func launches(
        of app: AppID, session identifier: String?, state: LaunchState.Phase?, kind: LaunchKind?,
        _ span: ListSpan = ListSpan(), after cursor: Int64, limit: Int
    ) async throws -> [(cursor: Int64, launch: LaunchRecord)] {
        try await database.read { db in
            let stretch = try span.stretch(after: cursor) { place in
                try db.first("SELECT id, created_at FROM launch WHERE id >= ?1 ORDER BY id LIMIT 1", place) {
                    ($0.integer(0), $0.time("created_at"))
                }
            }
            let ids =
                switch span.order {
                case .ascending:
                    try db.all(
                        """
                        SELECT id FROM launch WHERE app = ?1 AND id > ?2 AND id < ?3 \
                        AND (session_identifier = ?4 OR ?4 IS NULL) AND (state = ?5 OR ?5 IS NULL) \
                        AND (kind = ?6 OR ?6 IS NULL) ORDER BY id LIMIT ?7
                        """, app.rawValue, stretch.low, stretch.high, identifier, state?.rawValue, kind?.rawValue, limit
                    ) { $0.integer(0) }
                case .descending:
                    try db.all(
                        """
                        SELECT id FROM launch WHERE app = ?1 AND id > ?2 AND id < ?3 \
                        AND (session_identifier = ?4 OR ?4 IS NULL) AND (state = ?5 OR ?5 IS NULL) \
                        AND (kind = ?6 OR ?6 IS NULL) ORDER BY id DESC LIMIT ?7
                        """, app.rawValue, stretch.low, stretch.high, identifier, state?.rawValue, kind?.rawValue, limit
                    ) { $0.integer(0) }
                }
            return try ids.compactMap { id in try self.readLaunch(id, db).map { (id, $0) } }
        }
    }

    /// A launch with its attempts.
    ///
    /// - Throws: ``DomainError/notFound``.
    package func launch(_ launchId: String, app: AppID) async throws -> LaunchRecord {
        try await database.read { db in
            let id = try self.launchID(launchId, app: app, db)
            return try self.readLaunch(id, db).orNotFound()
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
        try db.first(
            "SELECT id FROM launch WHERE public_id = ?1 AND app = ?2", launchId, app.rawValue
        ) { $0.integer(0) }.orNotFound()
    }
}
