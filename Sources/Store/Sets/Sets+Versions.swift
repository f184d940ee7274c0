package import Core
import Formats
import SQL

/// The members of a version that queries do not select by.
struct SetVersionDocument: Shape {
    var source: SetSource?
    var metadata: [String: String] = [:]
    /// The progress of making the list of files.
    var expansion: SetExpansion?
    /// Files of the current document of the source that are stored already.
    var position: Int64 = 0
    /// The session may be gone before the version is.
    var session = ""
    /// Why the version failed, besides the failures of its files.
    var failure: String?
    var mayBeShown = false

    init() {}

    mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("source", &source)
        members.sparse("metadata", &metadata, unless: [:])
        members.optional("expansion", &expansion)
        members.sparse("position", &position, unless: 0)
        members.member("session", &session)
        members.optional("failure", &failure)
        members.sparse("mayBeShown", &mayBeShown, unless: false)
    }

    static func context(_ publicId: String) -> String { "set/\(publicId)" }
}

/// A version about to be received.
package struct NewSetVersion: Sendable {
    package var publicId: String
    package var source: SetSource?
    package var metadata: [String: String]

    package init(publicId: String, source: SetSource?, metadata: [String: String]) {
        self.publicId = publicId
        self.source = source
        self.metadata = metadata
    }
}

/// Two files of a version have the same path, or one lies below the other.
package struct SetPathCollision: Error, Hashable {
    package let path: String
    package let other: String
}

extension Store.Sets {
    /// After this time a version that was not received whole is removed.
    private static let receptionLimit = Duration.seconds(3600)

    /// Begins to receive a version, which no reader sees yet.
    ///
    /// - Throws: ``DomainError/notFound``, ``DomainError/sessionInvalidated``.
    package func begin(
        _ new: NewSetVersion, of set: SetRecord, in session: SessionRecord, at now: Timestamp
    ) async throws -> SetVersionID {
        try await database.write { [documents] db in
            guard try self.isPresent(set.id, db) else { throw DomainError.notFound }
            let document = SetVersionDocument {
                $0.source = new.source
                $0.metadata = new.metadata
                $0.session = session.identifier
            }
            return SetVersionID(
                try db.insert(
                    """
                    INSERT INTO set_version (public_id, file_set, app, session, state, document, due_at, created_at) \
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                    """,
                    new.publicId, set.id.rawValue, set.app.rawValue, session.id.rawValue,
                    SetVersionState.expanding.rawValue,
                    documents.encode(document, sealedAs: SetVersionDocument.context(new.publicId), if: true),
                    (now + Self.receptionLimit).milliseconds, now.milliseconds))
        }
    }

    /// Adds files to a version; up to 1,000 in one commit.
    ///
    /// - Throws: ``SetPathCollision`` with a path that an earlier file takes.
    package func add(_ files: [SetFile], to version: SetVersionID) async throws {
        try await database.write { db in try self.add(files, to: version, db) }
    }

    func add(_ files: [SetFile], to version: SetVersionID, _ db: Connection) throws {
        guard !files.isEmpty else { return }
        let found = try db.first("SELECT public_id, app FROM set_version WHERE id = ?1", version.rawValue) {
            (publicId: $0.text("public_id"), app: $0.integer("app"))
        }.orNotFound()
        try checkPaths(of: files, version, db)
        let context = SetVersionDocument.context(found.publicId)
        try db.executeAll(
            """
            INSERT INTO set_file (version, path, app, file_document, listed, state, length) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            """,
            files.map { file in
                [
                    version.rawValue, file.path, found.app,
                    documents.encode(file, sealedAs: context, if: file.request.holdsSecrets),
                    file.expectedDigest.map(Self.listed), SetFileState.listed.rawValue,
                    file.length,
                ]
            })
        let (count, bytes) = (files.count, files.reduce(Int64(0)) { $0.addingClamped($1.length ?? 0) })
        try db.execute(
            """
            UPDATE set_version SET files = files + ?2, open_files = open_files + ?2, bytes = bytes + ?3 WHERE id = ?1
            """, version.rawValue, count, bytes)
    }

    /// The column `listed` of a digest.
    static func listed(_ digest: SetDigest) -> String { "\(digest.algorithm.rawValue):\(digest.value)" }

    /// Compares new paths with those of the version, and with each other.
    private func checkPaths(of files: [SetFile], _ version: SetVersionID, _ db: Connection) throws {
        let paths = files.map(\.path)
        if let (one, other) = SetPath.collision(in: paths) {
            throw SetPathCollision(path: paths[one], other: paths[other])
        }
        let taken = try db.allOfEach(
            """
            SELECT path FROM set_file WHERE version = ?1 AND path = ?2 \
            UNION ALL SELECT path FROM set_file WHERE version = ?1 AND path > ?2 || '/' AND path < ?2 || '0' LIMIT 1
            """, paths.map { [version.rawValue, $0] }
        ) { $0.text(0) }
        for (path, found) in zip(paths, taken) {
            if let other = found.first { throw SetPathCollision(path: path, other: other) }
        }
        let folders = paths.flatMap { path in SetPlace.ancestors(of: path).map { (folder: $0, path: path) } }
        let files = try db.allOfEach(
            "SELECT path FROM set_file WHERE version = ?1 AND path = ?2", folders.map { [version.rawValue, $0.folder] }
        ) { $0.text(0) }
        for (item, found) in zip(folders, files) where !found.isEmpty {
            throw SetPathCollision(path: item.folder, other: item.path)
        }
    }

