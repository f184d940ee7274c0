package import Core
import SQL

extension Store {
    /// Takes what an app answers to a launch by a call. The same answer again changes nothing.
    ///
    /// - Parameter epoch: Of the client's attachment, where it holds one.
    /// - Throws: ``DomainError/notFound``; of a session's launch ``DomainError/attachmentFenced`` and
    ///   ``DomainError/acknowledgementOutOfRange(lastSeq:)``, of a fetch ``DomainError/fetchLate``.
    package func answer(
        _ launchId: String, app: AppID, with answer: LaunchAnswer, epoch: Int64?, at now: Timestamp
    ) async throws -> Aftermath {
        let (isInTime, aftermath) = try await transact(at: now) { transaction in
            guard let app = try self.readApp(app, transaction.db) else { throw DomainError.notFound }
            let id = try self.launchID(launchId, app: app.id, transaction.db)
            return try self.take(answer, to: id, launchId, of: app, .call(epoch: epoch), transaction)
        }
        // What the lateness changed is kept, so it is told from outside the transaction.
        guard isInTime else { throw DomainError.fetchLate }
        return aftermath
    }

    /// How an answer came.
    enum AnswerPath {
        case webhook
        case call(epoch: Int64?)
    }

    /// Does what follows from an answer of the right kind, however it came.
    ///
    /// - Returns: Whether it was in time. The result of a fetch can be late; a session's launch can always be completed.
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

    /// Completes a session's launch: acknowledges, records `session.didFinishEvents`, ends attachments made with it.
    ///
    /// Late, it still acknowledges.
    private func complete(
        _ id: Int64, _ launchId: String, through: Int64?, _ path: AnswerPath, _ transaction: Transaction
    ) throws {
        let row = try transaction.db.first("SELECT session, last_seq FROM launch WHERE id = ?1", id) {
            ($0.integerOrNil("session").map(SessionID.init), $0.integer("last_seq"))
        }
        guard let (sessionID, lastSeq) = row else { throw DomainError.notFound }
        guard let sessionID, let session = try? transaction.session(sessionID) else {
            try transaction.move(launch: id, .complete)
            return
        }
        if case .call(let epoch) = path { try checkFence(session, epoch: epoch, transaction) }
        let through = through ?? lastSeq
        guard through <= session.lastSeq else {
            throw DomainError.acknowledgementOutOfRange(lastSeq: session.lastSeq)
        }
        let effects = try transaction.move(launch: id, .complete)
        if effects.contains(.acknowledge) { try acknowledge(through: through, session, transaction) }
        guard effects.contains(.finishEvents) else { return }
        // An invalid session has told its last event already.
        if session.state.phase != .invalid {
            try transaction.append(.didFinishEvents, to: session, data: Array(launchId.utf8))
        }
        session.book.completed(id, at: transaction.now)
        session.revision += 1
        session.isChanged = true
        try endAttachment(of: session, launchId, transaction)
    }

    /// Takes the result of a fetch; beyond the deadline it is none.
    private func finishFetch(
        _ id: Int64, _ launchId: String, of app: AppRecord, _ result: BackgroundRefresh.Result,
        _ transaction: Transaction
    ) throws -> Bool {
        var refresh = try readRefresh(of: app.id, transaction.db)
        do {
            let isNew = try refresh.handle(
                .finished(launchId: launchId, result), identifier: app.identifier, at: transaction.now)
            guard isNew else { return true }
        } catch {
            // The deadline counts, not the timer that looks after it.
            try expireFetch(launchId, id: id, app, transaction)
            return false
        }
        try save(refresh, of: app, transaction)
        try transaction.move(launch: id, .complete)
        try transaction.db.execute("UPDATE launch SET result = ?2 WHERE id = ?1", id, result.rawValue)
        return true
    }
}
