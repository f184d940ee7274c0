import Base
package import Core
import Store
import TransferEngine
import Transfers

extension Service {
    /// Creates or reconnects a session; see `Store.Sessions.open`.
    package func openSession(
        _ identifier: String, app: AppID, configuration: SessionConfiguration?, description: String?,
        onlyCreates: Bool, expecting expected: SessionCondition = .none, recording: Recording<SessionRecord>?
    ) async throws -> (session: SessionRecord, arrival: SessionArrival) {
        let opened = try await store.sessions.open(
            identifier, app: app, configuration: configuration, description: description, onlyCreates: onlyCreates,
            expecting: expected, at: clock.now, recording: recording)
        outlet.handle(opened.aftermath)
        return (opened.session, opened.arrival)
    }

    package func session(_ identifier: String, app: AppID) async throws -> SessionRecord {
        try await store.sessions.read(identifier, app: app)
    }

    package func sessions(
        of app: AppID, _ span: ListSpan, after cursor: Int64, limit: Int
    ) async throws -> [SessionRecord] {
        try await store.sessions.list(of: app, span, after: cursor, limit: limit)
    }

    package func changeSession(
        _ id: SessionID, description: String??, bandwidthLimit: Int64??, ifRevision revision: Int64?
    ) async throws -> SessionRecord {
        let session = try await store.sessions.change(
            id, description: description, bandwidthLimit: bandwidthLimit, ifRevision: revision)
        inbox.tell(.sessionChanged(id))
        hub.sessions.signal(id)
        return session
    }

    /// The session once none of its tasks is `running` or `canceling` or, with a revision, once the session is newer; at the
    /// latest at the monotonic `deadline` (ms). Attaches no client.
    package func waitForSession(
        _ id: SessionID, newerThan revision: Int64?, until deadline: Int64, isGone: @escaping @Sendable () -> Bool
    ) async throws -> SessionRecord {
        let watch = hub.sessions.watch(id)
        while true {
            let session = try await store.sessions.read(id)
            let isQuiet = session.counts.running == 0 && session.counts.canceling == 0
            let isNewer = revision.map { session.revision > $0 } ?? false
            if isQuiet || isNewer || clock.monotonic() >= deadline || isGone() || isDraining { return session }
            _ = await watch.wait(until: deadline)
        }
    }

    package func finishTasksAndInvalidate(
        _ id: SessionID, ifRevision revision: Int64? = nil
    ) async throws -> SessionRecord {
        let (session, aftermath) = try await store.sessions.invalidate(id, ifRevision: revision, at: clock.now)
        outlet.handle(aftermath)
        return session
    }

    package func invalidateAndCancel(_ id: SessionID, ifRevision revision: Int64? = nil) async throws -> SessionRecord {
        let (session, aftermath) = try await store.sessions.invalidate(
            id, cancelsTasks: true, ifRevision: revision, at: clock.now)
        outlet.handle(aftermath)
        try await carryOutCancellation(of: session.app, id)
        return try await store.sessions.read(id)
    }

    package func deleteSession(_ id: SessionID, ifRevision revision: Int64? = nil) async throws -> SessionRecord {
        let (session, aftermath) = try await behindMoves { overtakesMoves in
            try await self.store.sessions.forget(
                id, ifRevision: revision, overtakesMoves: overtakesMoves, at: self.clock.now)
        }
        outlet.handle(aftermath)
        return session
    }

    /// Empties cookies and credentials, and closes the app's connections. Partial downloads stay resumable.
    package func resetSession(_ id: SessionID, ifRevision revision: Int64? = nil) async throws -> SessionRecord {
        try await store.sessions.reset(id, ifRevision: revision)
        cookies.empty(id)
        let session = try await store.sessions.read(id)
        engine.closeConnections(pool: session.app.rawValue)
        return session
    }

    // MARK: Attachment

    /// Claims, renews or releases the attachment lease of a session.
    package func attach(_ event: Attachment.Event, to id: SessionID) async throws -> SessionRecord {
        let (session, aftermath) = try await store.sessions.attach(event, to: id, at: clock.now)
        outlet.handle(aftermath)
        let end = session.attachment?.lease?.expiresAt ?? clock.now
        relauncher.check(id, at: end + settings.detachGrace)
        return session
    }

    /// The kind of a session's attachment, on this node or another one.
    package func attachmentKind(of id: SessionID) async throws -> Presence.Kind? {
        if let kind = attendance.kind(of: id) { return kind }
        return try await store.sessions.attachmentElsewhere(to: id)
    }

    /// Attaches a stream or a held request while `body` runs.
    package func attached<Result>(
        to id: SessionID, _ kind: Presence.Kind, _ body: () async throws -> Result
    ) async throws -> Result {
        attendance.attach(id, kind)
        defer {
            if attendance.detach(id, kind) { relauncher.check(id, at: clock.now + settings.detachGrace) }
        }
        let shown = attendance.kind(of: id) ?? kind
        outlet.handle(try await store.sessions.clientAttached(to: id, shown, at: clock.now))
        return try await body()
    }
}
