package import Core
import Formats
import SQL

/// The parts of an origin's response that a manifest shows, and that a later version asks the origin to confirm.
struct SetFileResponse: Shape {
    var entityTag: String?
    var lastModified: String?
    /// Whether the date is a strong validator, and the response has no tag.
    var hasStrongDate = false
    var mimeType: String?
    var fetchedAt = Timestamp(milliseconds: 0)

    init() {}

    mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("entityTag", &entityTag)
        members.optional("lastModified", &lastModified)
        members.sparse("hasStrongDate", &hasStrongDate, unless: false)
        members.optional("mimeType", &mimeType)
        members.member("fetchedAt", &fetchedAt)
    }

    /// - Parameter result: Of the task that fetched the file.
    init(_ result: TaskResult, at now: Timestamp) {
        let headers = result.response?.headers ?? HTTPFields()
        entityTag = headers.single("ETag")
        lastModified = headers.single("Last-Modified")
        mimeType = result.response?.mimeType
        fetchedAt = now
        // The Date of a stored response may be that of a 304, which came later than the bytes.
        let isOwn = result.cacheStatus == nil || result.cacheStatus == .stored
        if isOwn, !headers.contains("ETag"), let receivedAt = result.progress.transactions.last?.responseStartDate {
            hasStrongDate = headers.hasStrongDate(receivedAt: receivedAt)
        }
    }

    var validator: SetFileValidator? {
        if let entityTag, entityTag.isStrongEntityTag { return SetFileValidator(entityTag: entityTag) }
        return hasStrongDate ? lastModified.map { SetFileValidator(lastModified: $0) } : nil
    }
}

/// A strong validator of a file in a kept version, for the origin to confirm: the tag, or else the date.
package struct SetFileValidator: Hashable, Sendable {
    package var entityTag: String?
    package var lastModified: String?

    /// Whether a task sends this validator.
    fileprivate func isSent(by task: TaskSpecification) -> Bool {
        func isSame(_ own: String?, _ sent: String?) -> Bool { (own ?? "").utf8.elementsEqual((sent ?? "").utf8) }
        return isSame(entityTag, task.ifNoneMatch) && isSame(lastModified, task.ifModifiedSince)
    }
}

/// A listed file that no earlier version has, for which a task is to be created.
package struct WantedSetFile: Sendable {
    package let file: SetFile
    /// That of the same file in a kept version.
    package let validator: SetFileValidator?
}

extension Store.Sets {
    /// Listed files of a version in the order of their paths, without those whose bytes the app has already: these are
    /// kept at once.
    ///
    /// - Parameter revalidates: Whether the origin may confirm a file of a kept version.
    /// - Returns: No files if none is listed any more.
    package func takeListed(
        _ version: SetVersionID, revalidates: Bool, limit: Int, at now: Timestamp
    ) async throws -> (wanted: [WantedSetFile], reused: Int, aftermath: Aftermath) {
        let ((wanted, reused), aftermath) = try await transact(at: now) { transaction -> ([WantedSetFile], Int) in
            let db = transaction.db
            guard let row = try self.row(version, db), row.version.state == .fetching else { return ([], 0) }
            let context = SetVersionDocument.context(row.version.publicId)
            let listed = try db.all(
                "SELECT app, file_document FROM set_file WHERE version = ?1 AND state = 'listed' ORDER BY path LIMIT ?2",
                version.rawValue, limit
            ) {
                (
                    app: AppID($0.integer("app")),
                    file: try documents.decode(SetFile.self, $0.blob("file_document"), sealedAs: context)
                )
            }
            let files = listed.map(\.file)
            guard let app = listed.first?.app else { return ([], 0) }
            let known = try self.known(files, of: app, db)
            let rest = zip(files, known).filter { $1 == nil }.map(\.0)
            let validators =
                revalidates ? try self.validators(of: rest.map(\.path), in: version, db) : rest.map { _ in nil }
            for case (let file, let bytes?) in zip(files, known) {
                let fetch = SetFetch(version: version, path: file.path, length: file.length)
                try self.keep(bytes, at: file.path, fetch, app, isReused: true, transaction)
            }
            return (zip(rest, validators).map(WantedSetFile.init), files.count - rest.count)
        }
        return (wanted, reused, aftermath)
    }

