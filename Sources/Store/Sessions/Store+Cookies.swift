package import Core
import SQL

extension Store {
    /// The cookies of a session, as lines of Netscape's cookie file. One row.
    package func cookies(of session: SessionID) async throws -> [String] {
        try await database.read { [documents] db in
            let jar = try db.first("SELECT jar FROM cookie_jar WHERE session = ?1", session.rawValue) { $0.blob(0) }
            guard let jar else { return [] }
            return try documents.decode([String].self, jar, sealedAs: Self.cookieContext(session))
        }
    }

    /// Replaces the cookies of a session that has not been forgotten.
    func save(cookies lines: [String], of session: SessionID, _ db: Connection) throws {
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
