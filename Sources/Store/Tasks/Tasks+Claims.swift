package import Core
import SQL

/// A claimed task, with the data that its transfer needs. A class, because it is large, immutable and passed on often.
package final class ClaimedTask: Sendable {
    package let id: TaskID
    package let session: SessionID
    package let app: AppID
    package let number: Int64
    package let lane: Int64
    package let specification: TaskSpecification
    package let progress: TaskProgress
    package let body: BodyLocation?
    /// The row of a body in objects, which ``Store/Tasks/withBody(_:)`` reads.
    fileprivate let bodyRow: Int64?
    package let resourceDeadline: Timestamp?

    package init(
        id: TaskID, session: SessionID, app: AppID, number: Int64, lane: Int64, specification: TaskSpecification,
        progress: TaskProgress, body: BodyLocation?, bodyRow: Int64? = nil, resourceDeadline: Timestamp?
    ) {
        self.id = id
        self.session = session
        self.app = app
        self.number = number
        self.lane = lane
        self.specification = specification
        self.progress = progress
        self.body = body
        self.bodyRow = bodyRow
        self.resourceDeadline = resourceDeadline
    }
}

/// What the transfers of a session need to begin.
package struct ClaimedSession: Sendable {
    package let id: SessionID
    package let app: AppID
    package let appIdentifier: String
    package let identifier: String
    package let configuration: SessionConfiguration
    package let revision: Int64
    package let cookies: [String]
    /// Whether the app has stored credentials.
    package let hasCredentials: Bool
}

/// What a commit of the scheduler claimed.
package struct Claimed: Sendable {
    /// `nil` if the commit succeeded but its response was lost (``Store/Tasks/takeBack(but:at:)``).
    package var tasks: [ClaimedTask]?
    /// The sessions of the tasks that the caller did not know.
    package var sessions: [ClaimedSession] = []
    /// The claimed tasks whose documents cannot be read, because the master key differs.
    package var unreadable: [TaskID] = []
    /// The new position in the queue.
    package var cursor: QueueCursor
    /// Whether a whole round is done.
    package var isWhole = false
    package var aftermath: Aftermath
}

/// The columns of a claimed task's session, with its documents not decoded.
private struct SessionRow: Sendable {
    let id: SessionID
    let app: AppID
    let appIdentifier: String
    let identifier: String
    let configuration: [UInt8]
    let revision: Int64
    let jar: [UInt8]?
    let hasCredentials: Bool

    static func ask(_ sessions: [SessionID], _ db: Connection) throws -> Asked<SessionRow> {
        try db.ask(
            """
            SELECT s.id, s.app, a.identifier AS app_identifier, s.identifier, s.configuration_document, s.revision, \
            (SELECT jar FROM cookie_jar WHERE session = s.id) AS jar, \
            EXISTS (SELECT 1 FROM credential WHERE app = s.app) AS has_credentials \
            FROM session s JOIN app a ON a.id = s.app WHERE s.id = ?1 AND s.forgotten = 0
            """, sessions.map { [$0.rawValue] }
        ) { SessionRow($0) }
    }

    private init(_ row: Row) {
        id = SessionID(row.integer("id"))
        app = AppID(row.integer("app"))
        appIdentifier = row.text("app_identifier")
        identifier = row.text("identifier")
        configuration = row.blob("configuration_document")
        revision = row.integer("revision")
        jar = row.blobOrNil("jar")
        hasCredentials = row.bool("has_credentials")
    }
}

/// A claimed task's row, with its documents not decoded.
private struct TakenRow: Sendable {
    let id: TaskID
    let number: Int64
    let specification: [UInt8]
    let progress: [UInt8]?
    let body: Int64?
    /// `nil` for no body, and for a body in objects.
    let location: BodyLocation?
    let resourceDeadline: Timestamp?

    init(_ row: Row) {
        id = TaskID(row.integer("task"))
        number = row.integer("number")
        body = row.integerOrNil("body")
        location = BodyLocation.Storage(row).flatMap { storage in
            row.integerOrNil("length").map {
                BodyLocation(
                    storage: storage, length: $0, digest: row.text("digest"), mediaType: row.textOrNil("media_type"))
            }
        }
        progress = row.blobOrNil("progress_document")
        resourceDeadline = row.timeOrNil("resource_deadline")
        specification = row.blob("specification_document")
    }
}

/// A row with the lane that it was claimed from.
private typealias TakenTask = (row: TakenRow, lane: QueuedLane)

