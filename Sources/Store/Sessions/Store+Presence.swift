package import Core
import SQL

/// Clients at one of many nodes, for the others to know of.
extension Store {
    /// Tells other nodes of a session's first client here.
    func note(_ kind: Presence.Kind, of session: SessionEntry, _ transaction: Transaction) throws {
        guard let node else { return }
        try transaction.db.execute(
            """
            INSERT INTO presence (session, node, kind) VALUES (?1, ?2, ?3) \
            ON CONFLICT (session, node) DO UPDATE SET kind = ?3, detached_at = NULL
            """, session.id.rawValue, node, kind.rawValue)
    }

    /// Tells other nodes that no client follows these sessions here any more. One that came back meanwhile counts.
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

    /// How a client is attached to a session at another node.
    package func attachmentElsewhere(to session: SessionID) async throws -> Presence.Kind? {
        guard let node else { return nil }
        return try await database.read { db in
            try db.first(
                "SELECT min(kind) FROM presence WHERE session = ?1 AND node <> ?2 AND kind IS NOT NULL",
                session.rawValue, node
            ) { try $0.valueOrNil(0) } ?? nil
        }
    }

    /// Forgets clients that left long ago, since the start of a node stands in for them.
    func dropPresence(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        try transaction.db.change(
            """
            DELETE FROM presence WHERE (session, node) IN \
            (SELECT session, node FROM presence WHERE detached_at <= ?1 LIMIT ?2)
            """, (transaction.now - Self.presenceRetention).milliseconds, rows) == rows
    }

    /// How long it is remembered when a session's last client left.
    package static let presenceRetention = Duration.seconds(3600)
}
