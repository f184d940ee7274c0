package import Core
import SQL

extension Store.Apps {
    /// Adds an app with its first key and its first webhook secret.
    ///
    /// - Throws: ``DomainError/appExists``.
    package func create(
        identifier: String, webhook: WebhookSettings, backgroundRefreshStatus: BackgroundRefreshStatus,
        limits: AppLimits, key: KeyRecord, webhookSecret: [UInt8], at now: Timestamp,
        recording: Recording<AppRecord>? = nil
    ) async throws -> AppRecord {
        try await database.write { [documents] db in
            if try Self.appID(identifier, db) != nil { throw DomainError.appExists }
            let id = try db.insert(
                """
                INSERT INTO app (identifier, webhook_document, refresh_status, limits_document, created_at) \
                VALUES (?1, ?2, ?3, ?4, ?5)
                """,
                identifier, documents.encode(webhook), backgroundRefreshStatus.rawValue,
                documents.encode(limits), now.milliseconds)
            let app = AppID(id)
            var key = key
            key.app = app
            try Self.insert(key, db)
            try db.execute(
                "INSERT INTO webhook_secret (app, secret, created_at) VALUES (?1, ?2, ?3)",
                app.rawValue, documents.sealer.seal(webhookSecret, boundTo: "webhook/\(app.rawValue)"),
                now.milliseconds)
            guard let record = try self.read(app, db) else { throw DomainError.notFound }
            try recording?.record(record, documents, now, db)
            return record
        }
    }

    package func read(_ id: AppID) async throws -> AppRecord {
        try await database.read { db in try self.read(id, db).orNotFound() }
    }

    package func read(identifier: String) async throws -> AppRecord {
        try await database.read { db in
            try Self.appID(identifier, db).flatMap { try self.read($0, db) }.orNotFound()
        }
    }

    /// Up to `limit` apps after a cursor.
    package func list(
        _ span: ListSpan = ListSpan(), after cursor: Int64, limit: Int
    ) async throws -> [AppRecord] {
        try await database.read { db in
            let stretch = try span.stretch(
                after: cursor, db.positions("SELECT id, created_at FROM app WHERE id >= ?1 ORDER BY id LIMIT 1"))
            let ids = try db.all(
                "SELECT id FROM app WHERE id > ?1 AND id < ?2 ORDER BY id ASC LIMIT ?3", stretch.low, stretch.high,
                limit, descending: span.isDescending
            ) { AppID($0.integer(0)) }
            return try ids.compactMap { try self.read($0, db) }
        }
    }

    /// Deletes an app's keys, whose identifiers can be used again at once, and hides the app with its sessions from all
    /// readers. The janitor removes the other rows.
    ///
    /// - Returns: Its transfers in flight, to be stopped.
    package func delete(_ id: AppID) async throws -> [TaskID] {
        try await database.write { db in
            guard try self.read(id, db) != nil else { throw DomainError.notFound }
            let active = try db.all(
                "SELECT task FROM live WHERE app = ?1 AND stage = 'active' ORDER BY session, task", id.rawValue
            ) {
                TaskID($0.integer(0))
            }
            try db.execute("INSERT INTO deleted_app (app) VALUES (?1)", id.rawValue)
            try db.execute("DELETE FROM webhook_health WHERE app = ?1", id.rawValue)
            try db.execute("DELETE FROM refresh WHERE app = ?1", id.rawValue)
            try db.execute("DELETE FROM api_key WHERE app = ?1", id.rawValue)
            try db.execute("DELETE FROM app WHERE id = ?1", id.rawValue)
            return active
        }
    }

    /// Writes the changes of an app's row only. Launches, refresh and tasks are left to the caller.
    ///
    /// - Throws: ``DomainError/revisionMismatch``.
    func change(
        _ old: AppRecord, _ changes: AppChanges, ifRevision revision: Int64?, _ db: Connection
    ) throws -> AppRecord {
        if let revision, revision != old.revision { throw DomainError.revisionMismatch }
        var app = old
        app.webhook = changes.webhook ?? app.webhook
        app.backgroundRefreshStatus = changes.backgroundRefreshStatus ?? app.backgroundRefreshStatus
        app.limits = changes.limits ?? app.limits
        app.isForceQuit = changes.isForceQuit ?? app.isForceQuit
        if app == old { return old }
        app.revision += 1
        try db.execute(
            """
            UPDATE app SET webhook_document = ?2, refresh_status = ?3, limits_document = ?4, force_quit = ?5, \
            revision = ?6 WHERE id = ?1
            """,
            app.id.rawValue, documents.encode(app.webhook), app.backgroundRefreshStatus.rawValue,
            documents.encode(app.limits), app.isForceQuit, app.revision)
        return app
    }

    static func appID(_ identifier: String, _ db: Connection) throws -> AppID? {
        try db.first("SELECT id FROM app WHERE identifier = ?1", identifier) { AppID($0.integer(0)) }
    }

    func read(_ id: AppID, _ db: Connection) throws -> AppRecord? {
        try db.first(
            """
            SELECT identifier, webhook_document, refresh_status, force_quit, limits_document, unfinished_tasks, \
            stored_bytes, stored_bytes + coalesce((SELECT bytes - shared_bytes FROM cache WHERE app = ?1), 0) AS on_disk, \
            created_at, revision FROM app WHERE id = ?1
            """, id.rawValue
        ) { row in
            AppRecord(
                id: id, identifier: row.text("identifier"),
                webhook: try documents.decode(WebhookSettings.self, row.blob("webhook_document")),
                backgroundRefreshStatus: try row.value("refresh_status"), isForceQuit: row.bool("force_quit"),
                limits: try documents.decode(AppLimits.self, row.blob("limits_document")),
                unfinishedTasks: row.integer("unfinished_tasks"), storedBytes: row.integer("stored_bytes"),
                storedBytesOnDisk: row.integer("on_disk"),
                createdAt: row.time("created_at"), revision: row.integer("revision"))
        }
    }
}