/// Rows requested with the statement that claims them, the lane of each list of rows, and their sessions.
private struct Taking {
    var lanes: [QueuedLane] = []
    var rows: Asked<TakenRow>?
    var sessions: Asked<SessionRow>?

    func get() throws -> (tasks: [TakenTask], sessions: [SessionRow]) {
        let tasks = try zip(rows?.get() ?? [], lanes).flatMap { rows, lane in
            rows.map { ($0, lane) }.sorted { $0.0.number < $1.0.number }
        }
        return (tasks, try sessions?.get().flatMap(\.self) ?? [])
    }
}

extension Store.Tasks {
    /// Settles attempts and claims the next tasks from the queue, in one commit.
    ///
    /// Reads at most ``laneWindow`` lanes, and one row for each claimed task. The length of the queue does not matter.
    ///
    /// - Parameters:
    ///   - sessions: The probable sessions of the settled tasks.
    ///   - cookies: Changes of cookie jars. One row each.
    ///   - pauses: Pauses that origins have requested. One row each.
    ///   - cursor: The position in the queue.
    ///   - sieve: Decides which lanes may start at all.
    ///   - isKnown: Whether the caller has the lane's session as of its revision.
    ///   - pick: Chooses the tasks to claim. Pure.
    package func advance(
        settling settlements: [Settlement], of sessions: Set<SessionID> = [], cookies: [SessionID: CookieChange] = [:],
        pauses: [OriginPause] = [], after cursor: QueueCursor, through sieve: QueueSieve, at now: Timestamp,
        isKnown: @escaping @Sendable (QueuedLane) -> Bool = { _ in false }, pick: @escaping @Sendable (Queue) -> Claim
    ) async throws -> Claimed {
        let (result, aftermath) = try await transactThenRead(at: now) { transaction in
            // All reads are sent first. The next round sees what these settlements queue.
            let due = try self.askDueTasks(transaction)
            var asked = try self.askQueue(after: cursor, transaction.db)
            try self.settle(settlements, of: sessions, transaction)
            for (session, change) in cookies { try store.sessions.save(change, of: session, at: now, transaction.db) }
            try self.save(pauses, transaction.db)
            if try self.promote(due, transaction) {
                try transaction.flushCounters()
                asked = try self.askQueue(after: cursor, transaction.db)
            }
            var after = cursor
            let (queue, isWhole) = try self.queue(asked, after: &after, through: sieve, transaction.db)
            var (taking, cursor) = (try self.claim(pick(queue), of: queue, transaction), after)
            let sessions = Set(taking.lanes.filter { !isKnown($0) }.map(\.session))
            if !sessions.isEmpty { taking.sessions = try SessionRow.ask(Array(sessions), transaction.db) }
            return { [taking] in (taken: try taking.get(), cursor: cursor, isWhole: isWhole) }
        }
        guard let result = try? result.get() else { return Claimed(cursor: cursor, aftermath: aftermath) }
        var claimed = Claimed(cursor: result.cursor, isWhole: result.isWhole, aftermath: aftermath)
        claimed.sessions = result.taken.sessions.compactMap { try? self.claimed($0) }
        var tasks: [ClaimedTask] = []
        for taken in result.taken.tasks {
            do {
                tasks.append(try self.claimed(taken))
            } catch {
                claimed.unreadable.append(taken.row.id)
            }
        }
        claimed.tasks = tasks
        return claimed
    }

    /// A session as it comes with its claimed tasks.
    ///
    /// - Throws: ``DomainError/notFound``.
    package func claimedSession(_ session: SessionID) async throws -> ClaimedSession {
        let row = try await database.read { db in try SessionRow.ask([session], db).get()[0].first }
        return try claimed(row.orNotFound())
    }

    /// Decodes the documents of a session, off the writer's thread.
    private func claimed(_ row: SessionRow) throws -> ClaimedSession {
        ClaimedSession(
            id: row.id, app: row.app, appIdentifier: row.appIdentifier, identifier: row.identifier,
            configuration: try documents.decode(
                SessionConfiguration.self, row.configuration,
                sealedAs: Store.Sessions.context(row.app, row.identifier)),
            revision: row.revision,
            cookies: try row.jar.map {
                try documents.decode([String].self, $0, sealedAs: Store.Sessions.cookieContext(row.id))
            } ?? [],
            hasCredentials: row.hasCredentials)
    }

