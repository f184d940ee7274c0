package import Core
import SQL

/// Redelivery: makes launches due now, whatever their schedule and the webhook's circuit breaker say.
extension Store.Launches {
    /// Redelivers an open or exhausted launch.
    ///
    /// - Throws: ``DomainError/launchNotOpen`` if it is completed, superseded, an ended fetch, or exhausted while the
    ///   session has another open launch.
    package func redeliver(
        _ launchId: String, app: AppID, at now: Timestamp
    ) async throws -> (LaunchRecord, Aftermath) {
        try await transact(
            at: now, returning: { db in try self.read(self.launchID(launchId, app: app, db), db) }
        ) { transaction in
            let id = try self.launchID(launchId, app: app, transaction.db)
            let launch = try transaction.db.first(
                "SELECT id, kind, state, session, session_identifier FROM launch WHERE id = ?1", id
            ) { try RedeliverableLaunch($0) }
            guard try self.redeliver(launch.orNotFound(), of: app, transaction) else { return }
            try self.closeBreaker(of: app, transaction)
        }
    }

    /// Visits up to `limit` launches of an app before `cursor`, 0 for the newest, and redelivers those that match.
    ///
    /// The newest come first: of several exhausted launches, a session reopens the one with the most events.
    ///
    /// - Returns: The number of matching launches that can be redelivered, the number redelivered, and the last launch
    ///   visited, `nil` at the end.
    package func redeliver(
        _ filter: LaunchFilter, of app: AppID, before cursor: Int64, limit: Int, at now: Timestamp
    ) async throws -> (matched: Int, changed: Int, last: Int64?, aftermath: Aftermath) {
        let span = ListSpan(
            .descending, createdAfter: filter.createdAfter, createdBefore: filter.createdBefore)
        let (result, aftermath) = try await transact(at: now) { transaction -> (Int, Int, Int64?) in
            let stretch = try Self.stretch(of: span, after: cursor, transaction.db)
            let found = try transaction.db.all(
                """
                SELECT id, kind, state, session, session_identifier FROM launch \
                WHERE app = ?1 AND id > ?2 AND id < ?3 ORDER BY id DESC LIMIT ?4
                """, app.rawValue, stretch.low, stretch.high, limit
            ) { try RedeliverableLaunch($0) }
            var (matched, changed) = (0, 0)
            for launch in found where launch.matches(filter) && launch.mayBeSentAgain {
                matched += 1
                do {
                    if try self.redeliver(launch, of: app, transaction) { changed += 1 }
                } catch DomainError.launchNotOpen {
                    continue
                }
            }
            if changed > 0 { try self.closeBreaker(of: app, transaction) }
            return (matched, changed, found.count < limit ? nil : found.last?.id)
        }
        return (result.0, result.1, result.2, aftermath)
    }

    /// - Returns: Whether it is redelivered. A launch in flight or parked is sent anyway.
    /// - Throws: ``DomainError/launchNotOpen``, with nothing changed.
    private func redeliver(
        _ launch: RedeliverableLaunch, of app: AppID, _ transaction: Transaction
    ) throws -> Bool {
        guard launch.mayBeSentAgain else { throw DomainError.launchNotOpen }
        // A fetch has one deadline, which another attempt would not extend.
        if launch.kind == .performFetch, launch.phase == .launched { return false }
        if launch.phase == .exhausted { try reopen(launch, transaction) }
        try transaction.move(launch: launch.id, .redeliver)
        guard launch.phase == .exhausted else { return !launch.phase.mayBeUnderWay }
        if let reason = try store.apps.read(app, transaction.db)?.parkReason {
            try transaction.move(launch: launch.id, .park(reason))
        }
        return true
    }

    /// Makes an exhausted launch the open launch of its session again.
    private func reopen(_ launch: RedeliverableLaunch, _ transaction: Transaction) throws {
        guard let session = launch.session else { return }
        guard let entry = try transaction.sessionIfPresent(session), !entry.isForgotten else {
            throw DomainError.launchNotOpen
        }
        do {
            try entry.book.reopened(launch.id)
        } catch {
            throw DomainError.launchNotOpen
        }
        entry.revision += 1
        entry.isChanged = true
    }

    private func closeBreaker(of app: AppID, _ transaction: Transaction) throws {
        try transaction.db.execute(
            "UPDATE webhook_health SET open_until = ?2 WHERE app = ?1 AND open_until > ?2", app.rawValue,
            transaction.now.milliseconds)
    }
}

/// The columns that decide whether a launch can be redelivered.
private struct RedeliverableLaunch {
    let id: Int64
    let kind: LaunchKind
    let phase: LaunchState.Phase
    let session: SessionID?
    let sessionIdentifier: String?

    init(_ row: Row) throws {
        id = row.integer("id")
        kind = try row.value("kind")
        phase = try row.value("state")
        session = row.integerOrNil("session").map(SessionID.init)
        sessionIdentifier = row.textOrNil("session_identifier")
    }

    /// Whether the launch is open or exhausted. An exhausted fetch is not made up for.
    var mayBeSentAgain: Bool {
        switch phase {
        case .pending, .delivering, .launched, .parked: true
        case .exhausted: kind != .performFetch
        case .completed, .superseded: false
        }
    }

    func matches(_ filter: LaunchFilter) -> Bool {
        guard filter.states.isEmpty || filter.states.contains(phase) else { return false }
        guard let session = filter.session else { return true }
        return sessionIdentifier?.utf8.elementsEqual(session.utf8) ?? false
    }
}
