package import Core
import SQL

/// Presence of clients at one of many nodes, published to the others.
extension Store.Sessions {
    /// Publishes that a session has its first client at this node.
    func note(_ kind: Presence.Kind, of session: SessionEntry, _ transaction: Transaction) throws {
        guard let node else { return }
        try transaction.db.execute(
            """
            INSERT INTO presence (session, node, kind) VALUES (?1, ?2, ?3) \
            ON CONFLICT (session, node) DO UPDATE SET kind = ?3, detached_at = NULL
            """, session.id.rawValue, node, kind.rawValue)
    }

    /// Records that a client attached by itself.
    package func clientAttached(
        to id: SessionID, _ kind: Presence.Kind, at now: Timestamp
    ) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let session = try transaction.session(id)
            try self.note(kind, of: session, transaction)
            try store.apps.noteActivity(session.app, transaction)
            try store.launches.welcomeClient(of: session, transaction)
        }.1
    }

    /// Publishes that these sessions have no client here any more. A session with a new client is skipped.
    package func clientsLeft(_ sessions: [SessionID]) async throws {
        guard let node else { return }
        try await database.write { [policies] db in
            for session in sessions {
                // Read within the transaction: a client that arrives later writes later.
                let presence = policies.presence(session)
                guard !presence.isAttached else { continue }
                try db.execute(
                    "UPDATE presence SET kind = NULL, detached_at = ?3 WHERE session = ?1 AND node = ?2",
                    session.rawValue, node, presence.lastDetachedAt.milliseconds)
            }
        }
    }

    /// The kind of attachment that a client has to a session at another node, if any.
    package func attachmentElsewhere(to session: SessionID) async throws -> Presence.Kind? {
        guard let node else { return nil }
        return try await database.read { db in
            try db.first(
                "SELECT min(kind) FROM presence WHERE session = ?1 AND node <> ?2 AND kind IS NOT NULL",
                session.rawValue, node
            ) { try $0.valueOrNil(0) } ?? nil
        }
    }

    /// Deletes rows of clients that detached long ago. After that, the start time of a node is used instead.
    func dropPresence(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        try transaction.db.change(
            """
            DELETE FROM presence WHERE (session, node) IN \
            (SELECT session, node FROM presence WHERE detached_at <= ?1 LIMIT ?2)
            """, (transaction.now - Self.presenceRetention).milliseconds, rows) == rows
    }

    /// The retention of the time at which a session's last client detached.
    package static let presenceRetention = Duration.seconds(3600)
}