    /// Requeues tasks that the store assigns to this node although it does not transfer them.
    ///
    /// - Parameter known: The tasks that this node transfers.
    package func takeBack(but known: Set<TaskID>, at now: Timestamp) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let own = try transaction.db.all(
                "SELECT task FROM live WHERE stage = 'active' AND node = ?1 ORDER BY task", self.node
            ) { TaskID($0.integer("task")) }
            return try self.recover(own.filter { !known.contains($0) }, .lostClaim, transaction)
        }.1
    }

    /// Settles attempts, and claims nothing.
    package func settle(
        _ settlements: [Settlement], of sessions: Set<SessionID> = [], cookies: [SessionID: CookieChange] = [:],
        pauses: [OriginPause] = [], at now: Timestamp
    ) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let due = try self.askDueTasks(transaction)
            try self.settle(settlements, of: sessions, transaction)
            for (session, change) in cookies { try store.sessions.save(change, of: session, at: now, transaction.db) }
            try self.save(pauses, transaction.db)
            _ = try self.promote(due, transaction)
        }.1
    }

    /// Queries due tasks, up to 500 at a time.
    private func askDueTasks(_ transaction: Transaction) throws -> Asked<TaskID> {
        try transaction.db.ask(
            "SELECT task FROM live WHERE due_at <= ?1 ORDER BY due_at, task LIMIT 500",
            [[transaction.now.milliseconds]]
        ) { TaskID($0.integer(0)) }
    }

    /// Queues due tasks.
    ///
    /// - Returns: Whether there were any.
    private func promote(_ due: Asked<TaskID>, _ transaction: Transaction) throws -> Bool {
        let due = try due.get()[0]
        if due.isEmpty { return false }
        try transaction.flushCompleted()
        try transaction.preread(due)
        try transaction.forEachLive(due) { try move($0, .due, transaction) }
        return true
    }

    private func claim(_ claim: Claim, of queue: Queue, _ transaction: Transaction) throws -> Taking {
        // A settlement of this commit may have completed a task that is queued.
        try transaction.flushCompleted()
        switch claim {
        case .alone(let task, let lane): return try self.claim(alone: task, of: lane, transaction)
        case .tasks(let grants):
            let lanes = Dictionary(queue.lanes.map { ($0.id, $0) }) { first, _ in first }
            return try self.claim(grants.compactMap { id, count in lanes[id].map { ($0, count) } }, transaction)
        }
    }

    private func claim(_ grants: [(lane: QueuedLane, count: Int)], _ transaction: Transaction) throws -> Taking {
        let db = transaction.db
        let open = try grants.filter { lane, count in
            guard count > 0 else { return false }
            guard lane.isForgotten else { return true }
            // The janitor has not removed the lane yet. The next lane gets the turn.
            _ = try store.upkeep.emptyLanes(of: lane.session, Self.laneWindow, db)
            transaction.aftermath.hasQueuedTasks = true
            return false
        }
        if open.isEmpty { return Taking() }
        try transaction.flushCounters()
        // Subtracts as many as the next statement claims.
        try db.executeAll(
            """
            UPDATE lane SET served_at = ?4, queued = (SELECT CASE WHEN lane.queued > count(*) \
            THEN lane.queued - count(*) ELSE 0 END FROM (SELECT 1 FROM live l WHERE l.lane = ?1 AND l.stage = 'queued' \
            AND (l.node IS NULL OR l.node = ?3) LIMIT ?2) AS next) WHERE id = ?1
            """, open.map { [$0.lane.id, $0.count, node, transaction.now.milliseconds] })
        let phase = try Self.phase(ofClaimed: .queued, transaction.now)
        let rows = try db.ask(
            """
            UPDATE live SET stage = ?3, node = ?4 WHERE task IN (SELECT task FROM live WHERE lane = ?1 \
            AND stage = 'queued' AND (node IS NULL OR node = ?4) ORDER BY priority DESC, number LIMIT ?2) \
            RETURNING task, number, body, progress_document, resource_deadline, \
            (SELECT specification_document FROM task WHERE id = live.task) AS specification_document, \
            (SELECT length FROM body WHERE id = live.body) AS length, \
            (SELECT bytes FROM body WHERE id = live.body) AS bytes, \
            (SELECT file FROM body WHERE id = live.body) AS file, \
            (SELECT digest FROM body WHERE id = live.body) AS digest, \
            (SELECT media_type FROM body WHERE id = live.body) AS media_type
            """, open.map { [$0.lane.id, $0.count, phase, node] }
        ) { TakenRow($0) }
        return Taking(lanes: open.map(\.lane), rows: rows)
    }

    private func claim(alone task: TaskID, of lane: QueuedLane, _ transaction: Transaction) throws -> Taking {
        let rows = try transaction.db.ask(
            """
            UPDATE live SET stage = ?2, node = ?3 WHERE task = ?1 AND stage = 'quarantined' \
            AND (node IS NULL OR node = ?3) RETURNING task, number, body, progress_document, resource_deadline, \
            (SELECT specification_document FROM task WHERE id = live.task) AS specification_document, \
            (SELECT length FROM body WHERE id = live.body) AS length, \
            (SELECT bytes FROM body WHERE id = live.body) AS bytes, \
            (SELECT file FROM body WHERE id = live.body) AS file, \
            (SELECT digest FROM body WHERE id = live.body) AS digest, \
            (SELECT media_type FROM body WHERE id = live.body) AS media_type
            """, [[task.rawValue, try Self.phase(ofClaimed: .quarantined, transaction.now), node]]
        ) { TakenRow($0) }
        return Taking(lanes: [lane], rows: rows)
    }

    /// The phase of claimed tasks. Nothing else in their lives changes, so one statement writes it for many tasks.
    private static func phase(ofClaimed stage: TaskLife.Stage, _ now: Timestamp) throws -> String? {
        var life = TaskLife.running(stage, deadline: now)
        _ = try life.handle(.claim, at: now)
        return life.phase?.rawValue
    }

    /// A claimed task with the location of its body, if that is in objects.
    ///
    /// - Throws: ``DomainError/notFound`` if the body is gone because the task was ended meanwhile.
    package func withBody(_ task: ClaimedTask) async throws -> ClaimedTask {
        guard let row = task.bodyRow else { return task }
        guard let body = try await database.read({ try store.files.bodyLocation(row, $0) }) else {
            throw DomainError.notFound
        }
        return ClaimedTask(
            id: task.id, session: task.session, app: task.app, number: task.number, lane: task.lane,
            specification: task.specification, progress: task.progress, body: body,
            resourceDeadline: task.resourceDeadline)
    }

    /// Decodes the documents of a claimed task, off the writer's thread.
    private func claimed(_ taken: TakenTask) throws -> ClaimedTask {
        let (row, lane) = taken
        return ClaimedTask(
            id: row.id, session: lane.session, app: lane.app, number: row.number, lane: lane.id,
            specification: try documents.decode(
                TaskSpecification.self, row.specification, sealedAs: Self.context(lane.session, row.number)),
            progress: try row.progress.map { try documents.decode(TaskProgress.self, $0) } ?? TaskProgress(),
            body: row.location, bodyRow: row.location == nil ? row.body : nil, resourceDeadline: row.resourceDeadline)
    }

    /// The next due time of a delayed task, a retry, a resource timeout or a question's deadline. Now, if tasks still
    /// wait for an ended question.
    package func nextDueTime() async throws -> Timestamp? {
        try await database.read { db in
            let times = [
                try db.ask("SELECT min(due_at) FROM live WHERE due_at IS NOT NULL", [[]]) { $0.integerOrNil(0) },
                try db.ask(
                    """
                    SELECT min(resource_deadline) FROM live WHERE resource_deadline IS NOT NULL AND move_document IS NULL
                    """, [[]]
                ) { $0.integerOrNil(0) },
                try db.ask("SELECT min(deadline) FROM question WHERE state = 'open'", [[]]) { $0.integerOrNil(0) },
                try db.ask(
                    """
                    SELECT 0 WHERE EXISTS (SELECT 1 FROM question WHERE releasing = 1) \
                    OR EXISTS (SELECT 1 FROM flight WHERE releasing = 1)
                    """, [[]]
                ) { $0.integerOrNil(0) },
            ]
            return try times.compactMap { try $0.get()[0].first ?? nil }.min().map(Timestamp.init(milliseconds:))
        }
    }

    /// Ends tasks whose resource timeout has passed, up to `limit`. A task whose content is being moved is skipped.
    package func expire(at now: Timestamp, limit: Int) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let expired = try transaction.db.all(
                """
                SELECT task FROM live WHERE resource_deadline <= ?1 AND move_document IS NULL \
                ORDER BY resource_deadline, task LIMIT ?2
                """, now.milliseconds, limit
            ) { TaskID($0.integer(0)) }
            try transaction.forEachLive(expired) { live in
                let last = try self.progress(of: live).lastAttempt?.error
                try self.end(live, .failed, .timedOut(after: last), transaction)
            }
        }.1
    }
}
