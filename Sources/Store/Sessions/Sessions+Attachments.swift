package import Core
import SQL

extension Store.Sessions {
    /// Acquires, renews or releases the lease of a session.
    ///
    /// - Parameter event: `take`, `renew` or `release`.
    /// - Throws: ``DomainError/sessionInUse`` if another client holds the lease, ``DomainError/attachmentFenced`` for
    ///   an epoch that is not the current one.
    package func attach(
        _ event: Attachment.Event, to id: SessionID, at now: Timestamp
    ) async throws -> (SessionRecord, Aftermath) {
        try await transact(at: now, returning: { try self.read(id, $0) }) { transaction in
            let session = try transaction.session(id)
            var attachment = try self.attachment(of: session)
            let arrival: Attachment.Arrival?
            do {
                arrival = try attachment.handle(event, at: now)
            } catch {
                if case .take = event { throw DomainError.sessionInUse }
                throw DomainError.attachmentFenced
            }
            if attachment.isHeld(at: now) { try store.apps.noteActivity(session.app, transaction) }
            if let arrival, let launch = session.book.openLaunch {
                try self.noteArrival(arrival.launchId, launch: launch, session, transaction)
            }
            session.attachment = self.documents.encode(attachment)
            session.isChanged = true
        }
    }

    /// Supersedes an unsent launch if the client attached by itself, not as the launched app.
    private func noteArrival(
        _ launchId: String?, launch: Int64, _ session: SessionEntry, _ transaction: Transaction
    ) throws {
        let isLaunchedApp = try transaction.db.exists(
            "SELECT 1 FROM launch WHERE id = ?1 AND public_id = ?2", launch, launchId)
        if !isLaunchedApp { try store.launches.welcomeClient(of: session, transaction) }
    }

    func attachment(of session: SessionEntry) throws -> Attachment {
        try session.attachment.map { try documents.decode(Attachment.self, $0) } ?? Attachment()
    }

    /// - Throws: ``DomainError/attachmentFenced`` if the caller needs the current epoch and does not have it.
    func checkFence(_ session: SessionEntry, epoch: Int64?, _ transaction: Transaction) throws {
        guard try attachment(of: session).admits(epoch: epoch, at: transaction.now) else {
            throw DomainError.attachmentFenced
        }
    }

    /// - Throws: ``DomainError/attachmentFenced`` if another client than the launched app holds the attachment.
    func checkFence(_ session: SessionEntry, responseTo launchId: String, _ transaction: Transaction) throws {
        guard try attachment(of: session).admits(responseTo: launchId, at: transaction.now) else {
            throw DomainError.attachmentFenced
        }
    }

    func endAttachment(of session: SessionEntry, _ launchId: String, _ transaction: Transaction) throws {
        guard session.attachment != nil else { return }
        var attachment = try attachment(of: session)
        try attachment.handle(.launchCompleted(launchId: launchId), at: transaction.now)
        session.attachment = documents.encode(attachment)
    }
}
