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
    /// Whether only rows of a deleted set are left.
    package let hasLeftDestination: Bool
    /// The version that becomes current once the destination shows it.
    package let switching: SetVersionRecord?
}

/// What the work on a version needs to know.
package struct SetVersionStanding: Sendable {
    package let version: SetVersionRecord
    package let set: SetRecord
    package let isReceived: Bool
    package let isRemoving: Bool
    /// Whether the session was deleted.
    package let hasLostSession: Bool
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
    ///
    /// - Parameter next: When another step is due before that; `nil` for none.
    package func waitForTasks(of version: SetVersionID, until next: Timestamp? = nil) async throws {
        try await database.write { db in
            try db.execute(
                """
                UPDATE set_version SET due_at = ?2 WHERE id = ?1 AND (state = 'expanding' \
                AND EXISTS (SELECT 1 FROM live WHERE task = list_task) OR state = 'fetching' AND open_files > 0 \
                AND NOT EXISTS (SELECT 1 FROM set_file WHERE version = ?1 AND state = 'listed'))
                """, version.rawValue, next?.milliseconds)
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
                (forgotten: $0.integer("forgotten"), switching: $0.integerOrNil("switching"))
            }
            guard let flags, let set = try self.read(id, db) else { return nil }
            return SetStanding(
                set: set, isForgotten: flags.forgotten > 0,
                keepsCurrent: flags.forgotten == Forgotten.keepsCurrent.rawValue,
                hasLeftDestination: flags.forgotten == Forgotten.hasLeft.rawValue,
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
                "SELECT revision, current, switching FROM file_set WHERE id = ?1 AND forgotten = 0", id.rawValue
            ) { row in
                (
                    revision: row.integer("revision"), current: row.integerOrNil("current"),
                    switching: row.integerOrNil("switching")
                )
            }
            guard let found, let row = try self.row(version, db), row.set == id, !row.isRemoving else {
                throw DomainError.notFound
            }
            if let revision, revision != found.revision { throw DomainError.revisionMismatch }
            guard row.version.state == .published else { throw DomainError.setVersionState(row.version.state) }
            // The destination may show the version of another switch already.
            if found.current == version.rawValue, found.switching == nil { return }
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
            if try db.exists("SELECT 1 FROM file_set WHERE id = ?1 AND current = ?2", id.rawValue, version.rawValue) {
                return try db.execute("UPDATE file_set SET switching = NULL, attempts = 0 WHERE id = ?1", id.rawValue)
            }
            try self.makeCurrent(row.version, transaction)
            try self.tell(row.version, .switched, transaction)
        }.1
    }

    /// Gives up a switch whose destination cannot show the version. The current version is to be shown again, because
    /// the destination may show the other one nevertheless.
    package func abandonSwitch(of id: SetID, to version: SetVersionID) async throws {
        try await database.write { db in
            try db.execute(
                """
                UPDATE file_set SET switching = CASE WHEN current <> ?2 THEN current END, attempts = 0 \
                WHERE id = ?1 AND switching = ?2
                """, id.rawValue, version.rawValue)
        }
    }

    func makeCurrent(_ version: SetVersionRecord, _ transaction: Transaction) throws {
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

    func tell(
        _ version: SetVersionRecord, _ cause: SetPublication.Cause, _ transaction: Transaction
    ) throws {
        // `didBecomeInvalid` stays the last event of an invalidated session.
        guard let session = try log(of: version, transaction), session.state.phase != .invalid else { return }
        let publication = try SetPublication {
            $0.name = try name(of: version.set, transaction.db)
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
    func log(of version: SetVersionRecord, _ transaction: Transaction) throws -> SessionEntry? {
        let exists = try transaction.db.exists(
            "SELECT 1 FROM session WHERE id = ?1 AND forgotten = 0", version.session.rawValue)
        guard exists else { return nil }
        let session = try transaction.session(version.session)
        return session.isForgotten ? nil : session
    }

    func name(of set: SetID, _ db: Connection) throws -> String {
        try db.first("SELECT name FROM file_set WHERE id = ?1", set.rawValue) { $0.text(0) } ?? ""
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
                AND replaced_at IS NOT NULL AND id <> (SELECT coalesce(switching, 0) FROM file_set WHERE id = ?1) \
                ORDER BY replaced_at DESC, id DESC
                """, id.rawValue
            ) { (id: SetVersionID($0.integer("id")), since: $0.time("replaced_at")) }
            var next: Timestamp?
            for version in old.dropFirst(Int(clamping: set.configuration.keep)) {
                let end = version.since + .seconds(set.configuration.grace)
                let due = held.contains(version.id) ? max(end, now + .seconds(10)) : end
                if due <= now {
                    try db.execute("UPDATE set_version SET removing = 1 WHERE id = ?1", version.id.rawValue)
                    try transaction.schedule(version.id)
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
    package func allVersions(of set: SetID) async throws -> [SetVersionRecord] {
        try await database.read { db in
            try db.all("SELECT id FROM set_version WHERE file_set = ?1 ORDER BY id", set.rawValue) {
                SetVersionID($0.integer(0))
            }.compactMap { try self.row($0, db)?.version }
        }
    }

    /// The versions whose files a destination has or may get.
    package func livingVersions(of set: SetID) async throws -> [SetVersionRecord] {
        try await database.read { db in
            try db.all(
                """
                SELECT id FROM set_version WHERE file_set = ?1 AND removing = 0 AND name IS NOT NULL \
                AND state IN ('fetching', 'verifying', 'publishing', 'published')
                """, set.rawValue
            ) { SetVersionID($0.integer(0)) }.compactMap { try self.row($0, db)?.version }
        }
    }

    /// Whether no other version of the set has the name, not even one whose files are being removed.
    package func isOnlyOne(_ version: SetVersionRecord) async throws -> Bool {
        try await database.read { db in
            try !db.exists(
                "SELECT 1 FROM set_version WHERE file_set = ?1 AND name = ?2 AND id <> ?3", version.set.rawValue,
                version.name, version.id.rawValue)
        }
    }

    /// Records that nothing is left to do at the destination of a deleted set.
    package func noteLeftDestination(_ id: SetID) async throws {
        try await database.write { db in
            try db.execute(
                "UPDATE file_set SET forgotten = ?2 WHERE id = ?1 AND forgotten > 0", id.rawValue,
                Forgotten.hasLeft.rawValue)
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
}
