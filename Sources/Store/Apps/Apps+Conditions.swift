package import Core
package import Formats
import SQL

/// The conditions that the operator declares for the whole service.
package struct DeclaredConditions: Shape {
    package var conditions = Conditions()
    package var refreshStatus = BackgroundRefreshStatus.available

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("conditions", &conditions)
        members.member("refreshStatus", &refreshStatus)
    }
}

extension Store.Apps {
    package func conditions() async throws -> DeclaredConditions {
        try await database.read { db in try self.readConditions(db) }
    }

    /// Declares conditions. If the refresh status of apps changes, their launches of the change are created. Forbidden
    /// tasks are cancelled even without a change, because an earlier cancellation may have failed.
    ///
    /// Costs a few rows for each app if the status changes or refresh is not available, otherwise one row.
    ///
    /// - Parameter seen: The declaration that must be current, `nil` for any.
    /// - Throws: ``DomainError/revisionMismatch`` if another declaration is current.
    package func setConditions(
        _ conditions: Conditions, _ refreshStatus: BackgroundRefreshStatus, replacing seen: DeclaredConditions? = nil,
        at now: Timestamp
    ) async throws -> Aftermath {
        var all = try await transact(at: now) { transaction in
            let db = transaction.db
            let declared = try self.readConditions(db)
            if let seen, seen != declared { throw DomainError.revisionMismatch }
            let old = declared.refreshStatus
            var new = DeclaredConditions()
            new.conditions = conditions
            new.refreshStatus = refreshStatus
            try db.execute(
                """
                INSERT INTO setting (name, document) VALUES ('conditions', ?1) \
                ON CONFLICT (name) DO UPDATE SET document = ?1
                """, self.documents.encode(new))
            guard old != refreshStatus else { return }
            for id in try db.all("SELECT id FROM app ORDER BY id", read: { AppID($0.integer(0)) }) {
                guard let app = try self.read(id, db) else { continue }
                try self.refreshMayHaveChanged(
                    from: app, to: app, oldCommon: old, newCommon: refreshStatus, transaction)
            }
        }.1
        if refreshStatus != .available { all.merge(try await cancelForbiddenTasks(at: now)) }
        return all
    }

    func readConditions(_ db: Connection) throws -> DeclaredConditions {
        try askConditions(db).get()[0].first ?? DeclaredConditions()
    }

    /// Queries the declared conditions: no row if the operator declared none.
    func askConditions(_ db: Connection) throws -> Asked<DeclaredConditions> {
        try db.ask("SELECT document FROM setting WHERE name = 'conditions'", [[]]) {
            try self.documents.decode(DeclaredConditions.self, $0.blob(0))
        }
    }

    /// Whether a session is discretionary and its app has no background refresh.
    func mayNotDefer(_ session: SessionEntry, _ db: Connection) throws -> Bool {
        guard session.isDiscretionary, let app = try read(session.app, db) else { return false }
        return app.backgroundRefreshStatus.stricter(try readConditions(db).refreshStatus) != .available
    }

    /// Cancels the discretionary tasks of all apps without background refresh. A crash may leave some, between the
    /// commit that denies it and the commits that cancel them: therefore this also runs at start, and after a takeover.
    package func cancelForbiddenTasks(at now: Timestamp) async throws -> Aftermath {
        var all = Aftermath()
        var last = AppID(0)
        while true {
            let page = try await list(after: last.rawValue, limit: 100)
            let common = try await conditions().refreshStatus
            for app in page where app.backgroundRefreshStatus.stricter(common) != .available {
                all.merge(try await cancelDiscretionaryTasks(of: app.id, at: now))
            }
            guard page.count == 100, let end = page.last else { return all }
            last = end.id
        }
    }

    /// Cancels the discretionary tasks of an app whose background refresh was switched off (Apple's reason 1). A task
    /// whose content is being moved to its destination ends with the outcome of its move.
    func cancelDiscretionaryTasks(of app: AppID, at now: Timestamp) async throws -> Aftermath {
        var all = Aftermath()
        var last = SessionID(0)
        while let session = try await discretionarySession(of: app, after: last) {
            last = session
            var number: Int64? = 0
            while let after = number {
                let (step, aftermath) = try await store.tasks.command(
                    .cancel(reason: 1), TaskFilter(), in: session, after: after, limit: Store.Tasks.commandGroup,
                    at: now)
                all.merge(aftermath)
                number = step.last
            }
        }
        return all
    }

    private func discretionarySession(of app: AppID, after cursor: SessionID) async throws -> SessionID? {
        try await database.read { db in
            try db.first(
                """
                SELECT id FROM session WHERE app = ?1 AND discretionary = 1 AND forgotten = 0 AND id > ?2 \
                ORDER BY id LIMIT 1
                """, app.rawValue, cursor.rawValue
            ) { SessionID($0.integer(0)) }
        }
    }
}