    /// Ends the reception of a version. A version of the same name by the same request takes its place.
    ///
    /// - Parameter name: `nil` for the commit of a source, or the public id.
    /// - Throws: ``DomainError/setVersionExists``, ``DomainError/setRepositoryTaken``,
    ///   ``DomainError/sessionInvalidated``, ``DomainError/notFound``.
    package func finish(
        _ id: SetVersionID, named name: String?, fingerprint: [UInt8], at now: Timestamp,
        recording: Recording<ReceivedSetVersion>? = nil
    ) async throws -> (received: ReceivedSetVersion, aftermath: Aftermath) {
        try await transact(at: now) { [documents] transaction in
            let received = try self.finish(id, named: name, fingerprint: fingerprint, transaction)
            try recording?.record(received, documents, now, transaction.db)
            return received
        }
    }

    private func finish(
        _ id: SetVersionID, named name: String?, fingerprint: [UInt8], _ transaction: Transaction
    ) throws -> ReceivedSetVersion {
        let db = transaction.db
        guard let draft = try self.row(id, db), let set = try self.read(draft.set, db), try isPresent(set.id, db) else {
            throw DomainError.notFound
        }
        if let name, let existing = try self.named(name, of: draft.set, db) {
            guard existing.fingerprint == fingerprint, let version = try self.read(existing.id, db) else {
                throw DomainError.setVersionExists
            }
            try transaction.schedule(id)
            return ReceivedSetVersion(version: version, isNew: false)
        }
        let session = try transaction.session(draft.session)
        guard session.state == .active, !session.isForgotten else { throw DomainError.sessionInvalidated }
        let source = draft.version.source
        if let source { try reserve(source, for: set, db) }
        let state = source != nil ? SetVersionState.expanding : SetVersionState.expanding.after(.listed)
        try db.execute(
            """
            UPDATE set_version SET name = coalesce(?2, public_id), fingerprint = ?3, state = ?4 WHERE id = ?1
            """, id.rawValue, name, fingerprint, state.rawValue)
        try transaction.schedule(id)
        session.book.versionsInFlight += 1
        session.isChanged = true
        return ReceivedSetVersion(version: try self.read(id, db).orNotFound(), isNew: true)
    }

    /// Whether a set exists and is not deleted.
    private func isPresent(_ set: SetID, _ db: Connection) throws -> Bool {
        try db.exists("SELECT 1 FROM file_set WHERE id = ?1 AND forgotten = 0", set.rawValue)
    }

    /// Removes a version that was not received whole.
    package func discard(_ id: SetVersionID, at now: Timestamp) async throws -> Aftermath {
        try await transact(at: now) { transaction in try transaction.schedule(id) }.1
    }

    /// A version by its name or public id; the newest of that name. Readers do not see versions that are being removed.
    package func version(_ name: String, of set: SetID) async throws -> SetVersionRecord {
        try await database.read { db in
            let id =
                try db.first(
                    """
                    SELECT id FROM set_version WHERE public_id = ?2 AND file_set = ?1 AND removing = 0 \
                    AND name IS NOT NULL
                    """, set.rawValue, name
                ) { SetVersionID($0.integer(0)) } ?? self.named(name, of: set, db)?.id
                ?? db.first(
                    """
                    SELECT id FROM set_version WHERE file_set = ?1 AND name = ?2 AND removing = 0 \
                    ORDER BY id DESC LIMIT 1
                    """, set.rawValue, name
                ) { SetVersionID($0.integer(0)) }
            return try id.flatMap { try self.read($0, db) }.orNotFound()
        }
    }

    /// The version that has taken a name.
    func named(_ name: String, of set: SetID, _ db: Connection) throws -> (id: SetVersionID, fingerprint: [UInt8])? {
        try db.first(
            """
            SELECT id, fingerprint FROM set_version WHERE file_set = ?1 AND name = ?2 AND name IS NOT NULL \
            AND removing = 0 AND state <> 'failed' AND state <> 'cancelled' AND state <> 'superseded'
            """, set.rawValue, name
        ) { (SetVersionID($0.integer("id")), $0.blob("fingerprint")) }
    }

