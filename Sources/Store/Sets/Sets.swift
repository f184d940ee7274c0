package import Core
import SQL

/// How a deleted set treats its destination.
enum Forgotten: Int64 {
    case removesFiles = 1
    /// The files of the current version stay.
    case keepsCurrent = 2
    /// Nothing is left to do at the destination.
    case hasLeft = 3
}

extension Store.Sets {
    /// Creates or changes a set of an app.
    ///
    /// - Parameter revision: The set's revision that the caller expects, or `nil`.
    /// - Throws: ``DomainError/setHasVersions``, ``DomainError/setDestinationTaken``,
    ///   ``DomainError/setLayoutNeedsFolder``, ``DomainError/revisionMismatch``, ``DomainError/notFound`` if a revision is
    ///   expected of a set that does not exist.
    package func put(
        _ name: String, of app: AppID, ifRevision revision: Int64?, at now: Timestamp,
        change: @escaping @Sendable (inout SetConfiguration) -> Void
    ) async throws -> (set: SetRecord, isNew: Bool, aftermath: Aftermath) {
        let ((set, isNew), aftermath) = try await transact(at: now) { [documents] transaction in
            let db = transaction.db
            guard let set = try self.read(name, of: app, db) else {
                guard revision == nil else { throw DomainError.notFound }
                var configuration = SetConfiguration()
                change(&configuration)
                try self.checkPlace(of: configuration, but: nil, db)
                let id = try db.insert(
                    """
                    INSERT INTO file_set (app, name, configuration_document, place, created_at) \
                    VALUES (?1, ?2, ?3, ?4, ?5)
                    """, app.rawValue, name, documents.encode(configuration), configuration.place, now.milliseconds)
                return (try self.read(SetID(id), db).orNotFound(), true)
            }
            if let revision, revision != set.revision { throw DomainError.revisionMismatch }
            var configuration = set.configuration
            change(&configuration)
            guard configuration != set.configuration else { return (set, false) }
            let moves =
                configuration.destination != set.configuration.destination
                || configuration.layout != set.configuration.layout
            if moves {
                if try self.hasVersions(set.id, db) { throw DomainError.setHasVersions }
                try self.checkPlace(of: configuration, but: set.id, db)
                try db.execute(
                    "UPDATE file_set SET place = ?2 WHERE id = ?1", set.id.rawValue, configuration.place)
            }
            // Fewer versions may be kept from now on.
            try db.execute(
                """
                UPDATE file_set SET configuration_document = ?2, revision = revision + 1, due_at = ?3 WHERE id = ?1
                """, set.id.rawValue, documents.encode(configuration), now.milliseconds)
            transaction.aftermath.hasDueSets = true
            return (try self.read(set.id, db).orNotFound(), false)
        }
        return (set, isNew, aftermath)
    }

    private func checkPlace(of configuration: SetConfiguration, but set: SetID?, _ db: Connection) throws {
        if configuration.layout == .hfCache, configuration.destination?.root == nil {
            throw DomainError.setLayoutNeedsFolder
        }
        // Those of the sets that share a cache of huggingface_hub are below it.
        if let folder = configuration.folder,
            try neighbours(of: folder, orBelow: configuration.layout == .versions, but: set, db).contains(0)
        {
            throw DomainError.setDestinationTaken
        }
    }

    /// The other sets whose places are equal to a folder, above it or below it, as values of ``Forgotten``: 0 for a set
    /// that is not deleted.
    private func neighbours(
        of folder: String, orBelow: Bool = true, but set: SetID?, _ db: Connection
    ) throws -> [Int64] {
        let (own, places) = (set?.rawValue ?? 0, SetPlace.ancestors(of: folder) + [folder])
        let above = try db.allOfEach(
            "SELECT forgotten FROM file_set WHERE place = ?1 AND id <> ?2", places.map { [$0, own] }
        ) { $0.integer(0) }
        guard orBelow else { return Array(above.joined()) }
        let below = try db.all(
            "SELECT forgotten FROM file_set WHERE place > ?1 || '/' AND place < ?1 || '0' AND id <> ?2", folder, own
        ) { $0.integer(0) }
        return above.joined() + below
    }

    /// The indexes of tasks that would write among the published files of a set.
    func destinationsTaken(of tasks: [NewTask], _ db: Connection) throws -> Set<Int> {
        let owners = tasks.enumerated().flatMap { index, task in
            SetPlace.owners(of: task.specification.place ?? "").map { (index: index, place: $0) }
        }
        let found = try db.allOfEach(
            "SELECT id FROM file_set WHERE place = ?1 AND forgotten = 0 LIMIT 1", owners.map { [$0.place] }
        ) { $0.integer(0) }
        return Set(zip(owners, found).filter { !$0.1.isEmpty }.map(\.0.index))
    }

    /// Reserves the folder of a repository in the cache of huggingface_hub: its blobs are removed with their last version.
    ///
    /// - Throws: ``DomainError/setRepositoryTaken``.
    func reserve(_ source: SetSource, for set: SetRecord, _ db: Connection) throws {
        guard let place = set.configuration.place(of: source) else { return }
        if try neighbours(of: place, but: set.id, db).contains(0) { throw DomainError.setRepositoryTaken }
        try db.execute(
            "UPDATE file_set SET place = ?2 WHERE id = ?1 AND place IS NULL", set.id.rawValue, place)
        let isOwn = try db.exists("SELECT 1 FROM file_set WHERE id = ?1 AND place = ?2", set.id.rawValue, place)
        if !isOwn { throw DomainError.setRepositoryTaken }
    }

