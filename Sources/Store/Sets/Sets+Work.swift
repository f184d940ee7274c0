import Base
package import Core
import Formats
import SQL

/// A set or a version on which a step is due.
package enum SetWork: Hashable, Sendable {
    case set(SetID)
    case version(SetVersionID)
}

/// What the work on a set needs to know.
package struct SetStanding: Sendable {
    package let set: SetRecord
    package let isForgotten: Bool
    /// Whether the files of the current version stay at the destination of a deleted set.
    package let keepsCurrent: Bool
    /// The version that becomes current once the destination shows it.
    package let switching: SetVersionRecord?
}

/// What the work on a version needs to know.
package struct SetVersionStanding: Sendable {
    package let version: SetVersionRecord
    package let set: SetRecord
    package let isReceived: Bool
    package let isRemoving: Bool
    /// Whether a newer version was published before.
    package let isOvertaken: Bool
    package let openFiles: Int64
    package let listTask: TaskID?
    package let expansion: SetExpansion?
    /// Files of the current document of the source that are stored already.
    package let position: Int
    package let attempts: Int
}

extension Store.Sets {
    /// Ended versions that were never published are kept for this time.
    package static let endedRetention = Duration.seconds(24 * 3600)

    // MARK: What is due

    /// Items of each kind that are read at once.
    private static let dueAtOnce = 1000

    /// The work that is due for the longest time.
    package func due(at now: Timestamp) async throws -> [(app: AppID, work: SetWork)] {
        try await database.read { db in
            let sets = try db.all(
                "SELECT id, app FROM file_set WHERE due_at <= ?1 ORDER BY due_at LIMIT ?2", now.milliseconds,
                Self.dueAtOnce
            ) { (app: AppID($0.integer("app")), work: SetWork.set(SetID($0.integer("id")))) }
            let versions = try db.all(
                "SELECT id, app FROM set_version WHERE due_at <= ?1 ORDER BY due_at LIMIT ?2", now.milliseconds,
                Self.dueAtOnce
            ) { (app: AppID($0.integer("app")), work: SetWork.version(SetVersionID($0.integer("id")))) }
            return sets + versions
        }
    }

    package func nextDue() async throws -> Timestamp? {
        try await database.read { db in
            let times = [
                try db.first("SELECT min(due_at) FROM file_set WHERE due_at IS NOT NULL") { $0.integerOrNil(0) },
                try db.first("SELECT min(due_at) FROM set_version WHERE due_at IS NOT NULL") { $0.integerOrNil(0) },
            ]
            return times.compactMap { $0 ?? nil }.min().map(Timestamp.init(milliseconds:))
        }
    }

    /// Schedules the next step after one that failed, or after some time; none for `nil`. A command that changed the
    /// version meanwhile has scheduled its step.
    ///
    /// - Parameter isFailure: Whether the step counts as a failed attempt.
    package func postpone(
        _ version: SetVersionRecord, until time: Timestamp?, isFailure: Bool = false
    ) async throws {
        try await database.write { db in
            try db.execute(
                "UPDATE set_version SET due_at = ?3, attempts = attempts + ?4 WHERE id = ?1 AND revision = ?2",
                version.id.rawValue, version.revision, time?.milliseconds, isFailure ? 1 : 0)
        }
    }

    /// Schedules the next step on a set.
    package func postpone(_ set: SetID, until time: Timestamp, isFailure: Bool) async throws {
        try await database.write { db in
            try db.execute(
                "UPDATE file_set SET due_at = ?2, attempts = attempts + ?3 WHERE id = ?1", set.rawValue,
                time.milliseconds, isFailure ? 1 : 0)
        }
    }

    /// Ends a step on a version whose tasks are under way: the end of the last one makes the next step due.
    package func waitForTasks(of version: SetVersionID) async throws {
        try await database.write { db in
            try db.execute(
                """
                UPDATE set_version SET due_at = NULL WHERE id = ?1 AND (state = 'expanding' \
                AND EXISTS (SELECT 1 FROM live WHERE task = list_task) OR state = 'fetching' AND open_files > 0 \
                AND NOT EXISTS (SELECT 1 FROM set_file WHERE version = ?1 AND state = 'listed'))
                """, version.rawValue)
        }
    }

