package import Core
import SQLite

extension AppRecord {
    /// Why its launches wait, or nil when they can be sent.
    package var parkReason: LaunchState.ParkReason? { isForceQuit ? .forceQuit : webhook.parkReason }
}

extension Store {
    /// Changes an app, and what follows: launches are parked or released, background refresh stops or begins anew.
    ///
    /// Costs a row for each open launch of the app where its webhook stops or starts working.
    ///
    /// - Parameter revision: What the caller believes the revision to be, or nil.
    /// - Throws: ``DomainError/revisionMismatch`` when it is another one.
    package func changeApp(
        _ id: AppID, _ changes: AppChanges, ifRevision revision: Int64?, at now: Timestamp
    ) async throws -> (AppRecord, Aftermath) {
        let ((app, isRestricted), aftermath) = try await transact(at: now) { transaction -> (AppRecord, Bool) in
            guard let old = try self.readApp(id, transaction.db) else { throw DomainError.notFound }
            var changes = changes
            let isWebhookRepaired = changes.webhook.map { Self.isRepaired($0, since: old.webhook) } ?? false
            if isWebhookRepaired { changes.webhook?.disabledReason = nil }
            let app = try self.change(old, changes, ifRevision: revision, transaction.db)
            if isWebhookRepaired { try self.noteSuccess(of: id, transaction.db) }
            let common = try self.readConditions(transaction.db).refreshStatus
            let isRestricted = try self.refreshMayHaveChanged(
                from: old, to: app, oldCommon: common, newCommon: common, transaction)
            if let reason = app.parkReason {
                if reason != old.parkReason { try self.parkLaunches(of: app, reason, transaction) }
            } else if old.parkReason != nil {
                try self.releaseLaunches(of: app, transaction)
            }
            return (app, isRestricted)
        }
        var all = aftermath
        if isRestricted { all.merge(try await cancelDiscretionaryTasks(of: id, at: now)) }
        return (app, all)
    }

    /// Whether what was known of the webhook's failures says nothing any more.
    private static func isRepaired(_ new: WebhookSettings, since old: WebhookSettings) -> Bool {
        new.state == .enabled && (old.state == .disabled || old.url != new.url)
    }

    /// Parks the open launches of an app. An unsent fetch is given up instead: it is not made up for later.
    func parkLaunches(of app: AppRecord, _ reason: LaunchState.ParkReason, _ transaction: Transaction) throws {
        let open = try transaction.db.all(
            "SELECT id, kind, state FROM launch INDEXED BY launch_open WHERE app = ?1 AND state < 4 ORDER BY id",
            app.id.rawValue
        ) { (id: $0.integer(0), kind: $0.int(1), state: $0.int(2)) }
        for launch in open {
            if launch.kind == LaunchKind.performFetch.rawValue {
                if launch.state == 0 { try abandonFetch(id: launch.id, app, transaction) }
            } else {
                try transaction.move(launch: launch.id, .park(reason))
            }
        }
    }

    /// Parked launches follow each other at this distance once the webhook works again.
    static let releaseInterval = Duration.milliseconds(200)

    func releaseLaunches(of app: AppRecord, _ transaction: Transaction) throws {
        let now = transaction.now
        let parked = try transaction.db.all(
            "SELECT id FROM launch WHERE app = ?1 AND state = 3 ORDER BY id", app.id.rawValue
        ) { $0.integer(0) }
        for (place, id) in parked.enumerated() {
            try transaction.move(launch: id, .enabled(nextAttemptAt: now + Self.releaseInterval * place))
            // The time spent parked is not taken from the attempts.
            try transaction.db.execute(
                """
                UPDATE launch SET expires_at = CASE WHEN body IS NULL THEN ?2 ELSE max(expires_at, ?3) END \
                WHERE id = ?1
                """, id, (now + LaunchSchedule.lifetime).milliseconds, (now + .seconds(86_400)).milliseconds)
        }
    }

    // MARK: Health

    func health(of app: AppID, _ db: Connection) throws -> WebhookHealth {
        try db.first(
            "SELECT failing_since, consecutive_failures, trips, open_until FROM webhook_health WHERE app = ?1",
            app.rawValue
        ) { row in
            WebhookHealth(
                failingSince: row.integerOrNil(0).map(Timestamp.init(milliseconds:)), consecutiveFailures: row.int(1),
                trips: row.int(2), openUntil: row.integerOrNil(3).map(Timestamp.init(milliseconds:)))
        } ?? WebhookHealth()
    }

    func noteSuccess(of app: AppID, _ db: Connection) throws {
        try db.execute("DELETE FROM webhook_health WHERE app = ?1", app.rawValue)
    }

    /// Counts a failed attempt against the webhook; after five days of nothing else it is disabled.
    func noteFailure(of app: AppRecord, _ transaction: Transaction) throws {
        var health = try health(of: app.id, transaction.db)
        let isHopeless = health.failed(at: transaction.now)
        try transaction.db.execute(
            """
            INSERT OR REPLACE INTO webhook_health (app, failing_since, consecutive_failures, trips, open_until) \
            VALUES (?1, ?2, ?3, ?4, ?5)
            """,
            app.id.rawValue, health.failingSince?.milliseconds, health.consecutiveFailures, health.trips,
            health.openUntil?.milliseconds)
        if isHopeless {
            try disable(app, "Every attempt has failed for five days.", transaction)
        } else if let openUntil = health.openUntil {
            try putOffLaunches(of: app.id, until: openUntil, transaction)
        }
    }

    /// Delays what is due earlier, without a charge.
    func putOffLaunches(of app: AppID, until moment: Timestamp, _ transaction: Transaction) throws {
        for isRetry in [false, true] {
            try transaction.db.execute(
                """
                UPDATE launch SET due_at = ?2 WHERE state = 0 AND app = ?1 AND (attempts > 0) = ?3 AND due_at < ?2
                """, app.rawValue, moment.milliseconds, isRetry)
        }
    }

    /// Switches the webhook off, visibly, and parks what waits for it.
    func disable(_ app: AppRecord, _ reason: String, _ transaction: Transaction) throws {
        guard var current = try readApp(app.id, transaction.db), current.webhook.state != .disabled else { return }
        current.webhook.state = .disabled
        current.webhook.disabledReason = reason
        current.revision += 1
        try transaction.db.execute(
            "UPDATE app SET webhook_document = ?2, revision = ?3 WHERE id = ?1", app.id.rawValue,
            try documents.encode(current.webhook), current.revision)
        try parkLaunches(of: current, current.parkReason ?? .disabled, transaction)
        try scheduleRefresh(of: current, transaction)
    }
}
