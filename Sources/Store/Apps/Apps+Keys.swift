package import Core
import SQL

extension Store.Apps {
    package func addKey(_ key: KeyRecord, recording: Recording<KeyRecord>? = nil) async throws {
        try await database.write { [documents] db in
            guard try self.read(key.app, db) != nil else { throw DomainError.notFound }
            try Self.insert(key, db)
            try recording?.record(key, documents, key.createdAt, db)
        }
    }

    package func keys(of app: AppID) async throws -> [KeyRecord] {
        try await database.read { db in
            try db.all(
                """
                SELECT app, key_identifier, hash, scopes, created_at, expires_at FROM api_key WHERE app = ?1 \
                ORDER BY created_at, key_identifier
                """, app.rawValue, read: Self.readKey)
        }
    }

    /// The key that a bearer token names, or `nil`. Does not check the token.
    package func key(_ keyIdentifier: String) async throws -> KeyRecord? {
        try await database.read { db in
            try db.first(
                """
                SELECT app, key_identifier, hash, scopes, created_at, expires_at FROM api_key \
                WHERE key_identifier = ?1 AND EXISTS (SELECT 1 FROM app WHERE id = api_key.app)
                """, keyIdentifier, read: Self.readKey)
        }
    }

    /// - Throws: ``DomainError/notFound`` if the app has no such key.
    package func deleteKey(_ keyIdentifier: String, of app: AppID) async throws {
        try await database.write { db in
            let deleted = try db.change(
                "DELETE FROM api_key WHERE key_identifier = ?1 AND app = ?2", keyIdentifier, app.rawValue)
            if deleted == 0 { throw DomainError.notFound }
        }
    }

    static func insert(_ key: KeyRecord, _ db: Connection) throws {
        try db.execute(
            """
            INSERT INTO api_key (key_identifier, app, hash, scopes, created_at, expires_at) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            """,
            key.keyIdentifier, key.app.rawValue, key.hash, key.scopes.map(\.rawValue).joined(separator: " "),
            key.createdAt.milliseconds, key.expiresAt?.milliseconds)
    }

    private static func readKey(_ row: Row) throws -> KeyRecord {
        KeyRecord(
            app: AppID(row.integer("app")), keyIdentifier: row.text("key_identifier"), hash: row.blob("hash"),
            scopes: try row.text("scopes").split(separator: " ").map { try Scope(stored: String($0)) },
            createdAt: row.time("created_at"), expiresAt: row.timeOrNil("expires_at"))
    }

    /// The webhook secrets that sign now: the current secret first, then replaced secrets within their grace period.
    package func webhookSecrets(of app: AppID, at now: Timestamp) async throws -> [[UInt8]] {
        try await database.read { [documents] db in
            let sealed = try db.all(
                """
                SELECT secret FROM webhook_secret WHERE app = ?1 AND (expires_at IS NULL OR expires_at > ?2) \
                ORDER BY expires_at IS NULL DESC, expires_at DESC, id
                """, app.rawValue, now.milliseconds
            ) { $0.blob(0) }
            return try sealed.map { try documents.sealer.open($0, boundTo: "webhook/\(app.rawValue)") }
        }
    }

    /// Replaces the webhook secret. The old secret also signs until `previousExpiresAt`.
    package func rotateWebhookSecret(
        of app: AppID, to secret: [UInt8], previousExpiresAt: Timestamp, at now: Timestamp,
        recording: Recording<Void>? = nil
    ) async throws {
        try await database.write { [documents] db in
            try db.execute(
                "UPDATE webhook_secret SET expires_at = ?2 WHERE app = ?1 AND expires_at IS NULL",
                app.rawValue, previousExpiresAt.milliseconds)
            try db.execute(
                "DELETE FROM webhook_secret WHERE app = ?1 AND expires_at <= ?2", app.rawValue, now.milliseconds)
            try db.execute(
                "INSERT INTO webhook_secret (app, secret, created_at) VALUES (?1, ?2, ?3)",
                app.rawValue, documents.sealer.seal(secret, boundTo: "webhook/\(app.rawValue)"), now.milliseconds)
            try recording?.record((), documents, now, db)
        }
    }
    /// Deletes the replaced webhook secrets that still sign.
    package func revokeReplacedWebhookSecrets(of app: AppID) async throws {
        try await database.write { db in
            try db.execute("DELETE FROM webhook_secret WHERE app = ?1 AND expires_at IS NOT NULL", app.rawValue)
        }
    }
}