    /// The failed attempts of a set's step.
    package func attempts(of set: SetID) async throws -> Int {
        try await database.read { db in
            try db.first("SELECT attempts FROM file_set WHERE id = ?1", set.rawValue) { $0.int("attempts") } ?? 0
        }
    }

    // MARK: Sets

    /// - Returns: `nil` for a set that is gone.
    package func standing(of id: SetID) async throws -> SetStanding? {
        try await database.read { db in
            let flags = try db.first("SELECT forgotten, switching FROM file_set WHERE id = ?1", id.rawValue) {
                (forgotten: $0.int("forgotten"), switching: $0.integerOrNil("switching"))
            }
            guard let flags, let set = try self.read(id, db) else { return nil }
            return SetStanding(
                set: set, isForgotten: flags.forgotten > 0, keepsCurrent: flags.forgotten == 2,
                switching: try flags.switching.flatMap { try self.read(SetVersionID($0), db) })
        }
    }

    /// Orders that a kept version becomes current.
    ///
    /// - Throws: ``DomainError/notFound``, ``DomainError/revisionMismatch``, ``DomainError/setVersionState(_:)``.
    package func beginSwitch(
        of id: SetID, to version: SetVersionID, ifRevision revision: Int64?, at now: Timestamp
    ) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let db = transaction.db
            let found = try db.first(
                "SELECT revision, current FROM file_set WHERE id = ?1 AND forgotten = 0", id.rawValue
            ) { (revision: $0.integer("revision"), current: $0.integerOrNil("current")) }
            guard let found, let row = try self.row(version, db), row.set == id, !row.isRemoving else {
                throw DomainError.notFound
            }
            if let revision, revision != found.revision { throw DomainError.revisionMismatch }
            guard row.version.state == .published else { throw DomainError.setVersionState(row.version.state) }
            if found.current == version.rawValue {
                return try db.execute("UPDATE file_set SET switching = NULL WHERE id = ?1", id.rawValue)
            }
            try db.execute(
                "UPDATE file_set SET switching = ?2, due_at = ?3, attempts = 0 WHERE id = ?1", id.rawValue,
                version.rawValue, now.milliseconds)
            transaction.aftermath.hasDueSets = true
        }.1
    }

    /// Makes a version current whose destination shows it.
    package func endSwitch(of id: SetID, to version: SetVersionID, at now: Timestamp) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let db = transaction.db
            guard
                try db.exists(
                    "SELECT 1 FROM file_set WHERE id = ?1 AND switching = ?2 AND forgotten = 0", id.rawValue,
                    version.rawValue),
                let row = try self.row(version, db)
            else { return }
            try self.makeCurrent(row.version, transaction)
            try self.tell(row.version, .switched, transaction)
        }.1
    }

    /// Gives up a switch whose destination cannot show the version.
    package func abandonSwitch(of id: SetID) async throws {
        try await database.write { db in
            try db.execute("UPDATE file_set SET switching = NULL, attempts = 0 WHERE id = ?1", id.rawValue)
        }
    }

    private func makeCurrent(_ version: SetVersionRecord, _ transaction: Transaction) throws {
        let (db, now) = (transaction.db, transaction.now.milliseconds)
        try db.execute(
            """
            UPDATE set_version SET replaced_at = ?3, revision = revision + 1 \
            WHERE id = (SELECT current FROM file_set WHERE id = ?1) AND id <> ?2
            """, version.set.rawValue, version.id.rawValue, now)
        try db.execute("UPDATE set_version SET replaced_at = NULL WHERE id = ?1", version.id.rawValue)
        try db.execute(
            """
            UPDATE file_set SET current = ?2, switching = NULL, newest = CASE WHEN newest > ?2 THEN newest ELSE ?2 END, revision = revision + 1, \
            due_at = ?3, attempts = 0 WHERE id = ?1
            """, version.set.rawValue, version.id.rawValue, now)
        transaction.aftermath.hasDueSets = true
    }

    private func tell(
        _ version: SetVersionRecord, _ cause: SetPublication.Cause, _ transaction: Transaction
    ) throws {
        guard let session = try log(of: version, transaction) else { return }
        let publication = SetPublication {
            $0.name = name(of: version.set, transaction.db)
            $0.version = version.name
            $0.versionId = version.publicId
            $0.files = version.files.total
            $0.bytes = version.bytes.total
            $0.cause = cause
        }
        session.book.lastPublicationSeq = try transaction.append(
            .didPublish, to: session, data: documents.encode(publication))
    }

    /// The session of a version; `nil` if it was deleted.
    private func log(of version: SetVersionRecord, _ transaction: Transaction) throws -> SessionEntry? {
        let exists = try transaction.db.exists(
            "SELECT 1 FROM session WHERE id = ?1 AND forgotten = 0", version.session.rawValue)
        guard exists else { return nil }
        let session = try transaction.session(version.session)
        return session.isForgotten ? nil : session
    }

    private func name(of set: SetID, _ db: Connection) -> String {
        (try? db.first("SELECT name FROM file_set WHERE id = ?1", set.rawValue) { $0.text(0) }) ?? ""
    }

    /// Retires published versions beyond those that the set keeps, and schedules the next time to do so.
    ///
    /// - Parameter held: Versions that a reader has open.
    package func retire(_ id: SetID, but held: Set<SetVersionID>, at now: Timestamp) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let db = transaction.db
            guard let set = try self.read(id, db) else { return }
            let old = try db.all(
                """
                SELECT id, replaced_at FROM set_version WHERE file_set = ?1 AND state = 'published' AND removing = 0 \
                AND replaced_at IS NOT NULL ORDER BY replaced_at DESC, id DESC
                """, id.rawValue
            ) { (id: SetVersionID($0.integer("id")), since: $0.time("replaced_at")) }
            var next: Timestamp?
            for version in old.dropFirst(Int(clamping: set.configuration.keep)) {
                let end = version.since + .seconds(set.configuration.grace)
                let due = held.contains(version.id) ? max(end, now + .seconds(10)) : end
                if due <= now {
                    try db.execute("UPDATE set_version SET removing = 1 WHERE id = ?1", version.id.rawValue)
                    try self.schedule(version.id, at: now, transaction)
                } else {
                    next = min(next ?? due, due)
                }
            }
            try db.execute(
                """
                UPDATE file_set SET due_at = ?2, attempts = 0 WHERE id = ?1 AND switching IS NULL AND forgotten = 0
                """, id.rawValue, next?.milliseconds)
        }.1
    }

    /// Versions of a set in any state, those in flight first.
    package func allVersions(of set: SetID, limit: Int) async throws -> [SetVersionRecord] {
        try await database.read { db in
            try db.all("SELECT id FROM set_version WHERE file_set = ?1 ORDER BY id LIMIT ?2", set.rawValue, limit) {
                SetVersionID($0.integer(0))
            }.compactMap { try self.row($0, db)?.version }
        }
    }

    /// Names of the versions whose files a destination has or may get: published ones, and those in flight.
    package func livingVersions(of set: SetID) async throws -> [SetVersionRecord] {
        try await database.read { db in
            try db.all(
                """
                SELECT id FROM set_version WHERE file_set = ?1 AND removing = 0 AND name IS NOT NULL \
                AND (state = 'published' OR state = 'publishing')
                """, set.rawValue
            ) { SetVersionID($0.integer(0)) }.compactMap { try self.row($0, db)?.version }
        }
    }

    /// Deletes the row of a forgotten set without versions.
    package func remove(_ set: SetID) async throws {
        try await database.write { db in
            try db.execute(
                """
                DELETE FROM file_set WHERE id = ?1 AND forgotten > 0 \
                AND NOT EXISTS (SELECT 1 FROM set_version WHERE file_set = ?1)
                """, set.rawValue)
        }
    }

    // MARK: Versions

    /// - Returns: `nil` for a version that is gone.
    package func standing(of id: SetVersionID) async throws -> SetVersionStanding? {
        try await database.read { db in
            guard let row = try self.row(id, db), let set = try self.read(row.set, db) else { return nil }
            let newest =
                try db.first("SELECT newest FROM file_set WHERE id = ?1", row.set.rawValue) { $0.integer(0) } ?? 0
            return SetVersionStanding(
                version: row.version, set: set, isReceived: row.isReceived, isRemoving: row.isRemoving,
                isOvertaken: newest > id.rawValue, openFiles: row.openFiles, listTask: row.listTask,
                expansion: row.document.expansion, position: Int(clamping: row.document.position),
                attempts: row.attempts)
        }
    }

    /// Applies an event to the state of a version.
    ///
    /// - Parameter detail: Why the version failed, unless its files did.
    /// - Returns: The version, whether or not the event had an effect.
    /// - Throws: ``DomainError/notFound``, ``DomainError/revisionMismatch``.
    package func handle(
        _ event: SetVersionState.Event, _ id: SetVersionID, detail: String? = nil, ifRevision revision: Int64? = nil,
        at now: Timestamp
    ) async throws -> (version: SetVersionRecord, aftermath: Aftermath) {
        try await transact(at: now) { transaction in
            let db = transaction.db
            guard let row = try self.row(id, db), !row.isRemoving else { throw DomainError.notFound }
            if let revision, revision != row.version.revision { throw DomainError.revisionMismatch }
            try self.apply(event, to: row, detail, transaction)
            return try self.read(id, db).orNotFound()
        }
    }

    /// Fetches the failed files of a version again, or its list.
    ///
    /// - Throws: ``DomainError/setVersionState(_:)`` unless the version has failed, ``DomainError/setVersionExists`` if
    ///   another version has taken its name, ``DomainError/sessionInvalidated``.
    package func retry(
        _ id: SetVersionID, ifRevision revision: Int64?, at now: Timestamp
    ) async throws -> (version: SetVersionRecord, aftermath: Aftermath) {
        try await transact(at: now) { transaction in
            let db = transaction.db
            guard let row = try self.row(id, db), !row.isRemoving else { throw DomainError.notFound }
            if let revision, revision != row.version.revision { throw DomainError.revisionMismatch }
            guard row.version.state == .failed else { throw DomainError.setVersionState(row.version.state) }
            if try self.named(row.version.name, of: row.set, db) != nil { throw DomainError.setVersionExists }
            guard let session = try self.log(of: row.version, transaction), session.state == .active else {
                throw DomainError.sessionInvalidated
            }
            let failed = try db.change(
                "UPDATE set_file SET state = 'listed', task = NULL, failure = NULL WHERE version = ?1 AND state = 'failed'",
                id.rawValue)
            try db.execute(
                """
                UPDATE set_version SET open_files = open_files + ?2, failed_files = 0, list_task = NULL WHERE id = ?1
                """, id.rawValue, failed)
            let isListed = row.version.source == nil || row.document.expansion?.isComplete == true
            try self.apply(isListed ? .retryFiles : .retryList, to: row, nil, transaction)
            return try self.read(id, db).orNotFound()
        }
    }

    private func apply(
        _ event: SetVersionState.Event, to row: VersionRow, _ detail: String?, _ transaction: Transaction
    ) throws {
        let (db, id) = (transaction.db, row.version.id)
        let state = row.version.state.after(event)
        guard state != row.version.state else { return }
        let session = try log(of: row.version, transaction)
        let change = (state.isInFlight ? 1 : 0) - (row.version.state.isInFlight ? 1 : 0)
        session?.book.versionsInFlight += Int64(change)
        if change != 0 { session?.isChanged = true }
        try db.execute(
            "UPDATE set_version SET state = ?2, ended_at = ?3, revision = revision + 1 WHERE id = ?1", id.rawValue,
            state.rawValue, state.isInFlight ? nil : transaction.now.milliseconds)
        try schedule(id, at: transaction.now, transaction)
        if row.document.failure != detail {
            var document = row.document
            document.failure = detail
            try write(document, of: row.version, db)
        }
        guard state == .failed, let session, let version = try read(id, db) else { return }
        let failures = SetFailures {
            $0.name = name(of: version.set, db)
            $0.version = version.name
            $0.versionId = version.publicId
            $0.failures = version.failures
        }
        session.book.lastSetFailureSeq = try transaction.append(
            .didFailToPublish, to: session, data: documents.encode(failures))
    }

    /// Adds a part of the current document of the source.
    ///
    /// - Throws: ``SetPathCollision``.
    package func addPart(_ files: [SetFile], to id: SetVersionID) async throws {
        try await database.write { db in
            guard let row = try self.row(id, db), row.version.state == .expanding else { return }
            var document = row.document
            document.position += Int64(files.count)
            try self.write(document, of: row.version, db)
            try self.add(files, to: id, db)
        }
    }

    /// Removes files of a version whose list is made again, up to `limit`.
    ///
    /// - Returns: Whether there are more.
    package func clear(_ id: SetVersionID, limit: Int, at now: Timestamp) async throws -> (Bool, Aftermath) {
        try await transact(at: now) { transaction in
            guard let row = try self.row(id, transaction.db) else { return false }
            if try self.dropFiles(of: row, limit, transaction) { return true }
            var document = row.document
            document.position = 0
            try self.write(document, of: row.version, transaction.db)
            try transaction.db.execute(
                "UPDATE set_version SET files = 0, open_files = 0, bytes = 0 WHERE id = ?1", id.rawValue)
            return false
        }
    }

    /// Adds the rest of the current document to a version, and stores how the list goes on.
    ///
    /// If the commit of the source is the name of another version, this one is superseded.
    ///
    /// - Throws: ``SetPathCollision``.
    package func add(
        _ files: [SetFile], _ expansion: SetExpansion, to id: SetVersionID, at now: Timestamp
    ) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let db = transaction.db
            guard let row = try self.row(id, db), row.version.state == .expanding else { return }
            var document = row.document
            if let commit = expansion.commit, document.expansion?.commit == nil,
                row.version.name == row.version.publicId
            {
                if let other = try self.named(commit, of: row.set, db), other.id != id {
                    return try self.apply(.overtaken, to: row, nil, transaction)
                }
                try db.execute("UPDATE set_version SET name = ?2 WHERE id = ?1", id.rawValue, commit)
            }
            document.expansion = expansion
            document.position = 0
            try self.write(document, of: row.version, db)
            try self.add(files, to: id, db)
            try db.execute("UPDATE set_version SET list_task = NULL WHERE id = ?1", id.rawValue)
            try self.schedule(id, at: transaction.now, transaction)
            if expansion.isComplete { try self.apply(.listed, to: self.row(id, db).orNotFound(), nil, transaction) }
        }.1
    }

    /// Records that files differ from their digests.
    package func fail(_ files: [(path: String, detail: String)], of id: SetVersionID, at now: Timestamp) async throws
        -> Aftermath
    {
        try await transact(at: now) { transaction in
            guard let row = try self.row(id, transaction.db), row.version.state == .verifying else { return }
            for file in files { try self.fail(file.path, of: row, file.detail, wasKept: true, transaction) }
        }.1
    }

    /// Publishes a version whose destination shows it: from now on it is current.
    package func publish(
        _ id: SetVersionID, manifestDigest: String, at now: Timestamp
    ) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let db = transaction.db
            guard let row = try self.row(id, db), row.version.state == .publishing else { return }
            try self.apply(.published, to: row, nil, transaction)
            try db.execute(
                "UPDATE set_version SET published_at = ?2, manifest_digest = ?3, due_at = NULL WHERE id = ?1",
                id.rawValue, now.milliseconds, manifestDigest)
            try self.makeCurrent(row.version, transaction)
            try self.tell(row.version, .completed, transaction)
        }.1
    }

    /// Hides a version from readers, which is removed then.
    package func beginRemoval(of id: SetVersionID) async throws {
        try await database.write { db in
            try db.execute("UPDATE set_version SET removing = 1 WHERE id = ?1", id.rawValue)
        }
    }

    /// Removes rows of a version, at most about `limit`; its own row last.
    ///
    /// - Returns: Whether there are more.
    package func remove(_ id: SetVersionID, limit: Int, at now: Timestamp) async throws -> (Bool, Aftermath) {
        try await transact(at: now) { transaction in
            guard let row = try self.row(id, transaction.db) else { return false }
            if try self.dropFiles(of: row, limit, transaction) { return true }
            try transaction.db.execute("DELETE FROM set_version WHERE id = ?1", id.rawValue)
            return false
        }
    }
}
