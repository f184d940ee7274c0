package import Core
import Formats
import SQL

/// The changes of a version's state, from its list of files to its removal.
extension Store.Sets {
    /// - Returns: `nil` for a version that is gone.
    package func standing(of id: SetVersionID) async throws -> SetVersionStanding? {
        try await database.read { db in
            guard let row = try self.row(id, db), let set = try self.read(row.set, db) else { return nil }
            let newest =
                try db.first("SELECT newest FROM file_set WHERE id = ?1", row.set.rawValue) { $0.integer(0) } ?? 0
            return SetVersionStanding(
                version: row.version, set: set, isReceived: row.isReceived, isRemoving: row.isRemoving,
                hasLostSession: try store.sessions.read(row.session, db) == nil, isOvertaken: newest > id.rawValue,
                openFiles: row.openFiles, listTask: row.listTask,
                expansion: row.document.expansion, position: Int(clamping: row.document.position),
                attempts: row.attempts)
        }
    }

    /// Applies an event to the state of a version.
    ///
    /// - Parameters:
    ///   - detail: Why the version failed, unless its files did.
    ///   - isOfApp: Whether the event has no effect while readers may already see the version.
    /// - Returns: The version, whether or not the event had an effect.
    /// - Throws: ``DomainError/notFound``, ``DomainError/revisionMismatch``.
    package func handle(
        _ event: SetVersionState.Event, _ id: SetVersionID, detail: String? = nil, ifRevision revision: Int64? = nil,
        isOfApp: Bool = false, at now: Timestamp
    ) async throws -> (version: SetVersionRecord, aftermath: Aftermath) {
        try await transact(at: now) { transaction in
            let db = transaction.db
            guard let row = try self.row(id, db), !row.isRemoving else { throw DomainError.notFound }
            if let revision, revision != row.version.revision { throw DomainError.revisionMismatch }
            if !isOfApp || !row.version.isBeingShown { try self.apply(event, to: row, detail, transaction) }
            return try self.read(id, db).orNotFound()
        }
    }

    /// Records whether the destination may show a version.
    ///
    /// - Returns: False if the version is to be shown, but is not being published any more.
    @discardableResult
    package func note(mayBeShown: Bool, _ id: SetVersionID) async throws -> Bool {
        try await database.write { db in
            guard let row = try self.row(id, db), !mayBeShown || row.version.state == .publishing else { return false }
            guard row.document.mayBeShown != mayBeShown else { return true }
            var document = row.document
            document.mayBeShown = mayBeShown
            try self.write(document, of: row.version, db)
            return true
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
        // A version that was not received whole is not counted.
        let change = row.isReceived ? (state.isInFlight ? 1 : 0) - (row.version.state.isInFlight ? 1 : 0) : 0
        session?.book.versionsInFlight += Int64(change)
        if change != 0 { session?.isChanged = true }
        try db.execute(
            "UPDATE set_version SET state = ?2, ended_at = ?3, revision = revision + 1 WHERE id = ?1", id.rawValue,
            state.rawValue, state.isInFlight ? nil : transaction.now.milliseconds)
        try transaction.schedule(id)
        if row.document.failure != detail {
            var document = row.document
            document.failure = detail
            try write(document, of: row.version, db)
        }
        guard state == .failed, let session, let version = try read(id, db) else { return }
        let failures = try SetFailures {
            $0.name = try name(of: version.set, db)
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
            if try self.dropFiles(of: id, limit, transaction) { return true }
            var document = row.document
            document.position = 0
            try self.write(document, of: row.version, transaction.db)
            try transaction.db.execute(
                "UPDATE set_version SET files = 0, open_files = 0, bytes = 0 WHERE id = ?1", id.rawValue)
            return false
        }
    }

    /// Adds the rest of the current document to a version, and stores the state of the expansion after it.
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
                    document.expansion = expansion
                    try self.write(document, of: row.version, db)
                    return try self.apply(.overtaken, to: row, nil, transaction)
                }
                try db.execute("UPDATE set_version SET name = ?2 WHERE id = ?1", id.rawValue, commit)
            }
            document.expansion = expansion
            document.position = 0
            try self.write(document, of: row.version, db)
            try self.add(files, to: id, db)
            try db.execute("UPDATE set_version SET list_task = NULL WHERE id = ?1", id.rawValue)
            try transaction.schedule(id)
            if expansion.isComplete { try self.apply(.listed, to: self.row(id, db).orNotFound(), nil, transaction) }
        }.1
    }

    /// Records that files differ from their digests.
    package func fail(_ files: [(path: String, detail: String)], of id: SetVersionID, at now: Timestamp) async throws
        -> Aftermath
    {
        try await transact(at: now) { transaction in
            guard try self.row(id, transaction.db)?.version.state == .verifying else { return }
            for file in files { try self.refuse(file.path, of: id, file.detail, transaction) }
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
    ///
    /// - Returns: False if the app has retried it meanwhile.
    package func beginRemoval(of id: SetVersionID) async throws -> Bool {
        try await database.write { db in
            guard let row = try self.row(id, db), !row.version.state.isInFlight else { return false }
            try db.execute("UPDATE set_version SET removing = 1 WHERE id = ?1", id.rawValue)
            return true
        }
    }

    /// Removes rows of a version, at most about `limit`; its own row last.
    ///
    /// - Returns: Whether there are more.
    package func remove(_ id: SetVersionID, limit: Int, at now: Timestamp) async throws -> (Bool, Aftermath) {
        try await transact(at: now) { transaction in
            if try self.dropFiles(of: id, limit, transaction) { return true }
            try transaction.db.execute("DELETE FROM set_version WHERE id = ?1", id.rawValue)
            return false
        }
    }
}
