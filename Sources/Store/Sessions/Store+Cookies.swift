package import Core
import SQL

/// Cookies of a session that transfers have changed, as lines of Netscape's cookie file.
package struct CookieChange: Hashable, Sendable {
    /// As they were read or stored last.
    package var before: [String]
    package var after: [String]

    package init(before: [String] = [], after: [String]) {
        self.before = before
        self.after = after
    }
}

extension Store {
    /// The cookies of a session, as lines of Netscape's cookie file. One row.
    package func cookies(of session: SessionID) async throws -> [String] {
        try await database.read { try self.cookies(of: session, $0) }
    }

    private func cookies(of session: SessionID, _ db: Connection) throws -> [String] {
        let jar = try db.first("SELECT jar FROM cookie_jar WHERE session = ?1", session.rawValue) { $0.blob(0) }
        guard let jar else { return [] }
        return try documents.decode([String].self, jar, sealedAs: Self.cookieContext(session))
    }

    /// Stores what changed of the cookies of a session that has not been forgotten. Where other nodes may have changed them
    /// as well, or emptied them, only what is another one than before.
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

    private static func cookieContext(_ session: SessionID) -> String { "cookies/\(session.rawValue)" }
}