    package func versions(
        of set: SetID, _ span: ListSpan, after position: Int64, limit: Int
    ) async throws -> [SetVersionRecord] {
        try await database.read { db in
            let stretch = try span.stretch(
                after: position,
                db.positions("SELECT id, created_at FROM set_version WHERE id >= ?1 ORDER BY id LIMIT 1"))
            let ids = try db.all(
                """
                SELECT id FROM set_version WHERE file_set = ?1 AND name IS NOT NULL AND removing = 0 \
                AND id > ?2 AND id < ?3 ORDER BY id ASC LIMIT ?4
                """, set.rawValue, stretch.low, stretch.high, limit, descending: span.isDescending
            ) { SetVersionID($0.integer(0)) }
            return try ids.compactMap { try self.read($0, db) }
        }
    }

    func read(_ id: SetVersionID, _ db: Connection) throws -> SetVersionRecord? {
        guard let row = try row(id, db) else { return nil }
        var version = row.version
        if version.state == .failed { version.failures = try failures(of: version, row.document, db) }
        return version
    }

    /// The first failures, that of the list or of the publication before those of files.
    private func failures(
        of version: SetVersionRecord, _ document: SetVersionDocument, _ db: Connection
    ) throws -> [SetFailure] {
        let ofFiles = try db.all(
            """
            SELECT path, failure, (SELECT number FROM task WHERE id = set_file.task) AS number FROM set_file \
            WHERE version = ?1 AND state = 'failed' ORDER BY path LIMIT ?2
            """, version.id.rawValue, Self.shownFailures
        ) { row in
            SetFailure(
                path: row.text("path"), task: row.integerOrNil("number"), detail: row.textOrNil("failure") ?? "")
        }
        let own = document.failure.map { [SetFailure(path: nil, detail: $0)] } ?? []
        return Array((own + ofFiles).prefix(Self.shownFailures))
    }

    static let shownFailures = 100

    func write(_ document: SetVersionDocument, of version: SetVersionRecord, _ db: Connection) throws {
        try db.execute(
            "UPDATE set_version SET document = ?2 WHERE id = ?1", version.id.rawValue,
            documents.encode(document, sealedAs: SetVersionDocument.context(version.publicId), if: true))
    }

    /// A version's row, its document decoded.
    struct VersionRow {
        var version: SetVersionRecord
        var document: SetVersionDocument
        var isReceived: Bool
        var isRemoving: Bool
        var listTask: TaskID?
        var openFiles: Int64
        var attempts: Int

        var set: SetID { version.set }
        var session: SessionID { version.session }
    }

    func row(_ id: SetVersionID, _ db: Connection) throws -> VersionRow? {
        try db.first(
            """
            SELECT public_id, file_set, session, name, state, document, list_task, files, open_files, \
            fetched_files, reused_files, failed_files, bytes, fetched_bytes, reused_bytes, manifest_digest, removing, \
            attempts, created_at, published_at, replaced_at, ended_at, revision FROM set_version WHERE id = ?1
            """, id.rawValue
        ) { row in
            let publicId = row.text("public_id")
            let document = try documents.decode(
                SetVersionDocument.self, row.blob("document"), sealedAs: SetVersionDocument.context(publicId))
            var version = SetVersionRecord(
                id: id, publicId: publicId, set: SetID(row.integer("file_set")),
                session: SessionID(row.integer("session")), sessionIdentifier: document.session,
                name: row.textOrNil("name") ?? publicId, state: try row.value("state"),
                createdAt: row.time("created_at"), revision: row.integer("revision"))
            version.source = document.source
            version.commit = document.expansion?.commit
            version.metadata = document.metadata
            version.mayBeShown = document.mayBeShown
            version.files.total = row.integer("files")
            version.files.fetched = row.integer("fetched_files")
            version.files.reused = row.integer("reused_files")
            version.failedFiles = row.integer("failed_files")
            version.bytes.total = row.integer("bytes")
            version.bytes.fetched = row.integer("fetched_bytes")
            version.bytes.reused = row.integer("reused_bytes")
            version.manifestDigest = row.textOrNil("manifest_digest")
            version.publishedAt = row.timeOrNil("published_at")
            version.replacedAt = row.timeOrNil("replaced_at")
            version.endedAt = row.timeOrNil("ended_at")
            return VersionRow(
                version: version, document: document, isReceived: !row.isNull("name"),
                isRemoving: row.bool("removing"), listTask: row.integerOrNil("list_task").map(TaskID.init),
                openFiles: row.integer("open_files"), attempts: row.int("attempts"))
        }
    }

    /// Makes the next step on the versions in flight of a deleted session due: no task of it ends any more.
    func wakeVersions(of session: SessionID, _ transaction: Transaction) throws {
        try transaction.db.execute(
            """
            UPDATE set_version SET due_at = ?2 WHERE session = ?1 AND name IS NOT NULL \
            AND (state = 'expanding' OR state = 'fetching' OR state = 'verifying' OR state = 'publishing')
            """, session.rawValue, transaction.now.milliseconds)
        transaction.aftermath.hasDueSets = true
    }
}

/// The state of a file at rest.
enum SetFileState: String, CaseIterable {
    case listed, fetching, kept, failed
}

extension Int64 {
    func addingClamped(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