    /// The bytes that an app has of listed files: those of a kept file of any set, of a content, or of the cache.
    private func known(_ files: [SetFile], of app: AppID, _ db: Connection) throws -> [SetFileBytes?] {
        let found = try db.allOfEach(
            """
            SELECT length, algorithm, digest, response_document, bytes, file, object FROM set_file \
            WHERE app = ?1 AND listed = ?2 AND state = 'kept' \
            UNION ALL SELECT length, algorithm, digest, response_document, bytes, file, object FROM set_file \
            WHERE app = ?1 AND digest = ?3 AND state = 'kept' AND algorithm = 'sha-256' \
            UNION ALL SELECT length, 'sha-256', digest, NULL, NULL, file, object \
            FROM content WHERE app = ?1 AND digest = ?3 AND (file IS NOT NULL OR object IS NOT NULL) \
            UNION ALL SELECT length, 'sha-256', digest, NULL, NULL, file, object \
            FROM cached WHERE app = ?1 AND digest = ?3 AND (file IS NOT NULL OR object IS NOT NULL) \
            UNION ALL SELECT length, 'sha-256', digest, NULL, bytes, NULL, NULL \
            FROM content WHERE app = ?1 AND digest = ?3 AND indexed = 1 \
            UNION ALL SELECT length, 'sha-256', digest, NULL, bytes, NULL, NULL \
            FROM cached WHERE app = ?1 AND digest = ?3 AND bytes IS NOT NULL LIMIT 1
            """,
            files.map { file in
                let digest = file.expectedDigest
                return [app.rawValue, digest.map(Self.listed), digest?.algorithm == .sha256 ? digest?.value : nil]
            }
        ) { try SetFileBytes($0) }
        return zip(files, found).map { file, found in
            found.first.flatMap { file.length == nil || file.length == $0.length ? $0 : nil }
        }
    }

    /// The strong validators of the files with the same paths and requests in the newest kept version.
    private func validators(
        of paths: [String], in version: SetVersionID, _ db: Connection
    ) throws -> [SetFileValidator?] {
        try predecessors(of: paths, in: version, withBytes: false, db).map { $0?.validator }
    }

    /// The kept file that the origin confirmed to a task; `nil` if the newest kept version has another one by now.
    private func confirmedFile(_ path: String, _ live: LiveTask, _ fetch: SetFetch, _ db: Connection) throws
        -> SetFileBytes?
    {
        guard let task = try store.tasks.read(live.id, db)?.specification,
            let kept = try predecessors(of: [path], in: fetch.version, withBytes: true, db)[0],
            kept.validator.isSent(by: task)
        else { return nil }
        return kept.bytes
    }

    /// For each path of a version the file of the newest published version of the set that the origin can confirm: by
    /// the same request, with a strong validator.
    ///
    /// - Parameter withBytes: Whether small files come with their bytes, which need memory for each path.
    private func predecessors(
        of paths: [String], in version: SetVersionID, withBytes: Bool, _ db: Connection
    ) throws -> [(bytes: SetFileBytes, validator: SetFileValidator)?] {
        try db.allOfEach(
            """
            SELECT old.length, old.algorithm, old.digest, old.response_document, old.file, old.object, \
            CASE WHEN CAST(?3 AS BIGINT) = 1 THEN old.bytes END AS bytes, old.file_document AS old_document, v.public_id AS old_version, new.file_document AS new_document, \
            n.public_id AS new_version FROM set_file new JOIN set_version n ON n.id = new.version \
            JOIN set_version v ON v.file_set = n.file_set AND v.state = 'published' AND v.removing = 0 \
            JOIN set_file old ON old.version = v.id AND old.path = new.path AND old.state = 'kept' \
            WHERE new.version = ?1 AND new.path = ?2 ORDER BY v.id DESC LIMIT 1
            """, paths.map { [version.rawValue, $0, withBytes] }
        ) { row -> (bytes: SetFileBytes, validator: SetFileValidator)? in
            func file(_ column: Row.Column, _ version: Row.Column) throws -> SetFile {
                let context = SetVersionDocument.context(row.text(version))
                return try self.documents.decode(SetFile.self, row.blob(column), sealedAs: context)
            }
            let bytes = try SetFileBytes(row)
            let response = try bytes.response.map { try self.documents.decode(SetFileResponse.self, $0) }
            guard let validator = response?.validator,
                try file("old_document", "old_version").request == file("new_document", "new_version").request
            else { return nil }
            return (bytes, validator)
        }.map { $0.first ?? nil }
    }

    /// Creates the tasks of listed files, all or none, or the task that fetches a list.
    ///
    /// - Parameter tasks: Each with the path of its file; `nil` for the list.
    /// - Throws: As ``Store/Tasks/create(_:in:limit:storedLimit:at:recording:)``.
    package func createTasks(
        _ tasks: [(path: String?, task: NewTask)], of version: SetVersionID, in session: SessionID, limit: Int64,
        storedLimit: Int64, at now: Timestamp
    ) async throws -> ([CreatedTask], Aftermath) {
        try await transact(at: now) { transaction in
            let db = transaction.db
            guard let row = try self.row(version, db), row.version.state.isInFlight else { return [] }
            var new = tasks.map(\.task)
            for index in new.indices { new[index].setVersion = version }
            let created = try store.tasks.create(
                new, in: session, limit: limit, storedLimit: storedLimit, transaction)
            for (item, task) in zip(created, tasks) {
                if let path = task.path {
                    try db.execute(
                        """
                        UPDATE set_file SET state = 'fetching', task = ?3, failure = NULL \
                        WHERE version = ?1 AND path = ?2 AND state = 'listed'
                        """, version.rawValue, path, item.task.id.rawValue)
                    // The app may have lost the right to run it in the same commit.
                    if item.task.state == .completed {
                        try self.fail(path, of: version, "The task was cancelled.", transaction)
                    }
                } else {
                    try db.execute(
                        "UPDATE set_version SET list_task = ?2 WHERE id = ?1", version.rawValue, item.task.id.rawValue)
                }
            }
            return created
        }
    }

