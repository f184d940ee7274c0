package import Core
import SQLite

/// What the operator declares for the whole service.
package struct DeclaredConditions: Hashable, Sendable, Codable {
    package var conditions = Conditions()
    package var refreshStatus = BackgroundRefreshStatus.available

    package init() {}
}

extension Store {
    package func conditions() async throws -> DeclaredConditions {
        try await database.read { db in try self.readConditions(db) }
    }

    /// Declares conditions. Where the refresh status of apps changes with them, they are told, and what they may no
    /// longer do ends. Costs a few rows for each app when the status changes, one otherwise.
    package func setConditions(
        _ conditions: Conditions, _ refreshStatus: BackgroundRefreshStatus, at now: Timestamp
    ) async throws -> Aftermath {
        let (restricted, aftermath) = try await transact(at: now) { transaction -> [AppID] in
            let db = transaction.db
            let old = try self.readConditions(db).refreshStatus
            var new = DeclaredConditions()
            new.conditions = conditions
            new.refreshStatus = refreshStatus
            try db.execute(
                """
                INSERT INTO setting (name, document) VALUES ('conditions', ?1) \
                ON CONFLICT (name) DO UPDATE SET document = ?1
                """, try self.documents.encode(new))
            guard old != refreshStatus else { return [] }
            let apps = try db.all("SELECT id FROM app ORDER BY id") { AppID($0.integer(0)) }
            return try apps.filter { id in
                guard let app = try self.readApp(id, db) else { return false }
                return try self.refreshMayHaveChanged(
                    from: app, to: app, oldCommon: old, newCommon: refreshStatus, transaction)
            }
        }
        var all = aftermath
        for app in restricted { all.merge(try await cancelDiscretionaryTasks(of: app, at: now)) }
        return all
    }

    func readConditions(_ db: Connection) throws -> DeclaredConditions {
        try db.first("SELECT document FROM setting WHERE name = 'conditions'") {
            try documents.decode(DeclaredConditions.self, $0.blob(0))
        } ?? DeclaredConditions()
    }

    /// Whether a session is discretionary and its app has no background refresh.
    func mayNotDefer(_ session: SessionEntry, _ db: Connection) throws -> Bool {
        let isDiscretionary =
            try db.first(
                "SELECT 1 FROM lane WHERE session = ?1 AND conditions & 1 LIMIT 1", session.id.rawValue
            ) { _ in true } ?? false
        guard isDiscretionary, let app = try readApp(session.app, db) else { return false }
        return app.backgroundRefreshStatus.stricter(try readConditions(db).refreshStatus) != .available
    }

    /// Cancels the discretionary tasks that a crash spared, between a commit that denied background refresh and the one
    /// that followed. Once at start; a few rows for each app.
    package func cancelForbiddenTasks(at now: Timestamp) async throws -> Aftermath {
        let restricted = try await database.read { db -> [AppID] in
            let common = try self.readConditions(db).refreshStatus
            return try db.all("SELECT id FROM app ORDER BY id") { AppID($0.integer(0)) }.filter { id in
                try self.readApp(id, db).map { $0.backgroundRefreshStatus.stricter(common) != .available } ?? false
            }
        }
        var all = Aftermath()
        for app in restricted { all.merge(try await cancelDiscretionaryTasks(of: app, at: now)) }
        return all
    }

    /// Cancels the discretionary tasks of an app whose background refresh was switched off (Apple's reason 1).
    func cancelDiscretionaryTasks(of app: AppID, at now: Timestamp) async throws -> Aftermath {
        var all = Aftermath()
        while true {
            let (count, aftermath) = try await transact(at: now) { transaction -> Int in
                let tasks = try transaction.db.all(
                    """
                    SELECT l.task FROM session s JOIN lane n ON n.session = s.id AND n.conditions & 1 \
                    JOIN live l ON l.session = s.id AND l.lane = n.id WHERE s.app = ?1 AND s.forgotten = 0 LIMIT 1000
                    """, app.rawValue
                ) { TaskID($0.integer(0)) }
                for id in tasks {
                    guard let live = try LiveTask.read(id, transaction.db) else { continue }
                    _ = try self.carryOut(.cancel(reason: 1), live, transaction)
                }
                return tasks.count
            }
            all.merge(aftermath)
            if count < 1000 { return all }
        }
    }
}
