package import Core
import SQL

/// An orphaned multipart upload, or an object of the bucket of contents that no row refers to.
package struct UselessUpload: Hashable, Sendable {
    package var row: Int64
    package var key: String
    /// Nil where the store's answer to its beginning was never noted.
    package var id: String?
    package var begunAt: Timestamp
    /// Whether there is no upload to be aborted.
    package var isObject = false
    /// How often it could not be aborted.
    package var attempts: Int
}

/// A row is written before an upload begins, and removed when it is over. The newest one of a task that is not completed
/// is needed; all others are to be aborted.
extension Store {
    /// Notes that an upload is about to begin.
    ///
    /// - Parameters:
    ///   - task: 0 for an upload that no task goes on with.
    ///   - time: Until when it is needed all the same.
    /// - Returns: Its row.
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

    /// Notes what the store calls an upload that has begun.
    ///
    /// - Parameters:
    ///   - bucket: For an upload whose row is gone, since nothing was found that it could have begun: it gets another one.
    ///   - key: The same.
    /// - Returns: False where the upload is to be aborted: its task is completed, or the row was gone.
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

    /// How long a request that was broken off may take to have its effect all the same.
    private static let longestDelay = Duration.seconds(30)

    /// Notes an object of a task that was completed meanwhile, to be removed: it may be in the bucket of contents, or appear
    /// there soon.
    package func noteLate(object key: String, at now: Timestamp) async throws {
        try await database.write { db in
            try db.execute(
                """
                INSERT INTO bucket_upload (task, bucket, object_key, upload_id, begun_at, due_at) \
                VALUES (0, ?1, ?2, ?3, ?4, ?5)
                """, Self.contentsBucket, key, Self.noUpload, now.milliseconds,
                (now + Self.longestDelay).milliseconds)
        }
    }

    /// Whether a task is not completed, and this node has it.
    package func isHeld(_ task: TaskID) async throws -> Bool {
        try await database.read { [node] db in
            try db.exists(
                "SELECT 1 FROM live WHERE task = ?1 AND COALESCE(node, '') = ?2", task.rawValue, node ?? "")
        }
    }

    /// Whether a task is not completed.
    package func isUnfinished(_ task: TaskID) async throws -> Bool {
        try await database.read { db in try db.exists("SELECT 1 FROM live WHERE task = ?1", task.rawValue) }
    }

    /// Changes until when uploads are needed that no task goes on with.
    package func extendUploads(rows: [Int64], until time: Timestamp) async throws {
        try await database.write { db in
            for row in rows {
                try db.execute("UPDATE bucket_upload SET due_at = ?2 WHERE id = ?1", row, time.milliseconds)
            }
        }
    }

    /// Forgets an upload that is over. One whose id was noted meanwhile, which then is not over, stays.
    ///
    /// - Parameter id: As it was read; nil where it was not known.
    package func forgetUpload(row: Int64, id: String?) async throws {
        try await database.write { db in
            try db.execute(
                "DELETE FROM bucket_upload WHERE id = ?1 AND COALESCE(upload_id, '') = ?2", row, id ?? "")
        }
    }

    /// Tries again later to abort an upload.
    package func postponeUpload(row: Int64, until time: Timestamp) async throws {
        try await database.write { db in
            try db.execute(
                "UPDATE bucket_upload SET due_at = ?2, attempts = attempts + 1 WHERE id = ?1", row, time.milliseconds)
        }
    }

    /// Uploads of a bucket that are to be aborted, the first due first.
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
                    isObject: id == Self.noUpload, attempts: row.int("attempts"))
            }
        }
    }

    /// What the store calls the uploads of an object that are noted here; nil while one that is needed, besides that of
    /// `row`, has begun and its name is not noted yet.
    package func uploads(of key: String, bucket: String, besides row: Int64, at now: Timestamp) async throws -> Set<
        String
    >? {
        try await database.read { db in
            let noted = try db.all(
                """
                SELECT id, upload_id, due_at > ?3 OR EXISTS (SELECT 1 FROM live WHERE live.task = bucket_upload.task) \
                AS needed FROM bucket_upload WHERE bucket = ?1 AND object_key = ?2
                """, bucket, key, now.milliseconds
            ) { (row: $0.integer("id"), id: $0.textOrNil("upload_id"), isNeeded: $0.bool("needed")) }
            if noted.contains(where: { $0.row != row && $0.id == nil && $0.isNeeded }) { return nil }
            return Set(noted.compactMap(\.id))
        }
    }

    /// Stores what a task that is not completed has behind it, besides the commits of the scheduler.
    ///
    /// - Returns: False where the task is completed.
    package func keep(_ progress: TaskProgress, of task: TaskID) async throws -> Bool {
        try await database.write { [documents] db in
            try db.change(
                "UPDATE live SET progress_document = ?2 WHERE task = ?1", task.rawValue, documents.encode(progress))
                > 0
        }
    }
}
