package import Core
import SQL

/// What a cancelled download has left.
package enum KeptBytes: Hashable, Sendable {
    /// Relative to the data folder.
    case file(String)
    /// Into the bucket of contents.
    case upload(MultipartUpload)
}

extension Store {
    /// What a cancelled download left can be continued for this long.
    package static let resumeDataPeriod = Duration.seconds(24 * 3600)

    /// Cancels a task and keeps `file`, its partial one, so that a new task can go on with it.
    ///
    /// - Throws: ``DomainError/taskCompleted``.
    package func cancel(
        _ id: TaskID, keeping file: String, nonce: [UInt8], at now: Timestamp
    ) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            guard let live = try transaction.live(id) else { throw DomainError.taskCompleted }
            let app = try transaction.session(live.session).app
            try transaction.db.execute(
                "INSERT INTO resume_data (nonce, app, file, expires_at) VALUES (?1, ?2, ?3, ?4)", nonce, app.rawValue,
                file, (now + Self.resumeDataPeriod).milliseconds)
            _ = try self.carryOut(.cancel(reason: nil), live, transaction)
        }.1
    }

    /// Cancels a task and keeps its upload into the bucket of contents, so that a new task can go on with it. Without one
    /// it is aborted when the resume data expires.
    ///
    /// - Throws: ``DomainError/taskCompleted``.
    package func cancel(
        _ id: TaskID, keeping upload: MultipartUpload, nonce: [UInt8], at now: Timestamp
    ) async throws -> Aftermath {
        try await transact(at: now) { [documents] transaction in
            guard let live = try transaction.live(id) else { throw DomainError.taskCompleted }
            let app = try transaction.session(live.session).app
            let expiresAt = (now + Self.resumeDataPeriod).milliseconds
            try transaction.db.execute(
                """
                INSERT INTO resume_data (nonce, app, file, expires_at, upload, upload_document) \
                VALUES (?1, ?2, '', ?3, ?4, ?5)
                """, nonce, app.rawValue, expiresAt, upload.row, documents.encode(upload))
            try transaction.db.execute(
                "UPDATE bucket_upload SET task = 0, due_at = ?2 WHERE id = ?1", upload.row, expiresAt)
            _ = try self.carryOut(.cancel(reason: nil), live, transaction)
        }.1
    }

    /// Gives a new task the upload that its resume data kept.
    func adopt(_ upload: MultipartUpload, for task: TaskID, _ db: Connection) throws {
        try db.execute(
            "UPDATE bucket_upload SET task = ?2, due_at = begun_at WHERE id = ?1", upload.row, task.rawValue)
    }

    /// Whether a file is kept for resume data.
    ///
    /// - Parameter unspent: Count only what no task goes on with yet.
    func isKept(_ file: String, unspent: Bool = false, _ db: Connection) throws -> Bool {
        try db.exists("SELECT 1 FROM resume_data WHERE file = ?1 AND spent <= ?2", file, !unspent)
    }

    /// What resume data goes on with, nil where it is gone: the download begins anew then.
    package func kept(for nonce: [UInt8], app: AppID, at now: Timestamp) async throws -> KeptBytes? {
        try await database.read { [documents] db in
            try db.first(
                """
                SELECT file, upload_document FROM resume_data WHERE nonce = ?1 AND app = ?2 AND spent = 0 \
                AND expires_at > ?3
                """, nonce, app.rawValue, now.milliseconds
            ) { row in
                guard let upload = row.blobOrNil("upload_document") else { return .file(row.text("file")) }
                return .upload(try documents.decode(MultipartUpload.self, upload))
            }
        }
    }

    /// Spends resume data for a new task: it can be used once.
    ///
    /// - Throws: ``DomainError/resumeDataSpent``.
    func spend(_ nonce: [UInt8], app: AppID, _ transaction: Transaction) throws {
        let wasSpent = try transaction.db.first(
            "SELECT spent FROM resume_data WHERE nonce = ?1 AND app = ?2", nonce, app.rawValue
        ) { $0.bool(0) }
        if wasSpent == true { throw DomainError.resumeDataSpent }
        try transaction.db.execute("UPDATE resume_data SET spent = 1 WHERE nonce = ?1", nonce)
    }

    /// Drops resume data that nobody used in time. What was spent is remembered as long.
    func dropResumeData(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        let wanted = max(1, rows / 2)
        let due = try transaction.db.all(
            "SELECT nonce, file, upload, spent FROM resume_data WHERE expires_at <= ?1 LIMIT ?2",
            transaction.now.milliseconds, wanted
        ) { ($0.blob("nonce"), $0.text("file"), $0.integerOrNil("upload"), $0.bool("spent")) }
        for (nonce, file, upload, isSpent) in due {
            // An upload is due for itself.
            if !isSpent, upload == nil { try discard(file, transaction) }
            try transaction.db.execute("DELETE FROM resume_data WHERE nonce = ?1", nonce)
        }
        return due.count == wanted
    }
}
