package import Core
import SQL

extension Store.Tasks {
    /// Creates all tasks or none, in one commit. Costs one row in `task` and `live` for each.
    ///
    /// Discretionary tasks of an app without background refresh are cancelled in the same commit, like existing ones
    /// when refresh was denied: no node would ever run them.
    ///
    /// - Throws: ``DomainError/sessionInvalidated``, ``DomainError/clientTaskConflict(index:)``,
    ///   ``DomainError/tooManyTasks(limit:index:)``, ``DomainError/storedBytesExceeded(index:)``,
    ///   ``DomainError/bodyNotFound(index:)``, ``DomainError/destinationOfSet(index:)``,
    ///   ``DomainError/resumeDataSpent(index:)``.
    package func create(
        _ tasks: [NewTask], in id: SessionID, limit: Int64, storedLimit: Int64 = .max, at now: Timestamp,
        recording: Recording<[CreatedTask]>? = nil
    ) async throws -> ([CreatedTask], Aftermath) {
        try await transact(at: now) { [documents] transaction in
            let created = try self.create(tasks, in: id, limit: limit, storedLimit: storedLimit, transaction)
            try recording?.record(created, documents, now, transaction.db)
            return created
        }
    }

    func create(
        _ tasks: [NewTask], in id: SessionID, limit: Int64, storedLimit: Int64, _ transaction: Transaction
    ) throws -> [CreatedTask] {
        let session = try transaction.session(id)
        guard !session.isForgotten else { throw DomainError.sessionInvalidated }
        let refused = try store.sets.destinationsTaken(of: tasks, transaction.db)
        var (unfinished, storedBefore) = try usage(of: session.app, transaction.db)
        var batch = try batch(of: tasks, in: id, transaction.db)
        var created: [CreatedTask] = []
        created.reserveCapacity(tasks.count)
        for (index, task) in tasks.enumerated() {
            let item = try create(task, index: index, in: session, &batch, transaction)
            created.append(item)
            guard !item.isExisting else { continue }
            if refused.contains(index) { throw DomainError.destinationOfSet(index: index) }
            unfinished += 1
            // Includes the bodies of these tasks, without the bytes that their resume data kept.
            let stored = storedBefore + transaction.stored(of: session.app)
            if unfinished > limit { throw DomainError.tooManyTasks(limit: limit, index: index) }
            // The size of a download is unknown here: it needs at least one byte.
            let wanted = task.specification.bringsContent ? stored + 1 : stored
            if wanted > storedLimit { throw DomainError.storedBytesExceeded(index: index) }
        }
        try batch.flush(transaction.db)
        return try withoutForbidden(created, in: session, transaction)
    }

    /// The app's usage of its quotas: unfinished tasks, and stored bytes.
    func usage(of app: AppID, _ db: Connection) throws -> (unfinished: Int64, stored: Int64) {
        try db.first("SELECT unfinished_tasks, stored_bytes FROM app WHERE id = ?1", app.rawValue) {
            ($0.integer("unfinished_tasks"), $0.integer("stored_bytes"))
        } ?? (0, 0)
    }

    /// The new tasks, with those cancelled that no node may run.
    func withoutForbidden(
        _ created: [CreatedTask], in session: SessionEntry, _ transaction: Transaction
    ) throws -> [CreatedTask] {
        guard try store.apps.mayNotDefer(session, transaction.db) else { return created }
        return try created.map { item in
            guard !item.isExisting, let live = try transaction.live(item.task.id) else { return item }
            _ = try carryOut(.cancel(reason: 1), live, transaction)
            return CreatedTask(task: try read(item.task.id, transaction.db) ?? item.task, isExisting: false)
        }
    }

    /// Rows read ahead for tasks that are created together.
    struct CreationBatch {
        /// By origin.
        fileprivate var lanes: [String: Int64] = [:]
        /// By `clientTaskId`.
        fileprivate var existing: [String: (id: TaskID, fingerprint: [UInt8])] = [:]
        private var numbers: ArraySlice<Int64>
        private var tasks: [[(any SQLBindable)?]] = []
        private var lives: [[(any SQLBindable)?]] = []

        fileprivate init(numbers: [Int64]) { self.numbers = numbers[...] }

        fileprivate mutating func takeID() -> TaskID {
            guard let number = numbers.popFirst() else { preconditionFailure("more tasks than the batch has") }
            return TaskID(number)
        }

        fileprivate mutating func add(task: [(any SQLBindable)?], live: [(any SQLBindable)?]) {
            tasks.append(task)
            lives.append(live)
        }

        /// Inserts the rows of the tasks created since the last call.
        mutating func flush(_ db: Connection) throws {
            try db.executeAll(
                """
                INSERT INTO task (id, session, number, state, client_task_id, fingerprint, group_name, priority, \
                specification_document, created_at, started_at, app) \
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
                """, tasks)
            try db.executeAll(
                """
                INSERT INTO live (task, app, session, lane, number, kind, stage, priority, due_at, begins_at, \
                resource_deadline, resource_remaining, body, progress_document, set_version, adopts) \
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
                """, lives)
            (tasks, lives) = ([], [])
        }
    }

    func batch(of tasks: [NewTask], in session: SessionID, _ db: Connection) throws -> CreationBatch {
        var batch = CreationBatch(numbers: try db.newNumbers(tasks.count, of: "task"))
        batch.existing = try named(tasks.compactMap(\.specification.clientTaskId), in: session, db)
        return batch
    }

