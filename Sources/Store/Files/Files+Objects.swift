package import Core
import SQL

/// The object that a new row was to refer to has been removed since it was written or read.
package struct ObjectGone: Error {}

/// Objects in the bucket of contents.
///
/// Each key is recorded as an upload before any byte is written under it. The commit that first refers to the object
/// deletes the record, and the commit that removes the last reference inserts it again. A row of `bucket_upload`
/// therefore marks an object for removal, unless its task resumes the upload.
extension Store.Files {
    /// The bucket name of recorded uploads into the bucket of contents. No bucket that apps can name has this name.
    package static let contentsBucket = "contents"
    /// Recorded instead of an upload's id if there is an object and no upload.
    static let noUpload = ""
    /// Recorded instead of an upload's id if the parts are objects of their own.
    package static let partObjects = "parts"

    /// Whether a row refers to the object.
    func isNamed(object key: String, _ db: Connection) throws -> Bool {
        try db.exists(
            """
            SELECT 1 WHERE EXISTS (SELECT 1 FROM content WHERE object = ?1) \
            OR EXISTS (SELECT 1 FROM body_object WHERE object_key = ?1) \
            OR EXISTS (SELECT 1 FROM cached WHERE object = ?1) \
            OR EXISTS (SELECT 1 FROM set_file WHERE object = ?1)
            """, key)
    }

    /// Whether the store knows a key: a row refers to it, an upload writes it, or its removal is recorded.
    package func isKnown(object key: String) async throws -> Bool {
        try await database.read { db in
            if try self.isNamed(object: key, db) { return true }
            return try db.exists(
                "SELECT 1 FROM bucket_upload WHERE bucket = ?1 AND object_key = ?2", Self.contentsBucket,
                MultipartUpload.content(ofPart: key) ?? key)
        }
    }

    /// Whether this store refers to any object in the bucket of contents.
    package func namesObjects() async throws -> Bool {
        try await database.read { db in
            try db.exists(
                """
                SELECT 1 WHERE EXISTS (SELECT 1 FROM content WHERE object IS NOT NULL) \
                OR EXISTS (SELECT 1 FROM body_object WHERE body > 0) \
                OR EXISTS (SELECT 1 FROM cached WHERE object IS NOT NULL) \
                OR EXISTS (SELECT 1 FROM set_file WHERE object IS NOT NULL)
                """)
        }
    }

    /// Claims the removal of an unreferenced object: from now on no row can refer to it.
    ///
    /// - Returns: False if a row refers to the object, which therefore stays.
    package func claimRemoval(ofObject key: String, row: Int64) async throws -> Bool {
        try await database.write { db in
            guard try !self.isNamed(object: key, db) else { return false }
            try db.execute("UPDATE bucket_upload SET task = ?2 WHERE id = ?1", row, Self.removal)
            return true
        }
    }

    /// The task number of an object that is being removed.
    private static let removal: Int64 = -1

    /// Whether a new row may refer to an object: a row already does, or it is recorded and not being removed.
    private func mayBeNamed(object key: String, _ db: Connection) throws -> Bool {
        if try self.isNamed(object: key, db) { return true }
        let tasks = try db.all(
            "SELECT task FROM bucket_upload WHERE bucket = ?1 AND object_key = ?2", Self.contentsBucket, key
        ) { $0.integer(0) }
        return !tasks.isEmpty && !tasks.contains(Self.removal)
    }

    /// Publishes the object: deletes its record, because a row refers to it.
    func publish(object key: String, _ db: Connection) throws {
        try db.execute(
            "DELETE FROM bucket_upload WHERE bucket = ?1 AND object_key = ?2", Self.contentsBucket, key)
    }

    /// Records an object for removal, unless another row refers to it.
    func discard(object key: String, _ transaction: Transaction) throws {
        try transaction.db.execute(
            """
            INSERT INTO bucket_upload (task, bucket, object_key, upload_id, begun_at, due_at) \
            SELECT 0, CAST(?1 AS TEXT), CAST(?2 AS TEXT), CAST(?3 AS TEXT), CAST(?4 AS BIGINT), CAST(?4 AS BIGINT) \
            WHERE NOT EXISTS (SELECT 1 FROM content WHERE object = CAST(?2 AS TEXT)) \
            AND NOT EXISTS (SELECT 1 FROM body_object WHERE object_key = CAST(?2 AS TEXT)) \
            AND NOT EXISTS (SELECT 1 FROM cached WHERE object = CAST(?2 AS TEXT)) \
            AND NOT EXISTS (SELECT 1 FROM set_file WHERE object = CAST(?2 AS TEXT))
            """, Self.contentsBucket, key, Self.noUpload, transaction.now.milliseconds)
    }

    // MARK: Bodies

    func objects(ofBody id: Int64, _ db: Connection) throws -> [StoredObject] {
        try db.all("SELECT object_key, length FROM body_object WHERE body = ?1 ORDER BY position", id) { row in
            StoredObject(key: row.text("object_key"), length: row.integer("length"))
        }
    }

    /// Appends objects to those of a body.
    ///
    /// - Parameter position: The offset of the first object in the body.
    /// - Throws: ``ObjectGone`` if one of the objects has been removed or is being removed.
    func insert(_ objects: [StoredObject], ofBody id: Int64, at position: Int64, _ db: Connection) throws {
        var position = position
        for object in objects {
            guard try mayBeNamed(object: object.key, db) else { throw ObjectGone() }
            try db.execute(
                "INSERT INTO body_object (body, position, object_key, length) VALUES (?1, ?2, ?3, ?4)", id, position,
                object.key, object.length)
            try publish(object: object.key, db)
            position += object.length
        }
    }

    /// Advances a draft, or completes it if a digest is given.
    ///
    /// - Returns: `nil` if the draft no longer ends at `offset`, because another request appended to it.
    package func appendBody(
        _ publicId: String, app: AppID, at offset: Int64, _ objects: [StoredObject], digest: String?,
        _ draftDigest: DraftDigest, limit: Int64, at now: Timestamp
    ) async throws -> BodyRecord? {
        try await database.write { [documents] db in
            let count = objects.reduce(0) { $0 + $1.length }
            let id = try db.first(
                """
                UPDATE body SET length = ?4, digest = ?5, complete = ?6, expires_at = ?7, digest_document = ?8 \
                WHERE public_id = ?1 AND app = ?2 AND complete = 0 AND length = ?3 RETURNING id
                """,
                publicId, app.rawValue, offset, offset + count, digest, digest != nil,
                (now + Self.bodyRetention).milliseconds, digest == nil ? documents.encode(draftDigest) : nil
            ) { $0.integer(0) }
            guard let id else { return nil }
            try self.charge(count, to: app, limit: limit, db)
            try self.insert(objects, ofBody: id, at: offset, db)
            return try self.readBody(publicId, app, db).orNotFound()
        }
    }

    func discardObjects(ofBody id: Int64, _ transaction: Transaction) throws {
        let keys = try transaction.db.all("DELETE FROM body_object WHERE body = ?1 RETURNING object_key", id) {
            $0.text(0)
        }
        for key in keys { try discard(object: key, transaction) }
    }
}
