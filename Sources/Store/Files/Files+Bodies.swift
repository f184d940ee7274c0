import Base
package import Core
import SQL

extension Store.Files {
    /// The retention of a body that no task uses.
    package static let bodyRetention = Duration.seconds(24 * 3600)

    /// Stores a body, or creates a draft.
    ///
    /// - Throws: ``DomainError/storedBytesExceeded(index:)``.
    package func addBody(
        _ publicId: String, app: AppID, storage: BodyLocation.Storage, length: Int64, digest: String?,
        mediaType: String?, isComplete: Bool, expectedLength: Int64? = nil, draftDigest: DraftDigest? = nil,
        limit: Int64, at now: Timestamp,
        recording: Recording<BodyRecord>? = nil
    ) async throws -> BodyRecord {
        try await database.write { [documents] db in
            try self.charge(length, to: app, limit: limit, db)
            var (bytes, file, objects): ([UInt8]?, String?, [StoredObject]) = (nil, nil, [])
            switch storage {
            case .bytes(let value): bytes = value
            case .file(let path): file = path
            case .objects(let value): objects = value
            }
            let id = try db.insert(
                """
                INSERT INTO body (public_id, app, complete, length, expected_length, digest, media_type, bytes, file, \
                created_at, expires_at, digest_document) \
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
                """,
                publicId, app.rawValue, isComplete, length, expectedLength, digest, mediaType, bytes, file,
                now.milliseconds, (now + Self.bodyRetention).milliseconds, draftDigest.map { documents.encode($0) })
            try self.insert(objects, ofBody: id, at: 0, db)
            guard let body = try self.readBody(publicId, app, db) else { throw DomainError.notFound }
            try recording?.record(body, documents, now, db)
            return body
        }
    }

    package func body(_ publicId: String, app: AppID) async throws -> BodyRecord {
        try await database.read { db in try self.readBody(publicId, app, db).orNotFound() }
    }

    /// Bodies and drafts of an app that count against its quota, without their bytes.
    ///
    /// A deleted body is included while a task uses it.
    package func bodies(
        of app: AppID, isComplete: Bool?, isInUse: Bool?, _ span: ListSpan = ListSpan(), after cursor: Int64,
        limit: Int
    ) async throws -> [(cursor: Int64, body: BodyRecord)] {
        try await database.read { db in
            let stretch = try span.stretch(
                after: cursor, db.positions("SELECT id, created_at FROM body WHERE id >= ?1 ORDER BY id LIMIT 1"))
            return try db.all(
                """
                SELECT id, public_id, complete, length, expected_length, digest, media_type, uses, created_at, \
                expires_at FROM body WHERE app = ?1 AND id > ?2 AND id < ?3 AND (complete = ?4 OR ?4 IS NULL) \
                AND (CASE WHEN uses > 0 THEN 1 ELSE 0 END = CAST(?5 AS BIGINT) OR ?5 IS NULL) ORDER BY id ASC LIMIT ?6
                """, app.rawValue, stretch.low, stretch.high, isComplete, isInUse, limit,
                descending: span.isDescending
            ) { row in (cursor: row.integer("id"), body: BodyRecord(row, app: app, storage: nil)) }
        }
    }

    /// Advances a draft, or completes it if a digest is given.
    ///
    /// - Throws: ``DomainError/notFound`` also if the draft has another length than `start`.
    package func advanceBody(
        _ publicId: String, app: AppID, from start: Int64, to length: Int64, digest: String?, limit: Int64,
        at now: Timestamp
    ) async throws -> BodyRecord {
        try await database.write { db in
            guard let body = try self.readBody(publicId, app, db), !body.isComplete, body.length == start else {
                throw DomainError.notFound
            }
            try self.charge(length - body.length, to: app, limit: limit, db)
            try db.execute(
                """
                UPDATE body SET length = ?2, digest = ?3, complete = ?4, expires_at = ?5 WHERE public_id = ?1
                """,
                publicId, length, digest, digest != nil, (now + Self.bodyRetention).milliseconds)
            return try self.readBody(publicId, app, db).orNotFound()
        }
    }

