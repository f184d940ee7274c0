package import Core
import SQL

extension AppRecord {
    /// The reason for which the app's launches are parked, or `nil` if they can be sent.
    package var parkReason: LaunchState.ParkReason? { isForceQuit ? .forceQuit : webhook.parkReason }
}

extension Store.Apps {
    /// Changes an app, parks or releases its launches, and stops or restarts its background refresh.
    ///
    /// If refresh is not available, discretionary tasks are cancelled even if it was not available before, because an
    /// earlier cancellation may have failed. A forced quit stores a cancellation, which the caller carries out.
    ///
    /// A stopped webhook sends nothing more from this commit on. Its launches are parked or released in batches, the
    /// first of them in this commit.
    ///
    /// - Parameter revision: The revision that the caller expects, or `nil`.
    /// - Throws: ``DomainError/revisionMismatch`` if the app has another revision.
    package func change(
        _ id: AppID, _ changes: AppChanges, ifRevision revision: Int64?, at now: Timestamp
    ) async throws -> (AppRecord, Aftermath) {
        let ((app, isRestricted), aftermath) = try await transact(at: now) { transaction -> (AppRecord, Bool) in
            guard let old = try self.read(id, transaction.db) else { throw DomainError.notFound }
            var changes = changes
            let isWebhookRepaired = changes.webhook.map { Self.isRepaired($0, since: old.webhook) } ?? false
            if isWebhookRepaired { changes.webhook?.disabledReason = nil }
            let app = try self.change(old, changes, ifRevision: revision, transaction.db)
            if isWebhookRepaired { try self.noteSuccess(of: id, transaction) }
            let common = try self.readConditions(transaction.db).refreshStatus
            try self.refreshMayHaveChanged(from: old, to: app, oldCommon: common, newCommon: common, transaction)
            if changes.isForceQuit == true { try store.tasks.beginCancellation(of: id, reason: 0, transaction.db) }
            if app.parkReason != old.parkReason { try store.launches.beginSettling(of: app, transaction) }
            return (app, app.backgroundRefreshStatus.stricter(common) != .available)
        }
        var all = aftermath
        if isRestricted { all.merge(try await cancelDiscretionaryTasks(of: id, at: now)) }
        return (app, all)
    }

    /// Whether the change of the webhook makes its recorded failures obsolete.
    private static func isRepaired(_ new: WebhookSettings, since old: WebhookSettings) -> Bool {
        new.state == .enabled && (old.state == .disabled || old.url != new.url)
    }

    // MARK: Health

    func health(of app: AppID, _ db: Connection) throws -> WebhookHealth {
        try db.first(
            "SELECT failing_since, consecutive_failures, trips, open_until FROM webhook_health WHERE app = ?1",
            app.rawValue
        ) { row in
            WebhookHealth(
                failingSince: row.timeOrNil("failing_since"), consecutiveFailures: row.int("consecutive_failures"),
                trips: row.int("trips"), openUntil: row.timeOrNil("open_until"))
        } ?? WebhookHealth()
    }

    /// Records a success of the webhook, which clears its recorded failures.
    package func noteWebhookAnswer(of app: AppID, at now: Timestamp) async throws -> Aftermath {
        try await transact(at: now) { try self.noteSuccess(of: app, $0) }.1
    }

    func noteSuccess(of app: AppID, _ transaction: Transaction) throws {
        let wasFailing = try transaction.db.change("DELETE FROM webhook_health WHERE app = ?1", app.rawValue) > 0
        if wasFailing { try transaction.hastenLaunches(of: app) }
    }

    /// Counts a failed attempt against the webhook. Five days of failures only disable it.
    func noteFailure(of app: AppRecord, _ transaction: Transaction) throws {
        var health = try health(of: app.id, transaction.db)
        let isHopeless = health.failed(at: transaction.now)
        try transaction.db.execute(
            """
            INSERT INTO webhook_health (app, failing_since, consecutive_failures, trips, open_until) \
            VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (app) DO UPDATE \
            SET failing_since = ?2, consecutive_failures = ?3, trips = ?4, open_until = ?5
            """,
            app.id.rawValue, health.failingSince?.milliseconds, health.consecutiveFailures, health.trips,
            health.openUntil?.milliseconds)
        if isHopeless {
            try disable(app, "Every attempt has failed for five days.", transaction)
        } else if let openUntil = health.openUntil {
            try transaction.requeue(app.id, notBefore: openUntil)
        }
    }

    /// Disables the webhook with a visible reason, and parks its launches.
    func disable(_ app: AppRecord, _ reason: String, _ transaction: Transaction) throws {
        guard var current = try read(app.id, transaction.db), current.webhook.state != .disabled else { return }
        current.webhook.state = .disabled
        current.webhook.disabledReason = reason
        current.revision += 1
        try transaction.db.execute(
            "UPDATE app SET webhook_document = ?2, revision = ?3 WHERE id = ?1", app.id.rawValue,
            documents.encode(current.webhook), current.revision)
        try store.launches.beginSettling(of: current, transaction)
        try scheduleRefresh(of: current, transaction)
    }
}