    // MARK: Ends of tasks

    /// Records the end of a task that fetched a file or a list. A file that was fetched or failed costs one row; all
    /// files of a commit together cost that of their version.
    func settle(
        _ fetch: SetFetch, of live: LiveTask, _ outcome: Outcome, _ result: TaskResult, _ content: NewContent?,
        _ place: StoredPlace?, _ transaction: Transaction
    ) throws {
        guard let path = fetch.path else { return try transaction.schedule(fetch.version) }
        let app = try transaction.session(live.session).app
        switch outcome {
        case .succeeded:
            guard let content, let place else { fallthrough }
            let response = SetFileResponse(result, at: transaction.now)
            let bytes = SetFileBytes(
                length: content.length, digest: content.digest, response: documents.encode(response), place: place)
            let isReused = result.cacheStatus == .hit || result.cacheStatus == .revalidated
            try keep(bytes, at: path, fetch, app, isReused: isReused, transaction)
        case .notModified:
            if let bytes = try confirmedFile(path, live, fetch, transaction.db) {
                try keep(bytes, at: path, fetch, app, isReused: true, transaction)
            } else {
                // The version that had the file was removed or replaced in the meantime.
                try transaction.db.execute(
                    "UPDATE set_file SET state = 'listed', task = NULL WHERE version = ?1 AND path = ?2",
                    fetch.version.rawValue, path)
                try transaction.schedule(fetch.version)
            }
        case .httpError, .failed, .cancelled:
            let status = result.response.map { "The origin answered \($0.statusCode)." }
            let detail = result.error?.localizedDescription ?? status ?? "The task was cancelled."
            try fail(path, of: fetch.version, detail, transaction)
        }
    }

    /// Refers to the bytes of a file, which is fetched or reused.
    private func keep(
        _ bytes: SetFileBytes, at path: String, _ fetch: SetFetch, _ app: AppID, isReused: Bool,
        _ transaction: Transaction
    ) throws {
        if let listed = fetch.length, listed != bytes.length {
            return try fail(
                path, of: fetch.version, "The file has \(bytes.length) bytes instead of \(listed).", transaction)
        }
        try transaction.db.execute(
            """
            UPDATE set_file SET state = 'kept', length = ?3, algorithm = ?4, digest = ?5, response_document = ?6, \
            reused = ?7, bytes = ?8, file = ?9, object = ?10 WHERE version = ?1 AND path = ?2
            """,
            fetch.version.rawValue, path, bytes.length, bytes.digest.algorithm.rawValue, bytes.digest.value,
            bytes.response, isReused, bytes.place.bytes, bytes.place.file, bytes.place.object)
        transaction.addStored(bytes.length, app: app)
        if bytes.place.isShared { transaction.change(cacheOf: app) { $0.sharedBytes += bytes.length } }
        transaction.change(fetch.version) { change in
            change.ended += 1
            change.count(1, isReused: isReused, length: bytes.length)
            if fetch.length == nil { change.bytes += bytes.length }
        }
    }

    /// Records the failure of a file without bytes.
    private func fail(
        _ path: String, of version: SetVersionID, _ detail: String, _ transaction: Transaction
    ) throws {
        try transaction.db.execute(
            "UPDATE set_file SET state = 'failed', failure = ?3 WHERE version = ?1 AND path = ?2", version.rawValue,
            path, detail)
        transaction.change(version) { change in
            change.ended += 1
            change.failed += 1
        }
    }

    // MARK: Removal

    /// The columns of a file that its removal needs.
    private struct Removed {
        let path: String
        /// `nil` for a file that is not kept.
        let kept: (app: AppID, length: Int64, isReused: Bool, place: StoredPlace)?

        init(_ row: Row) throws {
            path = row.text("path")
            guard try row.value("state") == SetFileState.kept else {
                kept = nil
                return
            }
            kept = (
                AppID(row.integer("app")), row.integer("length"), row.bool("reused"),
                StoredPlace(file: row.textOrNil("file"), object: row.textOrNil("object"))
            )
        }
    }