    /// Deletes a body. Tasks that use the body keep it until they end.
    ///
    /// - Returns: The aftermath, with the file to remove if no task uses the body.
    package func deleteBody(_ publicId: String, app: AppID, at now: Timestamp) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let id = try transaction.db.first(
                """
                UPDATE body SET expires_at = 0 WHERE public_id = ?1 AND app = ?2 AND coalesce(expires_at, 1) <> 0 \
                RETURNING id
                """, publicId, app.rawValue
            ) { $0.integer(0) }.orNotFound()
            try self.remove(body: id, transaction)
        }.1
    }

    func readBody(_ publicId: String, _ app: AppID, _ db: Connection) throws -> BodyRecord? {
        let found = try db.first(
            """
            SELECT id, public_id, complete, length, expected_length, digest, media_type, bytes, file, uses, created_at, \
            expires_at, digest_document FROM body WHERE public_id = ?1 AND app = ?2 AND coalesce(expires_at, 1) <> 0
            """, publicId, app.rawValue
        ) { row in
            var body = BodyRecord(row, app: app, storage: BodyLocation.Storage(row))
            body.draftDigest = try row.blobOrNil("digest_document").map { try documents.decode(DraftDigest.self, $0) }
            return (id: row.integer("id"), body: body)
        }
        guard var body = found?.body, let id = found?.id else { return nil }
        if body.storage == nil { body.storage = .objects(try objects(ofBody: id, db)) }
        return body
    }

    func bodyLocation(_ id: Int64, _ db: Connection) throws -> BodyLocation? {
        let found = try db.first("SELECT bytes, file, length, digest, media_type FROM body WHERE id = ?1", id) { row in
            (
                storage: BodyLocation.Storage(row), length: row.integer("length"), digest: row.text("digest"),
                mediaType: row.textOrNil("media_type")
            )
        }
        guard let found else { return nil }
        return BodyLocation(
            storage: try found.storage ?? .objects(objects(ofBody: id, db)), length: found.length, digest: found.digest,
            mediaType: found.mediaType)
    }

    /// Attaches a body to a new task and counts the use.
    ///
    /// - Throws: ``DomainError/bodyNotFound(index:)``; ``DomainError/contentNotFound(index:)`` if the content of a
    ///   relay has been removed meanwhile.
    func attach(
        _ source: NewTask.Body, index: Int, app: AppID, _ transaction: Transaction
    ) throws -> (row: Int64, publicId: String, length: Int64) {
        let db = transaction.db
        func add(
            _ publicId: String, length: Int64, _ digest: String, _ mediaType: String? = nil, bytes: [UInt8]? = nil,
            file: String? = nil
        ) throws -> (row: Int64, publicId: String, length: Int64) {
            let id = try db.insert(
                """
                INSERT INTO body (public_id, app, complete, length, digest, media_type, bytes, file, uses, created_at) \
                VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7, 1, ?8)
                """,
                publicId, app.rawValue, length, digest, mediaType, bytes, file, transaction.now.milliseconds)
            transaction.addStored(length, app: app)
            return (id, publicId, length)
        }
        switch source {
        case .stored(let publicId):
            let found = try db.first(
                """
                UPDATE body SET uses = uses + 1, expires_at = NULL WHERE public_id = ?1 AND app = ?2 AND complete = 1 \
                AND coalesce(expires_at, 1) <> 0 RETURNING id, length
                """, publicId, app.rawValue
            ) { ($0.integer("id"), $0.integer("length")) }
            guard let (row, length) = found else { throw DomainError.bodyNotFound(index: index) }
            return (row, publicId, length)
        case .bytes(let bytes, let mediaType, let publicId):
            return try add(
                publicId, length: Int64(bytes.count), Digest.of(bytes).hexadecimal, mediaType, bytes: bytes)
        case .file(let path, let length, let digest, let publicId):
            return try add(publicId, length: length, digest, file: path)
        case .objects(let objects, let digest, let mediaType, let publicId):
            let body = try add(publicId, length: objects.reduce(0) { $0 + $1.length }, digest, mediaType)
            do { try insert(objects, ofBody: body.row, at: 0, db) } catch is ObjectGone {
                throw DomainError.contentNotFound(index: index)
            }
            return body
        }
    }

    /// Attaches the body that was fetched for a task.
    ///
    /// - Returns: False if the task is completed or already has a body.
    package func attach(_ source: NewTask.Body, to id: TaskID, at now: Timestamp) async throws -> Bool {
        try await transact(at: now) { transaction in
            guard let live = try transaction.live(id), live.body == nil,
                var task = try store.tasks.read(id, transaction.db)
            else { return false }
            let body = try self.attach(source, index: 0, app: task.app, transaction)
            (task.specification.body, task.specification.bodyLength) = (body.publicId, body.length)
            try store.tasks.save(task, transaction.db)
            try transaction.db.execute("UPDATE live SET body = ?2 WHERE task = ?1", id.rawValue, body.row)
            return true
        }.0
    }

    /// Ends one use of a body. An unused body is kept for a day, or removed at once if it was deleted.
    func release(body id: Int64, _ transaction: Transaction) throws {
        let db = transaction.db
        let isDeleted = try db.first(
            "UPDATE body SET uses = uses - 1 WHERE id = ?1 AND uses > 0 RETURNING uses = 0 AND expires_at = 0", id
        ) { $0.bool(0) }
        if isDeleted == true { return try remove(body: id, transaction) }
        try db.execute(
            "UPDATE body SET expires_at = ?2 WHERE id = ?1 AND uses = 0", id,
            (transaction.now + Self.bodyRetention).milliseconds)
    }

    func remove(body id: Int64, _ transaction: Transaction) throws {
        let removed = try transaction.db.first(
            """
            DELETE FROM body WHERE id = ?1 AND uses = 0 \
            RETURNING app, length, file, bytes IS NULL AND file IS NULL AS has_objects
            """, id
        ) { (AppID($0.integer("app")), $0.integer("length"), $0.textOrNil("file"), $0.bool("has_objects")) }
        guard let (app, length, file, hasObjects) = removed else { return }
        transaction.addStored(-length, app: app)
        if let file { try discard(file, transaction) }
        if hasObjects { try discardObjects(ofBody: id, transaction) }
    }

    /// Adds stored bytes to the app's total, up to its limit.
    func charge(_ bytes: Int64, to app: AppID, limit: Int64, _ db: Connection) throws {
        let stored = try db.first(
            """
            UPDATE app SET stored_bytes = CASE WHEN stored_bytes + ?2 > 0 THEN stored_bytes + ?2 ELSE 0 END \
            WHERE id = ?1 RETURNING stored_bytes
            """, app.rawValue, bytes
        ) { $0.integer(0) }.orNotFound()
        if bytes > 0, stored > limit { throw DomainError.storedBytesExceeded(index: nil) }
    }
}

extension BodyRecord {
    init(_ row: Row, app: AppID, storage: BodyLocation.Storage?) {
        self.init(
            publicId: row.text("public_id"), app: app, isComplete: row.bool("complete"), length: row.integer("length"),
            expectedLength: row.integerOrNil("expected_length"), digest: row.textOrNil("digest"),
            mediaType: row.textOrNil("media_type"), storage: storage, uses: row.integer("uses"),
            createdAt: row.time("created_at"), expiresAt: row.timeOrNil("expires_at"))
    }
}

extension BodyLocation.Storage {
    /// The storage by the columns `file` and `bytes`; `nil` if both are null.
    init?(_ row: Row) {
        if let file = row.textOrNil("file") {
            self = .file(file)
        } else if let bytes = row.blobOrNil("bytes") {
            self = .bytes(bytes)
        } else {
            return nil
        }
    }
}
