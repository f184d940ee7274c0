package import Core
import SQL

/// An orphaned multipart upload, or an object of the bucket of contents that no row refers to.
package struct UselessUpload: Hashable, Sendable {
    package var row: Int64
    package var key: String
    /// `nil` if the response to the creation of the upload was never recorded.
    package var id: String?
    package var begunAt: Timestamp
    /// Whether the row stands for an object, so that there is no upload to abort.
    package var isObject = false
    /// Whether the parts are objects of their own.
    package var hasPartObjects = false
    /// The number of failed attempts to abort the upload.
    package var attempts: Int
}

/// A row is written before an upload begins, and removed after it ended. The newest row of an unfinished task is
/// needed. All other uploads are to be aborted.
extension Store.Files {
    /// Records that an upload is about to begin.
    ///
    /// - Parameters:
    ///   - task: 0 for an upload that no task resumes.
    ///   - time: The end of the period in which the upload is needed even without a task.
    /// - Returns: The number of the row.
    package func beginUpload(
        of task: TaskID, bucket: String, key: String, at now: Timestamp, until time: Timestamp? = nil
    ) async throws -> Int64 {
        try await database.write { db in
            try db.first(
                """
                INSERT INTO bucket_upload (task, bucket, object_key, begun_at, due_at) VALUES (?1, ?2, ?3, ?4, ?5) \
                RETURNING id
                """, task.rawValue, bucket, key, now.milliseconds, (time ?? now).milliseconds
            ) { $0.integer(0) } ?? 0
        }
    }

    /// Records the id that the bucket gave to an upload.
    ///
    /// - Parameters:
    ///   - bucket: For an upload whose row was removed because no upload was found: a new row is inserted.
    ///   - key: Its object's key, for the same purpose.
    /// - Returns: False if the upload is to be aborted: its task is completed, or the row was gone.
    package func note(
        upload id: String, row: Int64, bucket: String, key: String, at now: Timestamp
    ) async throws -> Bool {
        try await database.write { db in
            let isNoted = try db.change("UPDATE bucket_upload SET upload_id = ?2 WHERE id = ?1", row, id) > 0
            guard isNoted else {
                try db.execute(
                    """
                    INSERT INTO bucket_upload (task, bucket, object_key, upload_id, begun_at, due_at) \
                    VALUES (0, ?1, ?2, ?3, ?4, ?4)
                    """, bucket, key, id, now.milliseconds)
                return false
            }
            return try db.exists(
                """
                SELECT 1 FROM bucket_upload WHERE id = ?1 \
                AND (task = 0 OR EXISTS (SELECT 1 FROM live WHERE live.task = bucket_upload.task))
                """, row)
        }
    }

    /// The longest time after which an aborted request may still take effect.
    package static let longestDelay = Duration.seconds(30)

    /// Records the object of a task that was completed meanwhile for removal: the object may be in the bucket of
    /// contents or appear there soon.
    package func noteLate(object key: String, at now: Timestamp) async throws {
        try await database.write { db in try self.noteLate(object: key, db, at: now) }
    }

    private func noteLate(object key: String, _ db: Connection, at now: Timestamp) throws {
        try db.execute(
            """
            INSERT INTO bucket_upload (task, bucket, object_key, upload_id, begun_at, due_at) \
            VALUES (0, ?1, ?2, ?3, ?4, ?5)
            """, Self.contentsBucket, key, Self.noUpload, now.milliseconds, (now + Self.longestDelay).milliseconds)
    }

    /// Has the bytes of a failed upload into the bucket of contents removed.
    ///
    /// The row is gone if the upload seemed abandoned, after a jump of the clock for example. Its object may have been
    /// created since, and gets a new row.
    package func abandonUpload(row: Int64, of key: String, at now: Timestamp) async throws {
        try await database.write { db in
            let isRecorded = try db.change(
                "UPDATE bucket_upload SET due_at = ?2 WHERE id = ?1", row, now.milliseconds)
            if isRecorded == 0 { try self.noteLate(object: key, db, at: now) }
        }
    }

    /// Sets the end of the period in which uploads without a task are needed.
    package func extendUploads(rows: [Int64], until time: Timestamp) async throws {
        try await database.write { db in
            for row in rows {
                try db.execute("UPDATE bucket_upload SET due_at = ?2 WHERE id = ?1", row, time.milliseconds)
            }
        }
    }

    /// Deletes the row of an ended upload. A row with a newly recorded id stays.
    ///
    /// - Parameter id: The upload's id as it was read, `nil` if it was unknown.
    package func forgetUpload(row: Int64, id: String?) async throws {
        try await database.write { db in
            try db.execute(
                "DELETE FROM bucket_upload WHERE id = ?1 AND COALESCE(upload_id, '') = ?2", row, id ?? "")
        }
    }

    /// Postpones the next attempt to abort an upload.
    package func postponeUpload(row: Int64, until time: Timestamp) async throws {
        try await database.write { db in
            try db.execute(
                "UPDATE bucket_upload SET due_at = ?2, attempts = attempts + 1 WHERE id = ?1", row, time.milliseconds)
        }
    }

    /// Uploads of a bucket that are to be aborted, the earliest due first.
    package func uselessUploads(
        of bucket: String, at now: Timestamp, limit: Int
    ) async throws -> [UselessUpload] {
        try await database.read { db in
            try db.all(
                """
                SELECT id, object_key, upload_id, begun_at, attempts FROM bucket_upload \
                WHERE bucket = ?3 AND due_at <= ?1 AND (NOT EXISTS (SELECT 1 FROM live WHERE live.task = bucket_upload.task) \
                OR EXISTS (SELECT 1 FROM bucket_upload AS later WHERE later.task = bucket_upload.task \
                AND later.id > bucket_upload.id)) ORDER BY due_at, id LIMIT ?2
                """, now.milliseconds, limit, bucket
            ) { row in
                let id = row.textOrNil("upload_id")
                return UselessUpload(
                    row: row.integer("id"), key: row.text("object_key"), id: id, begunAt: row.time("begun_at"),
                    isObject: id == Self.noUpload, hasPartObjects: id == Self.partObjects, attempts: row.int("attempts")
                )
            }
        }
    }

    /// The recorded ids of the uploads of an object. `nil` if another needed upload than the one of `row` has begun and
    /// its id is not recorded yet.
    package func uploads(of key: String, bucket: String, besides row: Int64, at now: Timestamp) async throws -> Set<
        String
    >? {
        try await database.read { db in
            let noted = try db.all(
                """
                SELECT id, upload_id, due_at > ?3 AND attempts = 0 \
                OR EXISTS (SELECT 1 FROM live WHERE live.task = bucket_upload.task) AS needed FROM bucket_upload WHERE bucket = ?1 AND object_key = ?2
                """, bucket, key, now.milliseconds
            ) { (row: $0.integer("id"), id: $0.textOrNil("upload_id"), isNeeded: $0.bool("needed")) }
            if noted.contains(where: { $0.row != row && $0.id == nil && $0.isNeeded }) { return nil }
            return Set(noted.compactMap(\.id))
        }
    }
}