    /// Records that a kept file is not the listed one, and frees its bytes.
    func refuse(_ path: String, of version: SetVersionID, _ detail: String, _ transaction: Transaction) throws {
        let db = transaction.db
        let file = try db.first(
            """
            SELECT path, app, state, length, reused, file, object FROM set_file \
            WHERE version = ?1 AND path = ?2 AND state = 'kept'
            """, version.rawValue, path
        ) { try Removed($0) }
        guard let file, let kept = file.kept else { return }
        let listed = try listedLength(of: path, version, db)
        try db.execute(
            """
            UPDATE set_file SET state = 'failed', failure = ?3, bytes = NULL, file = NULL, object = NULL, digest = NULL, \
            length = ?4 WHERE version = ?1 AND path = ?2
            """, version.rawValue, path, detail, listed)
        try free(file, of: version, transaction)
        transaction.change(version) { change in
            change.failed += 1
            if listed == nil { change.bytes -= kept.length }
        }
    }

    private func listedLength(of path: String, _ version: SetVersionID, _ db: Connection) throws -> Int64? {
        try db.first(
            """
            SELECT f.file_document, v.public_id FROM set_file f JOIN set_version v ON v.id = f.version \
            WHERE f.version = ?1 AND f.path = ?2
            """, version.rawValue, path
        ) { row in
            let context = SetVersionDocument.context(row.text("public_id"))
            return try documents.decode(SetFile.self, row.blob("file_document"), sealedAs: context).length
        } ?? nil
    }

    /// Removes files of a version, up to `limit`.
    ///
    /// - Returns: Whether there may be more.
    func dropFiles(of version: SetVersionID, _ limit: Int, _ transaction: Transaction) throws -> Bool {
        let files = try transaction.db.all(
            """
            SELECT path, app, state, length, reused, file, object FROM set_file WHERE version = ?1 \
            ORDER BY path LIMIT ?2
            """, version.rawValue, limit
        ) { try Removed($0) }
        try transaction.db.executeAll(
            "DELETE FROM set_file WHERE version = ?1 AND path = ?2", files.map { [version.rawValue, $0.path] })
        var freed: Set<StoredPlace> = []
        for file in files {
            let isFreed = file.kept.map { $0.place.isShared && !freed.insert($0.place).inserted } ?? false
            try free(file, of: version, isFreed: isFreed, transaction)
        }
        return files.count == limit
    }

    /// Frees the bytes to which the row of a file referred.
    ///
    /// - Parameter isFreed: Whether the bytes were freed for another row that is gone, too.
    private func free(
        _ file: Removed, of version: SetVersionID, isFreed: Bool = false, _ transaction: Transaction
    ) throws {
        guard let kept = file.kept else { return }
        transaction.change(version) { $0.count(-1, isReused: kept.isReused, length: kept.length) }
        transaction.addStored(-kept.length, app: kept.app)
        if isFreed { return transaction.change(cacheOf: kept.app) { $0.sharedBytes -= kept.length } }
        try store.files.release(kept.place, kept.length, of: kept.app, transaction)
    }
}

extension Transaction {
    /// Makes the next step on a version due.
    func schedule(_ version: SetVersionID) throws {
        try db.execute(
            "UPDATE set_version SET due_at = ?2, attempts = 0 WHERE id = ?1", version.rawValue, now.milliseconds)
        aftermath.hasDueSets = true
    }
}

/// Changes of a version's counters.
struct SetVersionChange {
    /// Files that are neither listed nor fetched any more.
    var ended: Int64 = 0
    var failed: Int64 = 0
    /// The lengths that were unknown before.
    var bytes: Int64 = 0
    private var fetched: (files: Int64, bytes: Int64) = (0, 0)
    private var reused: (files: Int64, bytes: Int64) = (0, 0)

    /// Counts files of one length that are kept from now on, or, negative, are not kept any more.
    mutating func count(_ files: Int64, isReused: Bool, length: Int64) {
        if isReused {
            reused = (reused.files + files, reused.bytes + files * length)
        } else {
            fetched = (fetched.files + files, fetched.bytes + files * length)
        }
    }

    /// Costs one row. With the last file of a version, its next step is due.
    func write(for version: SetVersionID, _ transaction: Transaction) throws {
        let open = try transaction.db.first(
            """
            UPDATE set_version SET open_files = open_files - ?2, failed_files = failed_files + ?3, bytes = bytes + ?4, \
            fetched_files = fetched_files + ?5, fetched_bytes = fetched_bytes + ?6, reused_files = reused_files + ?7, \
            reused_bytes = reused_bytes + ?8 WHERE id = ?1 RETURNING open_files
            """, version.rawValue, ended, failed, bytes, fetched.files, fetched.bytes, reused.files, reused.bytes
        ) { $0.integer(0) }
        if ended > 0, open == 0 { try transaction.schedule(version) }
    }
}
