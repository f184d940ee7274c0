package import Core
import SQL

/// Changes that transfers made to a session's cookies, as lines of Netscape's cookie file.
package struct CookieChange: Hashable, Sendable {
    /// The lines as they were last read or stored.
    package var before: [String]
    package var after: [String]

    package init(before: [String] = [], after: [String]) {
        self.before = before
        self.after = after
    }
}

extension Store.Sessions {
    /// The cookies of a session, as lines of Netscape's cookie file. Costs one row.
    package func cookies(of session: SessionID) async throws -> [String] {
        try await database.read { try self.cookies(of: session, $0) }
    }

    private func cookies(of session: SessionID, _ db: Connection) throws -> [String] {
        let jar = try db.first("SELECT jar FROM cookie_jar WHERE session = ?1", session.rawValue) { $0.blob(0) }
        guard let jar else { return [] }
        return try documents.decode([String].self, jar, sealedAs: Self.cookieContext(session))
    }

    /// Stores changed cookies of a session without a tombstone. If other nodes may have changed or emptied the jar,
    /// only the lines that differ from `before` are merged into it.
    func save(_ change: CookieChange, of session: SessionID, at now: Timestamp, _ db: Connection) throws {
        var lines = change.after
        if node != nil {
            var jar = CookieJar(lines: try cookies(of: session, db))
            guard jar.merge(given: change.before, returned: change.after, accepts: true, at: now) else { return }
            lines = jar.lines
        }
        guard !lines.isEmpty else {
            try db.execute("DELETE FROM cookie_jar WHERE session = ?1", session.rawValue)
            return
        }
        try db.execute(
            """
            INSERT INTO cookie_jar (session, jar) SELECT id, ?2 FROM session WHERE id = ?1 AND forgotten = 0 \
            ON CONFLICT (session) DO UPDATE SET jar = excluded.jar
            """, session.rawValue, documents.encode(lines, sealedAs: Self.cookieContext(session), if: true))
    }

    static func cookieContext(_ session: SessionID) -> String { "cookies/\(session.rawValue)" }
}
