package import Core
import SQLite

extension Store {
    /// Keeps a credential for a protection space, for one session or for the app. Replaces the one before.
    package func keep(
        _ credential: Credential, for space: ProtectionSpace, app: AppID, session: SessionID?, credentialId: String,
        at now: Timestamp
    ) async throws {
        try await database.write { [documents] db in
            let key = Self.key(space.host, space.port)
            try db.execute(
                "DELETE FROM credential WHERE app = ?1 AND ifnull(session, 0) = ?2 AND space = ?3", app.rawValue,
                session?.rawValue ?? 0, key)
            try db.execute(
                """
                INSERT INTO credential (public_id, app, session, space, space_document, secret, created_at) \
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                """,
                credentialId, app.rawValue, session?.rawValue, key, try documents.encode(space),
                try documents.encode(credential, sealedAs: "credential/\(credentialId)", if: true), now.milliseconds)
        }
    }

    /// The credential to send to a host without asking: the session's before the app's.
    package func credential(host: String, port: Int, app: AppID, session: SessionID) async throws -> Credential? {
        try await database.read { [documents] db in
            try db.first(
                """
                SELECT public_id, secret FROM credential WHERE app = ?1 AND space = ?2 \
                AND (session IS NULL OR session = ?3) ORDER BY session IS NULL LIMIT 1
                """, app.rawValue, Self.key(host, port), session.rawValue
            ) { row in
                try documents.decode(Credential.self, row.blob(1), sealedAs: "credential/\(row.text(0))")
            }
        }
    }

    /// Whether the app has stored any credential, for itself or for a session.
    package func hasCredentials(_ app: AppID) async throws -> Bool {
        try await database.read { db in
            try db.first("SELECT 1 FROM credential WHERE app = ?1 LIMIT 1", app.rawValue) { _ in true } ?? false
        }
    }

    package func credentials(of app: AppID, after cursor: Int64, limit: Int) async throws
        -> [(cursor: Int64, credential: CredentialRecord)]
    {
        try await database.read { db in
            try db.all(
                """
                SELECT id, public_id, space_document, session, created_at, secret FROM credential \
                WHERE app = ?1 AND id > ?2 ORDER BY id LIMIT ?3
                """, app.rawValue, cursor, limit
            ) { row in (row.integer(0), try self.credential(row)) }
        }
    }

    /// - Throws: ``DomainError/notFound``.
    package func credential(_ credentialId: String, app: AppID) async throws -> CredentialRecord {
        let found = try await database.read { db in
            try db.first(
                """
                SELECT id, public_id, space_document, session, created_at, secret FROM credential \
                WHERE public_id = ?1 AND app = ?2
                """, credentialId, app.rawValue
            ) { row in try self.credential(row) }
        }
        guard let found else { throw DomainError.notFound }
        return found
    }

    private func credential(_ row: borrowing Row) throws -> CredentialRecord {
        let publicId = row.text(1)
        let secret = try documents.decode(Credential.self, row.blob(5), sealedAs: "credential/\(publicId)")
        return CredentialRecord(
            credentialId: publicId, space: try documents.decode(ProtectionSpace.self, row.blob(2)), user: secret.user,
            session: row.integerOrNil(3).map(SessionID.init), createdAt: Timestamp(milliseconds: row.integer(4)))
    }

    /// - Throws: ``DomainError/notFound``.
    package func deleteCredential(_ credentialId: String, app: AppID) async throws {
        try await database.write { db in
            try db.execute("DELETE FROM credential WHERE public_id = ?1 AND app = ?2", credentialId, app.rawValue)
            if db.changes == 0 { throw DomainError.notFound }
        }
    }

    private static func key(_ host: String, _ port: Int) -> String { "\(host.asciiLowercased):\(port)" }
}
