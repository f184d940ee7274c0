import Base
package import Core
import Formats
import SQL

/// The parts of an origin's response that a manifest shows, and that a later version asks the origin to confirm.
struct SetFileResponse: Shape {
    var entityTag: String?
    var lastModified: String?
    var mimeType: String?
    var fetchedAt = Timestamp(milliseconds: 0)

    init() {}

    mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("entityTag", &entityTag)
        members.optional("lastModified", &lastModified)
        members.optional("mimeType", &mimeType)
        members.member("fetchedAt", &fetchedAt)
    }
}

/// A listed file that no earlier version has, for which a task is to be created.
package struct WantedSetFile: Sendable {
    package let file: SetFile
    /// The strong entity tag of the same file in a kept version, for the origin to confirm.
    package let entityTag: String?
}

/// A kept file with its bytes.
package struct KeptSetFile: Sendable {
    package let file: SetManifestFile
    package let storage: BodyLocation.Storage

    /// The name of the bytes in the cache of huggingface_hub: the listed digest.
    package var blobName: String { file.expectedDigest?.value ?? file.digest.value }
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
            let listed = try db.all(
                """
                SELECT file_document, listed FROM set_file WHERE version = ?1 AND state = 'listed' ORDER BY path LIMIT ?2
                """, version.rawValue, limit
            ) { ($0.blob("file_document"), $0.textOrNil("listed")) }
            var (wanted, reused): ([WantedSetFile], Int) = ([], 0)
            for (document, digest) in listed {
                let file = try documents.decode(
                    SetFile.self, document, sealedAs: SetVersionDocument.context(row.version.publicId))
                if let digest, try self.reuse(digest, for: file, of: row, transaction) {
                    reused += 1
                } else {
                    let tag = revalidates ? try self.keptTag(of: file, row, db) : nil
                    wanted.append(WantedSetFile(file: file, entityTag: tag))
                }
            }
            return (wanted, reused)
        }
        return (wanted, reused, aftermath)
    }

    /// Keeps a file whose bytes the app has already, of a kept file of any set or of a large content.
    private func reuse(
        _ listed: String, for file: SetFile, of row: VersionRow, _ transaction: Transaction
    ) throws -> Bool {
        let db = transaction.db
        let app = try app(of: row, db)
        let found = try db.first(
            """
            SELECT length, algorithm, digest, response_document, bytes, file, object FROM set_file \
            WHERE app = ?1 AND listed = ?2 AND state = 'kept' LIMIT 1
            """, app.rawValue, listed
        ) { try Bytes($0) }
        var bytes = found
        if bytes == nil, let digest = file.expectedDigest, digest.algorithm == .sha256 {
            bytes = try db.first(
                """
                SELECT length, algorithm, digest, response_document, bytes, file, object FROM set_file \
                WHERE app = ?1 AND digest = ?2 AND state = 'kept' AND algorithm = 'sha-256' LIMIT 1
                """, app.rawValue, digest.value
            ) { try Bytes($0) }
            bytes =
                try bytes
                ?? db.first(
                    """
                    SELECT length, 'sha-256' AS algorithm, digest, NULL AS response_document, NULL AS bytes, file, object \
                    FROM content WHERE app = ?1 AND digest = ?2 AND (file IS NOT NULL OR object IS NOT NULL) \
                    UNION ALL SELECT length, 'sha-256', digest, NULL, NULL, file, object \
                    FROM cached WHERE app = ?1 AND digest = ?2 AND (file IS NOT NULL OR object IS NOT NULL) LIMIT 1
                    """, app.rawValue, digest.value
                ) { try Bytes($0) }
        }
        guard let bytes, file.length == nil || file.length == bytes.length else { return false }
        try keep(bytes, at: file.path, of: row, app, isReused: true, transaction)
        return true
    }

    /// The strong tag of the file with the same path and URL in the newest kept version.
    private func keptTag(of file: SetFile, _ row: VersionRow, _ db: Connection) throws -> String? {
        guard let (document, response, publicId) = try keptFile(at: file.path, row, db).map({ ($0.1, $0.2, $0.3) })
        else { return nil }
        let kept = try documents.decode(
            SetFile.self, document, sealedAs: SetVersionDocument.context(publicId))
        guard kept.request == file.request,
            let tag = try response.map({ try documents.decode(SetFileResponse.self, $0) })?.entityTag,
            tag.isStrongEntityTag
        else { return nil }
        return tag
    }

    /// The kept file that the origin confirmed to a task; `nil` if the newest kept version has another one by now.
    private func confirmedFile(at path: String, by task: TaskID, _ row: VersionRow, _ db: Connection) throws -> Bytes? {
        let document = try db.first(
            "SELECT file_document FROM set_file WHERE version = ?1 AND path = ?2", row.version.id.rawValue, path
        ) { $0.blob(0) }
        guard let document, let sent = try store.tasks.read(task, db)?.specification.ifNoneMatch else { return nil }
        let file = try documents.decode(
            SetFile.self, document, sealedAs: SetVersionDocument.context(row.version.publicId))
        guard let tag = try keptTag(of: file, row, db), tag.utf8.elementsEqual(sent.utf8) else { return nil }
        return try keptFile(at: path, row, db)?.0
    }

    /// The file at a path of the newest published version of the set.
    private func keptFile(
        at path: String, _ row: VersionRow, _ db: Connection
    ) throws -> (Bytes, document: [UInt8], response: [UInt8]?, publicId: String)? {
        try db.first(
            """
            SELECT f.length, f.algorithm, f.digest, f.response_document, f.bytes, f.file, f.object, f.file_document, \
            v.public_id FROM set_version v JOIN set_file f ON f.version = v.id AND f.path = ?2 \
            WHERE v.file_set = ?1 AND v.state = 'published' AND v.removing = 0 AND f.state = 'kept' \
            ORDER BY v.id DESC LIMIT 1
            """, row.set.rawValue, path
        ) {
            (
                try Bytes($0), document: $0.blob("file_document"), response: $0.blobOrNil("response_document"),
                publicId: $0.text("public_id")
            )
        }
    }

    private func app(of row: VersionRow, _ db: Connection) throws -> AppID {
        try db.first("SELECT app FROM set_version WHERE id = ?1", row.version.id.rawValue) {
            AppID($0.integer(0))
        }.orNotFound()
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
                        try self.fail(path, of: row, "The task was cancelled.", wasKept: false, transaction)
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

    /// Records the end of a task that fetched a file or a list.
    func settle(
        _ live: LiveTask, _ outcome: Outcome, _ result: TaskResult, _ content: NewContent?, _ place: StoredPlace?,
        _ transaction: Transaction
    ) throws {
        let db = transaction.db
        guard let version = live.setVersion, let row = try row(version, db) else { return }
        if row.listTask == live.id { return try schedule(version, at: transaction.now, transaction) }
        let path = try db.first(
            "SELECT path FROM set_file WHERE task = ?1 AND version = ?2 AND state = 'fetching'", live.id.rawValue,
            version.rawValue
        ) { $0.text(0) }
        guard let path else { return }
        let app = try app(of: row, db)
        switch outcome {
        case .succeeded:
            guard let content, let place else { fallthrough }
            var response = SetFileResponse()
            response.entityTag = result.response?.headers.single("ETag")
            response.lastModified = result.response?.headers.single("Last-Modified")
            response.mimeType = result.response?.mimeType
            response.fetchedAt = transaction.now
            let bytes = Bytes(
                length: content.length, digest: content.digest, response: documents.encode(response), place: place)
            let isReused = result.cacheStatus == .hit || result.cacheStatus == .revalidated
            try keep(bytes, at: path, of: row, app, isReused: isReused, transaction)
        case .notModified:
            if let bytes = try confirmedFile(at: path, by: live.id, row, db) {
                try keep(bytes, at: path, of: row, app, isReused: true, transaction)
            } else {
                // The version that had the file was removed or replaced in the meantime.
                try db.execute(
                    "UPDATE set_file SET state = 'listed', task = NULL WHERE version = ?1 AND path = ?2",
                    version.rawValue, path)
                try schedule(version, at: transaction.now, transaction)
            }
        case .httpError, .failed, .cancelled:
            let status = result.response.map { "The origin answered \($0.statusCode)." }
            let detail = result.error?.localizedDescription ?? status ?? "The task was cancelled."
            try fail(path, of: row, detail, wasKept: false, transaction)
        }
    }

    /// Refers to the bytes of a file, which is fetched or reused.
    private func keep(
        _ bytes: Bytes, at path: String, of row: VersionRow, _ app: AppID, isReused: Bool, _ transaction: Transaction
    ) throws {
        let db = transaction.db
        let listed =
            try db.first(
                "SELECT length FROM set_file WHERE version = ?1 AND path = ?2", row.version.id.rawValue, path
            ) { $0.integerOrNil(0) } ?? nil
        if let listed, listed != bytes.length {
            return try fail(
                path, of: row, "The file has \(bytes.length) bytes instead of \(listed).", wasKept: false, transaction)
        }
        try db.execute(
            """
            UPDATE set_file SET state = 'kept', length = ?3, algorithm = ?4, digest = ?5, response_document = ?6, \
            reused = ?7, bytes = ?8, file = ?9, object = ?10 WHERE version = ?1 AND path = ?2
            """,
            row.version.id.rawValue, path, bytes.length, bytes.digest.algorithm.rawValue, bytes.digest.value,
            bytes.response, isReused, bytes.place.bytes, bytes.place.file, bytes.place.object)
        transaction.addStored(bytes.length, app: app)
        if bytes.place.isShared { transaction.change(cacheOf: app) { $0.sharedBytes += bytes.length } }
        let (files, length) = (isReused ? (0, 1) : (1, 0), bytes.length)
        try close(
            row.version.id, fetched: files.0, reused: files.1, failed: 0, bytes: length,
            unlisted: listed == nil ? length : 0, transaction)
    }

    /// Records the failure of a file, and frees bytes that were kept.
    func fail(
        _ path: String, of row: VersionRow, _ detail: String, wasKept: Bool, _ transaction: Transaction
    ) throws {
        let db = transaction.db
        if wasKept { try release(path, of: row, transaction) }
        try db.execute(
            "UPDATE set_file SET state = 'failed', failure = ?3 WHERE version = ?1 AND path = ?2",
            row.version.id.rawValue, path, detail)
        if wasKept {
            try db.execute(
                "UPDATE set_version SET failed_files = failed_files + 1 WHERE id = ?1", row.version.id.rawValue)
        } else {
            try close(row.version.id, fetched: 0, reused: 0, failed: 1, bytes: 0, unlisted: 0, transaction)
        }
    }

    /// Counts a file that has ended. The version's next step is due with the last one.
    private func close(
        _ version: SetVersionID, fetched: Int, reused: Int, failed: Int, bytes: Int64, unlisted: Int64,
        _ transaction: Transaction
    ) throws {
        let left = try transaction.db.first(
            """
            UPDATE set_version SET open_files = open_files - 1, fetched_files = fetched_files + ?2, \
            reused_files = reused_files + ?3, failed_files = failed_files + ?4, fetched_bytes = fetched_bytes + ?5, \
            reused_bytes = reused_bytes + ?6, bytes = bytes + ?7 WHERE id = ?1 RETURNING open_files
            """, version.rawValue, fetched, reused, failed, reused > 0 ? 0 : bytes, reused > 0 ? bytes : 0, unlisted
        ) { $0.integer(0) }
        if left == 0 { try schedule(version, at: transaction.now, transaction) }
    }

    /// Frees the bytes of a kept file.
    private func release(_ path: String, of row: VersionRow, _ transaction: Transaction) throws {
        let db = transaction.db
        let app = try app(of: row, db)
        let kept = try db.first(
            """
            SELECT length, reused, bytes, file, object FROM set_file \
            WHERE version = ?1 AND path = ?2 AND state = 'kept'
            """, row.version.id.rawValue, path
        ) { (length: $0.integer("length"), isReused: $0.bool("reused"), place: StoredPlace($0)) }
        guard let kept else { return }
        try db.execute(
            """
            UPDATE set_file SET state = 'listed', bytes = NULL, file = NULL, object = NULL, digest = NULL \
            WHERE version = ?1 AND path = ?2
            """, row.version.id.rawValue, path)
        let (fetched, reused) = kept.isReused ? (0, 1) : (1, 0)
        try db.execute(
            """
            UPDATE set_version SET fetched_files = fetched_files - ?2, reused_files = reused_files - ?3, \
            fetched_bytes = fetched_bytes - ?4, reused_bytes = reused_bytes - ?5 WHERE id = ?1
            """, row.version.id.rawValue, fetched, reused, kept.isReused ? 0 : kept.length,
            kept.isReused ? kept.length : 0)
        transaction.addStored(-kept.length, app: app)
        try store.files.release(kept.place, kept.length, of: app, transaction)
    }

    /// Removes files of a version, up to `limit`.
    ///
    /// - Returns: Whether there may be more.
    func dropFiles(of row: VersionRow, _ limit: Int, _ transaction: Transaction) throws -> Bool {
        let paths = try transaction.db.all(
            "SELECT path FROM set_file WHERE version = ?1 ORDER BY path LIMIT ?2", row.version.id.rawValue, limit
        ) { $0.text(0) }
        for path in paths {
            try release(path, of: row, transaction)
            try transaction.db.execute(
                "DELETE FROM set_file WHERE version = ?1 AND path = ?2", row.version.id.rawValue, path)
        }
        return paths.count == limit
    }

    // MARK: Reading

    /// The kept files of a version with their bytes, in the order of their paths, after a path.
    package func keptFiles(of version: SetVersionID, after path: String, limit: Int) async throws -> [KeptSetFile] {
        try await database.read { db in
            guard let row = try self.row(version, db) else { throw DomainError.notFound }
            return try db.all(
                """
                SELECT path, file_document, length, algorithm, digest, response_document, bytes, file, object \
                FROM set_file WHERE version = ?1 AND path > ?2 AND state = 'kept' ORDER BY path LIMIT ?3
                """, version.rawValue, path, limit
            ) { try self.keptFile($0, row) }
        }
    }

    /// The digests of kept files of a version, by path; in the order of `paths`.
    package func digests(of paths: [String], in version: SetVersionID) async throws -> [ContentDigest?] {
        try await database.read { db in
            try db.allOfEach(
                "SELECT algorithm, digest FROM set_file WHERE version = ?1 AND path = ?2 AND state = 'kept'",
                paths.map { [version.rawValue, $0] }
            ) { ContentDigest(algorithm: try $0.value("algorithm"), value: $0.text("digest")) }.map(\.first)
        }
    }

    /// A kept file of a version.
    ///
    /// - Throws: ``DomainError/notFound``.
    package func keptFile(at path: String, of version: SetVersionID) async throws -> KeptSetFile {
        try await database.read { db in
            guard let row = try self.row(version, db) else { throw DomainError.notFound }
            return try db.first(
                """
                SELECT path, file_document, length, algorithm, digest, response_document, bytes, file, object \
                FROM set_file WHERE version = ?1 AND path = ?2 AND state = 'kept'
                """, version.rawValue, path
            ) { try self.keptFile($0, row) }.orNotFound()
        }
    }

    private func keptFile(_ row: Row, _ version: VersionRow) throws -> KeptSetFile {
        let file = try documents.decode(
            SetFile.self, row.blob("file_document"),
            sealedAs: SetVersionDocument.context(version.version.publicId))
        let bytes = try Bytes(row)
        var shown = SetManifestFile(
            path: row.text("path"), length: bytes.length, digest: bytes.digest, address: file.request.address)
        shown.expectedDigest = file.expectedDigest
        if let document = bytes.response {
            let response = try documents.decode(SetFileResponse.self, document)
            shown.entityTag = response.entityTag
            shown.lastModified = response.lastModified
            shown.mimeType = response.mimeType
            shown.fetchedAt = response.fetchedAt
        }
        let object = bytes.place.object.map { StoredObject(key: $0, length: bytes.length) }
        guard
            let storage = object.map({ BodyLocation.Storage.objects([$0]) })
                ?? bytes.place.file.map({ .file($0) }) ?? bytes.place.bytes.map({ .bytes($0) })
        else { throw DomainError.notFound }
        return KeptSetFile(file: shown, storage: storage)
    }
}

/// The bytes of a kept file, and what is known of them.
private struct Bytes {
    var length: Int64
    var digest: ContentDigest
    var response: [UInt8]?
    var place: StoredPlace

    init(length: Int64, digest: ContentDigest, response: [UInt8]?, place: StoredPlace) {
        self.length = length
        self.digest = digest
        self.response = response
        self.place = place
    }

    init(_ row: Row) throws {
        self.init(
            length: row.integer("length"),
            digest: ContentDigest(algorithm: try row.value("algorithm"), value: row.text("digest")),
            response: row.blobOrNil("response_document"), place: StoredPlace(row))
    }
}
