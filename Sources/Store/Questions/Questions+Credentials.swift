import Base
package import Core
import SQL

extension Store.Questions {
    /// Stores a credential for a protection space, for one session or for the app. Replaces the previous one.
    package func keep(
        _ credential: Credential, for space: ProtectionSpace, app: AppID, session: SessionID?, credentialId: String,
        at now: Timestamp
    ) async throws {
        try await database.write { db in
            guard try store.apps.read(app, db) != nil else { throw DomainError.notFound }
            try self.keep(credential, for: space, app: app, session: session, credentialId, at: now, db)
        }
    }

    func keep(
        _ credential: Credential, for space: ProtectionSpace, app: AppID, session: SessionID?, _ credentialId: String,
        at now: Timestamp, _ db: Connection
    ) throws {
        let key = Self.key(space)
        try db.execute(
            "DELETE FROM credential WHERE app = ?1 AND coalesce(session, 0) = ?2 AND space = ?3", app.rawValue,
            session?.rawValue ?? 0, key)
        try db.execute(
            """
            INSERT INTO credential (public_id, app, session, space, space_document, secret, created_at) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            """,
            credentialId, app.rawValue, session?.rawValue, key, documents.encode(space),
            documents.encode(credential, sealedAs: "credential/\(credentialId)", if: true), now.milliseconds)
    }

    /// Whether a credential for the question's protection space was stored since the attempt read them.
    func isAnswered(
        _ question: Question, for session: SessionEntry, known: Set<String>, _ db: Connection
    ) throws -> Bool {
        guard let space = question.protectionSpace else { return false }
        return try db.all(
            """
            SELECT public_id FROM credential WHERE app = ?1 AND coalesce(session, 0) IN (0, ?2) AND space = ?3
            """, session.app.rawValue, session.id.rawValue, Self.key(space)
        ) { $0.text(0) }.contains { !known.contains($0) }
    }

    /// The credentials for a host and port that are sent without a question: the session's before the app's, each
    /// newest first.
    package func credentials(
        host: String, port: Int, app: AppID, session: SessionID
    ) async throws -> [KnownCredential] {
        try await database.read { [documents] db in
            try db.all(
                """
                SELECT public_id, space_document, secret, created_at FROM credential WHERE app = ?1 \
                AND coalesce(session, 0) IN (0, ?3) AND space >= ?2 || '/' AND space < ?2 || '0' \
                ORDER BY session IS NULL, id DESC
                """, app.rawValue, Self.place(host, port), session.rawValue
            ) { row in
                let publicId = row.text("public_id")
                return KnownCredential(
                    credentialId: publicId,
                    space: try documents.decode(ProtectionSpace.self, row.blob("space_document")),
                    credential: try documents.decode(
                        Credential.self, row.blob("secret"), sealedAs: "credential/\(publicId)"),
                    createdAt: row.time("created_at"))
            }
        }
    }

    /// Whether the app has stored any credential, for itself or for a session.
    package func hasCredentials(_ app: AppID) async throws -> Bool {
        try await database.read { db in
            try db.exists("SELECT 1 FROM credential WHERE app = ?1 LIMIT 1", app.rawValue)
        }
    }

    /// Up to `limit` credentials of an app after a cursor, with the cursor of each.
    package func credentials(
        of app: AppID, _ span: ListSpan = ListSpan(), after cursor: Int64, limit: Int
    ) async throws -> [(cursor: Int64, credential: CredentialRecord)] {
        try await database.read { db in
            let stretch = try span.stretch(
                after: cursor,
                db.positions("SELECT id, created_at FROM credential WHERE id >= ?1 ORDER BY id LIMIT 1"))
            return try db.all(
                """
                SELECT id, public_id, space_document, session, created_at, secret FROM credential \
                WHERE app = ?1 AND id > ?2 AND id < ?3 ORDER BY id ASC LIMIT ?4
                """, app.rawValue, stretch.low, stretch.high, limit, descending: span.isDescending
            ) { row in (cursor: row.integer("id"), credential: try self.credential(row)) }
        }
    }

    /// - Throws: ``DomainError/notFound``.
    package func credential(_ credentialId: String, app: AppID) async throws -> CredentialRecord {
        try await database.read { db in
            try db.first(
                """
                SELECT public_id, space_document, session, created_at, secret FROM credential \
                WHERE public_id = ?1 AND app = ?2
                """, credentialId, app.rawValue
            ) { row in try self.credential(row) }
        }.orNotFound()
    }

    private func credential(_ row: Row) throws -> CredentialRecord {
        let publicId = row.text("public_id")
        let secret = try documents.decode(Credential.self, row.blob("secret"), sealedAs: "credential/\(publicId)")
        return CredentialRecord(
            credentialId: publicId, space: try documents.decode(ProtectionSpace.self, row.blob("space_document")),
            user: secret.user, session: row.integerOrNil("session").map(SessionID.init),
            createdAt: row.time("created_at"))
    }

    /// - Throws: ``DomainError/notFound``.
    package func deleteCredential(_ credentialId: String, app: AppID) async throws {
        try await database.write { db in
            let deleted = try db.change(
                "DELETE FROM credential WHERE public_id = ?1 AND app = ?2", credentialId, app.rawValue)
            if deleted == 0 { throw DomainError.notFound }
        }
    }

    private static func place(_ host: String, _ port: Int) -> String { "\(host.asciiLowercased):\(port)" }

    /// The longest realm in a key, in bytes: an entry of PostgreSQL's index has less than 2,704 bytes.
    private static let longestRealm = 1024

    /// The key that identifies a protection space. No scheme is called `long`.
    static func key(_ space: ProtectionSpace) -> String {
        let place = place(space.host, space.port)
        let kind = "\(space.scheme)/\(space.isProxy ? "proxy/" : "")\(space.authenticationMethod.rawValue)"
        let realm = Array((space.realm ?? "").utf8)
        guard realm.count > longestRealm else { return "\(place)/\(kind)/\(space.realm ?? "")" }
        return "\(place)/long/\(kind)/\(Digest.of(realm).hexadecimal)"
    }
}
