package import Core
import SQL

extension Store.Tasks {
    /// - Throws: ``DomainError/notFound``.
    package func read(_ number: Int64, in session: SessionID) async throws -> TaskRecord {
        try await database.read { db in
            try Self.taskID(number, session, db).flatMap { try self.read($0, db) }.orNotFound()
        }
    }

    /// A task of the session with this identifier.
    ///
    /// - Throws: ``DomainError/notFound``.
    package func read<Known>(
        _ number: Int64, in session: String, of app: AppID, known: @escaping @Sendable (TaskStamp) -> Known?
    ) async throws -> FoundTask<Known> {
        try await database.read { db in
            let id = try db.first(
                """
                SELECT t.id FROM session s JOIN task t ON t.session = s.id AND t.number = ?3 \
                WHERE s.app = ?1 AND s.identifier = ?2 AND s.forgotten = 0
                """, app.rawValue, session, number
            ) { TaskID($0.integer(0)) }
            return try id.flatMap { try self.find($0, db, known: known) }.orNotFound()
        }
    }

    package func read(_ id: TaskID) async throws -> TaskRecord {
        try await database.read { db in try self.read(id, db).orNotFound() }
    }

    /// The unfinished tasks of a set. Costs one row for each.
    package func unfinished(among tasks: Set<TaskID>) async throws -> Set<TaskID> {
        try await database.read { db in
            try tasks.filter { try db.exists("SELECT 1 FROM live WHERE task = ?1", $0.rawValue) }
        }
    }

    package func isUnfinished(_ task: TaskID) async throws -> Bool {
        try await database.read { db in try db.exists("SELECT 1 FROM live WHERE task = ?1", task.rawValue) }
    }

    /// Whether a task is not completed and this node has claimed it.
    package func isHeld(_ task: TaskID) async throws -> Bool {
        try await database.read { [node] db in
            try db.exists(
                "SELECT 1 FROM live WHERE task = ?1 AND COALESCE(node, '') = ?2", task.rawValue, node ?? "")
        }
    }

    /// Whether another node has claimed the task and not released it.
    package func isTaken(_ task: TaskID) async throws -> Bool {
        guard let node else { return false }
        return try await database.read { db in
            try db.exists("SELECT 1 FROM live WHERE task = ?1 AND node <> ?2", task.rawValue, node)
        }
    }

    /// - Throws: ``DomainError/notFound``.
    package func name(of task: TaskID) async throws -> TaskName {
        try await database.read { db in
            try db.first(
                """
                SELECT a.identifier AS app, s.identifier AS session, t.number, t.client_task_id FROM task t \
                JOIN session s ON s.id = t.session JOIN app a ON a.id = s.app WHERE t.id = ?1
                """, task.rawValue
            ) { row in
                TaskName(
                    app: row.text("app"), session: row.text("session"), number: row.integer("number"),
                    clientTaskId: row.textOrNil("client_task_id"))
            }
        }.orNotFound()
    }

    static func taskID(_ number: Int64, _ session: SessionID, _ db: Connection) throws -> TaskID? {
        try db.first("SELECT id FROM task WHERE session = ?1 AND number = ?2", session.rawValue, number) {
            TaskID($0.integer(0))
        }
    }

    /// Identifiers and numbers of up to `limit` matching tasks, in the order of their numbers or the newest first.
    static func taskIDs(
        _ session: SessionID, _ filter: TaskFilter, after number: Int64, below end: Int64 = .max,
        descending: Bool = false, limit: Int, _ db: Connection
    ) throws -> [(TaskID, Int64)] {
        guard let numbers = filter.numbers else {
            return try merged(filter, by: \.1, inOrder: descending ? (>) : (<), limit: limit) {
                try taskIDs(session, $0, after: number, below: end, descending: descending, limit: limit, db)
            }
        }
        var found: [(TaskID, Int64)] = []
        let inSpan = numbers.filter { $0 > number && $0 < end }
        for wanted in inSpan.sorted(by: descending ? (>) : (<)) where found.count < limit {
            for alternative in filter.alternatives {
                found += try taskIDs(
                    session, alternative, after: wanted - 1, below: wanted + 1, descending: false, limit: 1, db)
            }
        }
        return found
    }

    /// The first results over all alternatives of the filter, each of which is read in order.
    static func merged<Found, Key: Comparable>(
        _ filter: TaskFilter, by key: (Found) -> Key, inOrder precedes: (Key, Key) -> Bool = { $0 < $1 }, limit: Int,
        find: (TaskFilter.Alternative) throws -> [Found]
    ) rethrows -> [Found] {
        let alternatives = filter.alternatives
        let found = try alternatives.flatMap(find)
        guard alternatives.count > 1 else { return found }
        return Array(found.sorted { precedes(key($0), key($1)) }.prefix(limit))
    }

