package import Core
import SQL

/// The bytes that a cancelled download left.
package enum KeptBytes: Hashable, Sendable {
    /// Relative to the data folder.
    case file(String)
    /// A multipart upload into the bucket of contents.
    case upload(MultipartUpload)
}

extension Store.Tasks {
    /// The retention of a cancelled download's resume data.
    package static let resumeDataPeriod = Duration.seconds(24 * 3600)

    /// Suspends a task until this node has cancelled it and kept its bytes. If the node dies before, the task resumes.
    ///
    /// - Parameter revision: The task's revision that the caller expects, or `nil`.
    /// - Throws: ``DomainError/taskCompleted``, ``DomainError/revisionMismatch``.
    package func hold(_ id: TaskID, ifRevision revision: Int64? = nil, at now: Timestamp) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            guard let live = try transaction.live(id) else { throw DomainError.taskCompleted }
            try self.check(live, hasRevision: revision, transaction.db)
            guard try self.move(live, .suspend, transaction) else { return }
            try transaction.db.execute(
                "UPDATE live SET held_by = ?2 WHERE task = ?1", id.rawValue, self.node ?? "")
        }.1
    }

    /// Resumes a task that ``hold(_:at:)`` suspended and that was not cancelled.
    package func letGoOn(_ id: TaskID, at now: Timestamp) async throws -> Aftermath {
        try await transact(at: now) { try self.letGoOn([id], $0) }.1
    }

    /// Resumes the tasks that a node held and did not cancel.
    func letGoOn(heldBy node: String, _ transaction: Transaction) throws {
        let held = try transaction.db.all("SELECT task FROM live WHERE held_by = ?1 ORDER BY task", node) {
            TaskID($0.integer(0))
        }
        try letGoOn(held, transaction)
    }

    private func letGoOn(_ tasks: [TaskID], _ transaction: Transaction) throws {
        for id in tasks {
            let isHeld = try transaction.db.change(
                "UPDATE live SET held_by = NULL WHERE task = ?1 AND held_by IS NOT NULL", id.rawValue)
            guard isHeld > 0, let live = try transaction.live(id), live.life.phase == .suspended else { continue }
            _ = try carryOut(.resume, live, transaction)
        }
    }

    /// Cancels a task and keeps its bytes, which a new task can resume. Until then they count as stored. An upload is
    /// aborted when the resume data expires.
    ///
    /// - Throws: ``DomainError/taskCompleted``.
    package func cancel(
        _ id: TaskID, keeping kept: KeptBytes, length: Int64, nonce: [UInt8], at now: Timestamp
    ) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            guard let live = try transaction.live(id) else { throw DomainError.taskCompleted }
            let app = try transaction.session(live.session).app
            try self.keep(kept, length: length, nonce: nonce, app: app, on: self.node, transaction)
            _ = try self.carryOut(.cancel(reason: nil), live, transaction)
        }.1
    }

    /// Stores resume data.
    ///
    /// - Parameter owner: The node whose disk has the file.
    private func keep(
        _ kept: KeptBytes, length: Int64, nonce: [UInt8], app: AppID, on owner: String?, _ transaction: Transaction
    ) throws {
        let (db, expiresAt) = (transaction.db, (transaction.now + Self.resumeDataPeriod).milliseconds)
        switch kept {
        case .file(let file):
            try db.execute(
                """
                INSERT INTO resume_data (nonce, app, file, length, expires_at, node) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                """, nonce, app.rawValue, file, length, expiresAt, owner)
        case .upload(let upload):
            try db.execute(
                """
                INSERT INTO resume_data (nonce, app, file, length, expires_at, upload, upload_document) \
                VALUES (?1, ?2, '', ?3, ?4, ?5, ?6)
                """, nonce, app.rawValue, length, expiresAt, upload.row, documents.encode(upload))
            try db.execute("UPDATE bucket_upload SET task = 0, due_at = ?2 WHERE id = ?1", upload.row, expiresAt)
        }
        transaction.addStored(length, app: app)
    }

    /// Keeps the bytes of a failed or cancelled download for its retry, if they can be resumed and fit the app's quota.
    /// They count as stored, like resume data.
    func keepForRetry(
        _ live: LiveTask, _ outcome: Outcome, _ progress: TaskProgress, _ session: SessionEntry,
        _ transaction: Transaction
    ) throws {
        let db = transaction.db
        let length = progress.keptOffset
        guard outcome == .failed || outcome == .cancelled, live.kind == .download, progress.kept.point != nil,
            length > 0,
            session.state == .active, !session.isForgotten
        else { return }
        // Resume data may keep the same bytes already: then the app decides which task resumes them. Or a task that shares
        // the transfer has them.
        let file = progress.adoptedFile ?? Self.partialFile(live.id)
        guard try !isKept(file, but: live.id, db) else { return }
        guard try hasQuota(for: length, session.app, transaction) else { return }
        var kept = KeptBytes.file(file)
        if let upload = progress.kept.parts {
            // A transfer in flight may still add parts.
            guard live.life.phase != .active || outcome == .failed, !upload.parts.isEmpty, upload.whole == nil else {
                return
            }
            // An upload into a bucket that the app named is aborted instead.
            guard
                try db.exists(
                    "SELECT 1 FROM bucket_upload WHERE id = ?1 AND task = ?2 AND bucket = ?3", upload.row,
                    live.id.rawValue, Store.Files.contentsBucket)
            else { return }
            kept = .upload(upload)
        }
        try keep(
            kept, length: length, nonce: Self.nonceOfRetry(live.id), app: session.app, on: progress.node ?? node,
            transaction)
    }

    /// Keeps all bytes that a transfer had written when its task was cancelled or failed by a deadline, for the task's
    /// retry. The commit that ended the task knew the recorded bytes only.
    ///
    /// - Parameter progress: The last progress of the transfer.
    func keepForRetry(_ progress: TaskProgress, of task: TaskID, _ transaction: Transaction) throws {
        let (db, length, file) = (transaction.db, progress.keptOffset, Self.partialFile(task))
        guard progress.kept.point != nil, progress.kept.parts == nil, progress.adoptedFile == nil else { return }
        guard let ended = try read(task, db), ended.outcome == .failed || ended.outcome == .cancelled,
            ended.specification.kind == .download, var result = ended.result, length > result.progress.keptOffset,
            let session = try transaction.sessionIfPresent(ended.session), session.state == .active,
            !session.isForgotten
        else { return }
        let nonce = Self.nonceOfRetry(task)
        let kept = try db.first("SELECT spent, length FROM resume_data WHERE nonce = ?1", nonce) {
            (isSpent: $0.bool("spent"), length: $0.integer("length"))
        }
        let more = length - (kept?.length ?? 0)
        guard kept?.isSpent != true, try kept != nil || !isKept(file, but: task, db),
            try hasQuota(for: more, session.app, transaction)
        else { return }
        if kept == nil {
            try keep(
                .file(file), length: length, nonce: nonce, app: session.app, on: progress.node ?? node, transaction)
        } else {
            try db.execute("UPDATE resume_data SET length = ?2 WHERE nonce = ?1", nonce, length)
            transaction.addStored(more, app: session.app)
        }
        result.progress.kept = progress.kept
        try db.execute("UPDATE task SET result_document = ?2 WHERE id = ?1", task.rawValue, documents.encode(result))
    }

    /// Whether an app may store so many bytes more.
    private func hasQuota(for length: Int64, _ app: AppID, _ transaction: Transaction) throws -> Bool {
        guard let limits = try store.apps.read(app, transaction.db)?.limits else { return false }
        let stored = try usage(of: app, transaction.db).stored + transaction.stored(of: app)
        return stored + length <= limits.maximumStoredBytes
    }

    /// The key of the bytes kept for a task's retry. No client can name it, because resume data is sealed.
    package static func nonceOfRetry(_ task: TaskID) -> [UInt8] { Array("retry/\(task.rawValue)".utf8) }

    /// Removes the bytes kept for the retry of a deleted task.
    func removeKeptForRetry(_ task: TaskID, _ transaction: Transaction) throws {
        try remove(resumeData: Self.nonceOfRetry(task), transaction)
    }

    /// Assigns the upload kept by resume data to a new task.
    func adopt(_ upload: MultipartUpload, for task: TaskID, _ db: Connection) throws {
        try db.execute(
            "UPDATE bucket_upload SET task = ?2, due_at = begun_at WHERE id = ?1", upload.row, task.rawValue)
    }

    /// Whether resume data keeps a file, or another task than `task` will adopt it.
    func isKept(_ file: String, but task: TaskID, _ db: Connection) throws -> Bool {
        try db.exists(
            """
            SELECT 1 WHERE EXISTS (SELECT 1 FROM resume_data WHERE file = ?1 AND spent = 0) \
            OR EXISTS (SELECT 1 FROM live WHERE adopts = ?1 AND task <> ?2)
            """, file, task.rawValue)
    }

    /// Restarts the downloads that have not adopted a partial file yet, before `task` overwrites the file that it passed
    /// to them.
    package func withdraw(_ file: String, of task: TaskID, at now: Timestamp) async throws {
        _ = try await transact(at: now) { transaction in
            let adopters = try transaction.db.all(
                "SELECT task FROM live WHERE adopts = ?1 AND task <> ?2", file, task.rawValue
            ) { TaskID($0.integer(0)) }
            for adopter in adopters {
                guard let live = try transaction.live(adopter) else { continue }
                var progress = try self.progress(of: live)
                progress.restartCause = "partialFileMissing"
                progress.forgetBytes()
                progress.adoptedFile = nil
                try self.save(progress, of: live.id, transaction.db)
            }
        }
    }

    /// The bytes that resume data refers to. `nil` if they are gone, so that the download restarts.
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

    /// Spends resume data for a new task: it can be used once. The row of that task names the file from then on.
    ///
    /// - Parameters:
    ///   - index: The position of the task, for errors.
    ///   - adopted: The file that the task adopts. A file at another node is removed.
    /// - Throws: ``DomainError/resumeDataSpent(index:)``.
    func spend(
        _ nonce: [UInt8], index: Int, app: AppID, adopting adopted: String?, _ transaction: Transaction
    ) throws {
        let kept = try transaction.db.first(
            "SELECT spent, length, file, node FROM resume_data WHERE nonce = ?1 AND app = ?2", nonce, app.rawValue
        ) { row in
            (
                isSpent: row.bool("spent"), length: row.integer("length"), file: row.text("file"),
                node: row.textOrNil("node")
            )
        }
        guard let kept else { return }
        if kept.isSpent { throw DomainError.resumeDataSpent(index: index) }
        try transaction.db.execute("UPDATE resume_data SET spent = 1, file = '' WHERE nonce = ?1", nonce)
        if !kept.file.isEmpty, kept.file != adopted { try store.files.discard(kept.file, on: kept.node, transaction) }
        transaction.addStored(-kept.length, app: app)
    }

    /// Deletes resume data at its expiry. Spent resume data has the same retention.
    func dropResumeData(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        let wanted = max(1, rows / Self.rowsOfResumeData)
        let due = try transaction.db.all(
            "SELECT nonce FROM resume_data WHERE expires_at <= ?1 LIMIT ?2", transaction.now.milliseconds, wanted
        ) { $0.blob(0) }
        for nonce in due { try remove(resumeData: nonce, transaction) }
        return due.count == wanted
    }

    /// Removes resume data of a deleted app, with the bytes that it keeps.
    ///
    /// - Returns: The approximate number of rows, about `limit` at most.
    func removeResumeData(of app: AppID, _ limit: Int, _ transaction: Transaction) throws -> Int {
        let some = try transaction.db.all(
            "SELECT nonce FROM resume_data WHERE app = ?1 LIMIT ?2", app.rawValue,
            max(1, limit / Self.rowsOfResumeData)
        ) { $0.blob(0) }
        for nonce in some { try remove(resumeData: nonce, transaction) }
        return some.count * Self.rowsOfResumeData
    }

    /// Its own row, and the row of its file or upload.
    private static let rowsOfResumeData = 2

    /// Removes resume data, and the bytes that it keeps unless a task has adopted them.
    private func remove(resumeData nonce: [UInt8], _ transaction: Transaction) throws {
        let db = transaction.db
        let kept = try db.first(
            "DELETE FROM resume_data WHERE nonce = ?1 RETURNING app, file, upload, spent, length, node", nonce
        ) { row in
            (
                app: AppID(row.integer("app")), file: row.text("file"), upload: row.integerOrNil("upload"),
                isSpent: row.bool("spent"), length: row.integer("length"), node: row.textOrNil("node")
            )
        }
        guard let kept, !kept.isSpent else { return }
        transaction.addStored(-kept.length, app: kept.app)
        if let upload = kept.upload {
            try db.execute(
                "UPDATE bucket_upload SET due_at = ?2 WHERE id = ?1 AND due_at > ?2", upload,
                transaction.now.milliseconds)
        } else {
            try store.files.discard(kept.file, on: kept.node, transaction)
        }
    }
}