    /// The tasks of a session that have one of the names, by name.
    private func named(
        _ names: [String], in session: SessionID, _ db: Connection
    ) throws -> [String: (id: TaskID, fingerprint: [UInt8])] {
        let existing = try db.allOfEach(
            "SELECT id, fingerprint FROM task WHERE session = ?1 AND client_task_id = ?2",
            names.map { [session.rawValue, $0] }
        ) { (id: TaskID($0.integer("id")), fingerprint: $0.blob("fingerprint")) }
        var named: [String: (id: TaskID, fingerprint: [UInt8])] = [:]
        for (name, found) in zip(names, existing) { named[name] = found.first }
        return named
    }

    /// The positions of the requests that created a task already.
    package func repeated(_ tasks: [NewTask], in session: SessionID) async throws -> Set<Int> {
        try await database.read { db in
            let existing = try self.named(tasks.compactMap(\.specification.clientTaskId), in: session, db)
            return Set(
                tasks.indices.filter { index in
                    guard let name = tasks[index].specification.clientTaskId, let found = existing[name] else {
                        return false
                    }
                    return self.fingerprints(of: tasks[index]).contains(found.fingerprint)
                })
        }
    }

    /// The fingerprints that the task of a request may have: the one of this version, and that of earlier versions.
    private func fingerprints(of new: NewTask) -> [[UInt8]] {
        [new.fingerprint, new.formerFingerprint].compactMap { $0 }.map {
            documents.fingerprint(new.specification, $0, new.isSuspended)
        }
    }

    /// Creates one task, whose rows are written with those of its batch. A missing body leaves everything unchanged.
    func create(
        _ new: NewTask, index: Int, in session: SessionEntry, _ batch: inout CreationBatch, _ transaction: Transaction
    ) throws -> CreatedTask {
        let (db, now) = (transaction.db, transaction.now)
        var specification = new.specification
        let fingerprints = specification.clientTaskId == nil ? [] : self.fingerprints(of: new)
        let fingerprint = fingerprints.first
        if let existing = specification.clientTaskId.flatMap({ batch.existing[$0] }) {
            try batch.flush(db)
            return try repeated(existing, fingerprints, index: index, db)
        }
        guard session.state == .active else { throw DomainError.sessionInvalidated }
        // The repeated task has been deleted meanwhile.
        if new.isRepetition { throw DomainError.bodyNotFound(index: index) }
        if let nonce = new.resumeNonce {
            try spend(nonce, index: index, app: session.app, adopting: new.progress?.adoptedFile, transaction)
        }
        var body: Int64?
        if let source = new.body {
            let attached = try store.files.attach(source, index: index, app: session.app, transaction)
            (body, specification.body, specification.bodyLength) = (attached.row, attached.publicId, attached.length)
        }
        let number = session.nextTask
        session.nextTask += 1
        session.isChanged = true
        let life = TaskLife(
            isSuspended: new.isSuspended, beginsAt: specification.earliestBeginDate, timeout: session.resourceTimeout,
            at: now)
        let id = batch.takeID()
        if new.resumeNonce != nil, let upload = new.progress?.kept.parts { try adopt(upload, for: id, db) }
        if let name = specification.clientTaskId, let fingerprint { batch.existing[name] = (id, fingerprint) }
        if let original = specification.retryOf {
            try db.execute(
                "UPDATE task SET retried = 1 WHERE session = ?1 AND number = ?2", session.id.rawValue, original)
        }
        let lane = try batch.lanes[new.origin] ?? self.lane(new.origin, session, db)
        batch.lanes[new.origin] = lane
        let columns = LiveColumns(life)
        batch.add(
            task: [
                id.rawValue, session.id.rawValue, number, life.state.rawValue, specification.clientTaskId, fingerprint,
                specification.group, specification.priority,
                documents.encode(
                    specification, sealedAs: Self.context(session.id, number), if: specification.request.holdsSecrets),
                now.milliseconds, new.isSuspended ? nil : now.milliseconds, session.app.rawValue,
            ],
            live: [
                id.rawValue, session.app.rawValue, session.id.rawValue, lane, number,
                specification.kind.rawValue, columns.phase, specification.priority, columns.dueAt,
                specification.earliestBeginDate?.milliseconds, columns.deadline, columns.remaining, body,
                new.progress.map { documents.encode($0) }, new.setVersion?.rawValue, new.progress?.adoptedFile,
            ])
        transaction.follow(nil, life, lane: lane, of: session)
        return CreatedTask(
            task: TaskRecord(
                id: id, session: session.id, sessionIdentifier: session.identifier, app: session.app, number: number,
                life: life, specification: specification, progress: new.progress, createdAt: now,
                startedAt: new.isSuspended ? nil : now, revision: 1), isExisting: false)
    }

    /// The task that has the name already, where it was created by the same request.
    private func repeated(
        _ existing: (id: TaskID, fingerprint: [UInt8]), _ fingerprints: [[UInt8]], index: Int, _ db: Connection
    ) throws -> CreatedTask {
        guard fingerprints.contains(existing.fingerprint), let task = try read(existing.id, db) else {
            throw DomainError.clientTaskConflict(index: index)
        }
        return CreatedTask(task: task, isExisting: true)
    }

    func lane(_ origin: String, _ session: SessionEntry, _ db: Connection) throws -> Int64 {
        let existing = try db.first(
            "SELECT id FROM lane WHERE session = ?1 AND origin = ?2", session.id.rawValue, origin
        ) { $0.integer(0) }
        if let existing { return existing }
        guard let configuration = try store.sessions.read(session.id, db)?.configuration else {
            throw DomainError.notFound
        }
        return try db.insert(
            """
            INSERT INTO lane (app, session, origin, limit_per_host, background, conditions) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            """,
            session.app.rawValue, session.id.rawValue, origin, configuration.httpMaximumConnectionsPerHost,
            configuration.networkServiceType == .background, LaneConditions(configuration).rawValue)
    }

    static func context(_ session: SessionID, _ number: Int64) -> String { "task/\(session.rawValue)/\(number)" }
}