    /// The matching tasks of one alternative, by the most selective index that it allows.
    private static func taskIDs(
        _ session: SessionID, _ filter: TaskFilter.Alternative, after number: Int64, below end: Int64,
        descending: Bool, limit: Int, _ db: Connection
    ) throws -> [(TaskID, Int64)] {
        let state = filter.state?.rawValue
        let outcome = filter.outcome?.rawValue
        if let clientTaskId = filter.clientTaskId {
            return try db.all(
                """
                SELECT id, number FROM task WHERE session = ?1 AND client_task_id = ?2 AND number > ?3 \
                AND (state = ?4 OR ?4 IS NULL) AND (outcome = ?5 OR ?5 IS NULL) \
                AND (group_name = ?6 OR ?6 IS NULL) AND number < ?7 LIMIT 1
                """, session.rawValue, clientTaskId, number, state, outcome, filter.group, end, read: readID)
        }
        if let group = filter.group {
            return try db.all(
                """
                SELECT id, number FROM task WHERE session = ?1 AND group_name = ?2 AND number > ?3 \
                AND (state = ?4 OR ?4 IS NULL) AND (outcome = ?5 OR ?5 IS NULL) AND number < ?7 \
                ORDER BY number ASC LIMIT ?6
                """, session.rawValue, group, number, state, outcome, limit, end, descending: descending, read: readID)
        }
        if let outcome, outcome != Outcome.succeeded.rawValue {
            return try db.all(
                """
                SELECT id, number FROM task WHERE session = ?1 AND outcome = ?2 AND outcome <> 'succeeded' AND number > ?3 \
                AND number < ?6 AND (state = ?4 OR ?4 IS NULL) ORDER BY number ASC LIMIT ?5
                """, session.rawValue, outcome, number, state, limit, end, descending: descending, read: readID)
        }
        if let state, state != TaskState.completed.rawValue {
            return try db.all(
                """
                SELECT t.id, t.number FROM live l JOIN task t ON t.id = l.task \
                WHERE l.session = ?1 AND l.number > ?2 AND l.number < ?6 AND t.state = ?3 AND (t.outcome = ?4 OR ?4 IS NULL) \
                ORDER BY l.number ASC LIMIT ?5
                """, session.rawValue, number, state, outcome, limit, end, descending: descending, read: readID)
        }
        return try db.all(
            """
            SELECT id, number FROM task WHERE session = ?1 AND number > ?2 AND number < ?6 AND (state = ?3 OR ?3 IS NULL) \
            AND (outcome = ?4 OR ?4 IS NULL) ORDER BY number ASC LIMIT ?5
            """, session.rawValue, number, state, outcome, limit, end, descending: descending, read: readID)
    }

    static func readID(_ row: Row) -> (TaskID, Int64) {
        (TaskID(row.integer("id")), row.integer("number"))
    }

    func read(_ id: TaskID, _ db: Connection) throws -> TaskRecord? {
        try find(id, db, known: { _ in Never?.none })?.record
    }

    func find<Known>(
        _ id: TaskID, _ db: Connection, known: (TaskStamp) -> Known?
    ) throws -> FoundTask<Known>? {
        try db.first(
            """
            SELECT t.session, t.number, t.state, t.outcome, t.specification_document, t.result_document, \
            t.created_at, t.started_at, t.completed_at, t.revision, l.stage, l.due_at, l.resource_deadline, \
            l.resource_remaining, l.question, l.disk_needed, l.disk_kept, l.disk_not_before, l.progress_document, c.length, c.algorithm, c.digest, \
            coalesce((SELECT at + ?2 FROM acknowledgement WHERE session = c.session AND through >= c.seq \
            ORDER BY through LIMIT 1), c.expires_at) AS expires_at, c.expired, s.app, s.identifier, q.public_id AS question_id, l.crashes \
            FROM task t JOIN session s ON s.id = t.session JOIN app a ON a.id = s.app LEFT JOIN live l ON l.task = t.id \
            LEFT JOIN question q ON q.id = l.question LEFT JOIN content c ON c.task = t.id \
            WHERE t.id = ?1 AND s.forgotten = 0
            """, id.rawValue, policies.contentRetention.milliseconds
        ) { row in
            if row.isNull("stage"), let known = known(TaskStamp(id, row)) { return .known(known) }
            let session = SessionID(row.integer("session"))
            let number = row.integer("number")
            var task = TaskRecord(
                id: id, session: session, sessionIdentifier: row.text("identifier"), app: AppID(row.integer("app")),
                number: number, life: try TaskLife(row, documents),
                specification: try documents.decode(
                    TaskSpecification.self, row.blob("specification_document"), sealedAs: Self.context(session, number)),
                progress: try row.blobOrNil("progress_document").map { try documents.decode(TaskProgress.self, $0) },
                content: row.isNull("length") ? nil : try ContentRecord(row, expiresAt: row.timeOrNil("expires_at")),
                createdAt: row.time("created_at"), startedAt: row.timeOrNil("started_at"),
                revision: row.integer("revision"))
            task.crashes = row.int("crashes")
            if task.phase == .following { task.leader = try store.cache.leader(of: id, db) }
            return .read(task)
        }
    }
}

extension TaskStamp {
    /// The stamp of a completed task.
    fileprivate init(_ task: TaskID, _ row: Row) {
        self.init(
            task: task, revision: row.integer("revision"), contentExpiresAt: row.timeOrNil("expires_at"),
            isContentExpired: row.bool("expired"))
    }
}
