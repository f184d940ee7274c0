package import Core
import SQL

extension Store.Launches {
    /// Accepts an app's answer to a launch through a call. A repeated equal answer changes nothing.
    ///
    /// - Parameter epoch: The epoch of the client's attachment, if it has one.
    /// - Throws: ``DomainError/notFound``; for a session's launch ``DomainError/attachmentFenced`` and
    ///   ``DomainError/acknowledgementOutOfRange(lastSeq:)``, for a fetch ``DomainError/fetchLate``.
    package func answer(
        _ launchId: String, app: AppID, with answer: LaunchAnswer, epoch: Int64?, at now: Timestamp
    ) async throws -> Aftermath {
        let (isInTime, aftermath) = try await transact(at: now) { transaction in
            guard let app = try store.apps.read(app, transaction.db) else { throw DomainError.notFound }
            let id = try self.launchID(launchId, app: app.id, transaction.db)
            return try self.take(answer, to: id, launchId, of: app, .call(epoch: epoch), transaction)
        }
        // The commit keeps the effects of a late answer, so the error is thrown outside the transaction.
        guard isInTime else { throw DomainError.fetchLate }
        return aftermath
    }

    /// The way in which an answer arrived.
    enum AnswerPath {
        case webhook
        case call(epoch: Int64?)
    }

    /// Applies an answer of the right kind, whatever its path.
    ///
    /// - Returns: Whether the answer was in time. The result of a fetch can be late; a session's completion cannot.
    func take(
        _ answer: LaunchAnswer, to id: Int64, _ launchId: String, of app: AppRecord, _ path: AnswerPath,
        _ transaction: Transaction
    ) throws -> Bool {
        switch answer {
        case .completed(let through):
            try complete(id, launchId, through: through, path, transaction)
            return true
        case .fetched(let result):
            return try finishFetch(id, launchId, of: app, result, transaction)
        }
    }

    /// Completes a session's launch: acknowledges, appends `session.didFinishEvents` and ends the launch's attachment.
    ///
    /// A late completion still acknowledges.
    private func complete(
        _ id: Int64, _ launchId: String, through: Int64?, _ path: AnswerPath, _ transaction: Transaction
    ) throws {
        let (sessionID, lastSeq) = try transaction.db.first(
            "SELECT session, last_seq FROM launch WHERE id = ?1", id
        ) { ($0.integerOrNil("session").map(SessionID.init), $0.integer("last_seq")) }.orNotFound()
        guard let sessionID, let session = try transaction.sessionIfPresent(sessionID) else {
            try transaction.move(launch: id, .complete)
            return
        }
        switch path {
        case .call(let epoch): try store.sessions.checkFence(session, epoch: epoch, transaction)
        case .webhook: try store.sessions.checkFence(session, responseTo: launchId, transaction)
        }
        let through = through ?? lastSeq
        guard through <= session.lastSeq else {
            throw DomainError.acknowledgementOutOfRange(lastSeq: session.lastSeq)
        }
        let effects = try transaction.move(launch: id, .complete)
        if effects.contains(.acknowledge) { try store.sessions.acknowledge(through: through, session, transaction) }
        guard effects.contains(.finishEvents) else { return }
        // The log of an invalid session ends with its last event.
        if session.state.phase != .invalid {
            try transaction.append(.didFinishEvents, to: session, data: Array(launchId.utf8))
        }
        session.book.completed(id, at: transaction.now)
        session.revision += 1
        session.isChanged = true
        try store.sessions.endAttachment(of: session, launchId, transaction)
    }

    /// Stores the result of a fetch. A result after the deadline is discarded.
    private func finishFetch(
        _ id: Int64, _ launchId: String, of app: AppRecord, _ result: BackgroundRefresh.Result,
        _ transaction: Transaction
    ) throws -> Bool {
        // A repeated call, perhaps after later fetches.
        let hasResult = try transaction.db.exists(
            "SELECT 1 FROM launch WHERE id = ?1 AND state = 'completed' AND result IS NOT NULL", id)
        if hasResult { return true }
        var refresh = try store.apps.readRefresh(of: app.id, transaction.db)
        do {
            let isNew = try refresh.handle(
                .finished(launchId: launchId, result), identifier: app.identifier, at: transaction.now)
            guard isNew else { return true }
        } catch {
            // The deadline decides, not the timer that enforces it.
            try store.apps.expireFetch(launchId, id: id, app, transaction)
            return false
        }
        try store.apps.save(refresh, of: app, transaction)
        try transaction.move(launch: id, .complete)
        try transaction.db.execute("UPDATE launch SET result = ?2 WHERE id = ?1", id, result.rawValue)
        return true
    }
}