    /// Whether the files of a deleted set still have to be removed from the destination of this one.
    package func isOccupied(_ set: SetID) async throws -> Bool {
        try await database.read { db in
            let found = try db.value("SELECT place FROM file_set WHERE id = ?1", set.rawValue) { $0.textOrNil("place") }
            guard case let place?? = found else { return false }
            return try self.neighbours(of: place, but: set, db).contains { $0 > 0 }
        }
    }

    private func hasVersions(_ set: SetID, _ db: Connection) throws -> Bool {
        try db.exists(
            """
            SELECT 1 FROM set_version WHERE file_set = ?1 AND name IS NOT NULL AND state <> 'failed' \
            AND state <> 'cancelled' LIMIT 1
            """, set.rawValue)
    }

    package func read(_ name: String, of app: AppID) async throws -> SetRecord {
        try await database.read { db in try self.read(name, of: app, db).orNotFound() }
    }

    private func read(_ name: String, of app: AppID, _ db: Connection) throws -> SetRecord? {
        let id = try db.first(
            "SELECT id FROM file_set WHERE app = ?1 AND name = ?2 AND forgotten = 0", app.rawValue, name
        ) { SetID($0.integer(0)) }
        return try id.flatMap { try read($0, db) }
    }

    /// A set with the versions that readers see.
    func read(_ id: SetID, _ db: Connection) throws -> SetRecord? {
        let found = try db.first(
            "SELECT app, name, configuration_document, current, created_at, revision FROM file_set WHERE id = ?1",
            id.rawValue
        ) { row in
            (
                set: SetRecord(
                    id: id, app: AppID(row.integer("app")), name: row.text("name"),
                    configuration: try documents.decode(SetConfiguration.self, row.blob("configuration_document")),
                    createdAt: row.time("created_at"), revision: row.integer("revision")),
                current: row.integerOrNil("current")
            )
        }
        guard let found else { return nil }
        var set = found.set
        let kept = try db.all(
            """
            SELECT id FROM set_version WHERE file_set = ?1 AND state = 'published' AND removing = 0 \
            ORDER BY id DESC LIMIT ?2
            """, id.rawValue, Self.shownVersions
        ) { SetVersionID($0.integer(0)) }
        set.current = try found.current.flatMap { try read(SetVersionID($0), db) }
        set.kept =
            try [set.current].compactMap { $0 }
            + kept.filter { $0.rawValue != found.current }.compactMap {
                try read($0, db)
            }
        return set
    }

    /// The versions that a set shows. The others are in the list of versions.
    private static let shownVersions = 100

    package func list(
        of app: AppID, _ span: ListSpan, after position: Int64, limit: Int
    ) async throws -> [SetRecord] {
        try await database.read { db in
            let stretch = try span.stretch(
                after: position,
                db.positions("SELECT id, created_at FROM file_set WHERE id >= ?1 ORDER BY id LIMIT 1"))
            let ids = try db.all(
                """
                SELECT id FROM file_set WHERE app = ?1 AND forgotten = 0 AND id > ?2 AND id < ?3 \
                ORDER BY id ASC LIMIT ?4
                """, app.rawValue, stretch.low, stretch.high, limit, descending: span.isDescending
            ) { SetID($0.integer(0)) }
            return try ids.compactMap { try self.read($0, db) }
        }
    }

    /// Hides a set from its readers. The work on sets removes its versions and files.
    ///
    /// - Throws: ``DomainError/notFound``, ``DomainError/revisionMismatch``.
    package func forget(
        _ id: SetID, keepsFiles: Bool, ifRevision revision: Int64?, at now: Timestamp
    ) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let found = try transaction.db.first(
                "SELECT revision FROM file_set WHERE id = ?1 AND forgotten = 0", id.rawValue
            ) { $0.integer(0) }.orNotFound()
            if let revision, revision != found { throw DomainError.revisionMismatch }
            let forgotten = keepsFiles ? Forgotten.keepsCurrent : .removesFiles
            try transaction.db.execute(
                "UPDATE file_set SET forgotten = ?2, switching = NULL, due_at = ?3, attempts = 0 WHERE id = ?1",
                id.rawValue, forgotten.rawValue, now.milliseconds)
            transaction.aftermath.hasDueSets = true
        }.1
    }

    /// Hides sets of a deleted app, up to `limit`.
    ///
    /// - Returns: Whether the app still has sets.
    func forgetSets(of app: AppID, _ limit: Int, _ transaction: Transaction) throws -> Bool {
        let db = transaction.db
        let hidden = try db.change(
            """
            UPDATE file_set SET forgotten = 1, switching = NULL, due_at = ?2 WHERE id IN \
            (SELECT id FROM file_set WHERE app = ?1 AND forgotten = 0 LIMIT ?3)
            """, app.rawValue, transaction.now.milliseconds, limit)
        if hidden > 0 { transaction.aftermath.hasDueSets = true }
        return try db.exists("SELECT 1 FROM file_set WHERE app = ?1", app.rawValue)
    }
}
