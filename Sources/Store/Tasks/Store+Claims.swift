package import Core
import SQL

/// A task taken from the queue, with all that its transfer needs. It is large, never changes and is handed on often, so
/// that it is worth a class.
package final class ClaimedTask: Sendable {
    package let id: TaskID
    package let session: SessionID
    package let app: AppID
    package let number: Int64
    package let lane: Int64
    package let specification: TaskSpecification
    package let progress: TaskProgress
    package let body: BodyLocation?
    package let resourceDeadline: Timestamp?

    package init(
        id: TaskID, session: SessionID, app: AppID, number: Int64, lane: Int64, specification: TaskSpecification,
        progress: TaskProgress, body: BodyLocation?, resourceDeadline: Timestamp?
    ) {
        self.id = id
        self.session = session
        self.app = app
        self.number = number
        self.lane = lane
        self.specification = specification
        self.progress = progress
        self.body = body
        self.resourceDeadline = resourceDeadline
    }
}

/// A task as its row says, its documents unread.
private struct TakenRow: Sendable {
    let id: TaskID
    let number: Int64
    let specification: [UInt8]
    let progress: [UInt8]?
    let body: Int64?
    let resourceDeadline: Timestamp?

    init(_ row: Row) {
        id = TaskID(row.integer("task"))
        number = row.integer("number")
        body = row.integerOrNil("body")
        progress = row.blobOrNil("progress_document")
        resourceDeadline = row.timeOrNil("resource_deadline")
        specification = row.blob("specification_document")
    }
}

/// A row with where it was taken from, and where the bytes of its body are.
private struct TakenTask: Sendable {
    let row: TakenRow
    let lane: QueuedLane
    var body: BodyLocation?

    init(_ row: TakenRow, of lane: QueuedLane) {
        self.row = row
        self.lane = lane
    }
}

extension Store {
    /// Stores how attempts ended and takes the next tasks from the queue, in one commit.
    ///
    /// Looks at no more than ``laneWindow`` lanes, and at one row for each task taken; the length of the queue does not
    /// matter.
    ///
    /// - Parameters:
    ///   - cookies: Jars that changed, as lines of Netscape's cookie file. One row each.
    ///   - cursor: How far the queue has been looked at.
    ///   - sieve: What may start at all.
    ///   - pick: What starts. Pure.
    /// - Returns: The tasks taken; those among them whose documents cannot be read (the master key is another one); how
    ///   far the queue has been looked at now, and whether that was all of it.
    package func advance(
        settling settlements: [Settlement], cookies: [SessionID: [String]] = [:], after cursor: QueueCursor,
        through sieve: QueueSieve, at now: Timestamp, pick: @escaping @Sendable (Queue) -> Claim
    ) async throws -> (
        claimed: [ClaimedTask], unreadable: [TaskID], cursor: QueueCursor, isWhole: Bool, aftermath: Aftermath
    ) {
        let (result, aftermath) = try await transact(at: now) { transaction -> ([TakenTask], QueueCursor, Bool) in
            try self.settle(settlements, transaction)
            for (session, lines) in cookies { try self.save(cookies: lines, of: session, transaction.db) }
            try self.promoteDueTasks(transaction)
            try transaction.flushCounters()
            var cursor = cursor
            let (queue, isWhole) = try self.queue(after: &cursor, through: sieve, transaction.db)
            return (try self.claim(pick(queue), of: queue, transaction), cursor, isWhole)
        }
        var (tasks, unreadable): ([ClaimedTask], [TaskID]) = ([], [])
        for taken in result.0 {
            do {
                tasks.append(try claimed(taken))
            } catch {
                unreadable.append(taken.row.id)
            }
        }
        return (tasks, unreadable, result.1, result.2, aftermath)
    }

    /// Stores how attempts ended, and takes nothing.
    package func settle(
        _ settlements: [Settlement], cookies: [SessionID: [String]] = [:], at now: Timestamp
    ) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            try self.settle(settlements, transaction)
            for (session, lines) in cookies { try self.save(cookies: lines, of: session, transaction.db) }
            try self.promoteDueTasks(transaction)
        }.1
    }

    /// Moves tasks whose moment has come into the queue, up to 500 at a time.
    private func promoteDueTasks(_ transaction: Transaction) throws {
        let due = try transaction.db.all(
            "SELECT task FROM live WHERE due_at <= ?1 ORDER BY due_at, task LIMIT 500", transaction.now.milliseconds
        ) { TaskID($0.integer(0)) }
        try transaction.preread(due)
        try transaction.forEachLive(due) { try move($0, .due, transaction) }
    }

    private func claim(_ claim: Claim, of queue: Queue, _ transaction: Transaction) throws -> [TakenTask] {
        switch claim {
        case .alone(let task, let lane): return try self.claim(alone: task, of: lane, transaction)
        case .tasks(let grants):
            let lanes = Dictionary(queue.lanes.map { ($0.id, $0) }) { first, _ in first }
            return try self.claim(grants.compactMap { id, count in lanes[id].map { ($0, count) } }, transaction)
        }
    }

    private func claim(_ grants: [(lane: QueuedLane, count: Int)], _ transaction: Transaction) throws -> [TakenTask] {
        let db = transaction.db
        let grants = grants.filter { $0.count > 0 }
        try transaction.readSessions(grants.map(\.lane.session))
        let open = try grants.filter { lane, _ in
            guard try transaction.session(lane.session).isForgotten else { return true }
            // The janitor has not come to it yet. Whoever waits behind it gets the turn.
            _ = try emptyLanes(of: lane.session, Self.laneWindow, db)
            transaction.aftermath.hasQueuedTasks = true
            return false
        }
        let phase = try Self.phase(ofClaimed: .queued, transaction.now)
        let rows = try db.allOfEach(
            """
            UPDATE live SET stage = ?3, node = ?4 WHERE task IN (SELECT task FROM live WHERE lane = ?1 \
            AND stage = 'queued' AND (node IS NULL OR node = ?4) ORDER BY priority DESC, number LIMIT ?2) \
            RETURNING task, number, body, progress_document, resource_deadline, \
            (SELECT specification_document FROM task WHERE id = live.task) AS specification_document
            """, open.map { [$0.lane.id, $0.count, phase, node] }
        ) { TakenRow($0) }
        var taken: [TakenTask] = []
        for (rows, (lane, _)) in zip(rows, open) {
            transaction.addQueued(-Int64(rows.count), lane: lane.id)
            try db.execute("UPDATE lane SET served_at = ?2 WHERE id = ?1", lane.id, transaction.now.milliseconds)
            taken += try withBodies(rows.map { TakenTask($0, of: lane) }, db)
        }
        return taken
    }

    private func claim(
        alone task: TaskID, of lane: QueuedLane, _ transaction: Transaction
    ) throws -> [TakenTask] {
        let taken = try transaction.db.all(
            """
            UPDATE live SET stage = ?2, node = ?3 WHERE task = ?1 AND stage = 'quarantined' \
            AND (node IS NULL OR node = ?3) RETURNING task, number, body, progress_document, resource_deadline, \
            (SELECT specification_document FROM task WHERE id = live.task) AS specification_document
            """, task.rawValue, try Self.phase(ofClaimed: .quarantined, transaction.now), node
        ) { TakenTask(TakenRow($0), of: lane) }
        return try withBodies(taken, transaction.db)
    }

    /// The phase of tasks that are claimed. Nothing else of their lives changes, so one statement writes it to many.
    private static func phase(ofClaimed stage: TaskLife.Stage, _ now: Timestamp) throws -> String? {
        var life = TaskLife.running(stage, deadline: now)
        _ = try life.handle(.claim, at: now)
        return life.phase?.rawValue
    }

    private func withBodies(_ taken: [TakenTask], _ db: Connection) throws -> [TakenTask] {
        try taken.map { task in
            var task = task
            task.body = try task.row.body.flatMap { try bodyLocation($0, db) }
            return task
        }.sorted { $0.row.number < $1.row.number }
    }

    /// Reads the documents of tasks that were taken, off the writer's thread.
    private func claimed(_ taken: TakenTask) throws -> ClaimedTask {
        let (row, lane) = (taken.row, taken.lane)
        return ClaimedTask(
            id: row.id, session: lane.session, app: lane.app, number: row.number, lane: lane.id,
            specification: try documents.decode(
                TaskSpecification.self, row.specification, sealedAs: Self.context(lane.session, row.number)),
            progress: try row.progress.map { try documents.decode(TaskProgress.self, $0) } ?? TaskProgress(),
            body: taken.body, resourceDeadline: row.resourceDeadline)
    }

    /// The next moment that something is due: a delayed task, a retry, a resource timeout, a question's deadline, or at
    /// once where tasks still wait for a question that is over.
    package func nextDueTime() async throws -> Timestamp? {
        try await database.read { db in
            let times = [
                try db.first("SELECT min(due_at) FROM live WHERE due_at IS NOT NULL") { $0.integerOrNil(0) } ?? nil,
                try db.first("SELECT min(resource_deadline) FROM live WHERE resource_deadline IS NOT NULL") {
                    $0.integerOrNil(0)
                } ?? nil,
                try db.first("SELECT min(deadline) FROM question WHERE state = 'open'") { $0.integerOrNil(0) } ?? nil,
                try db.first("SELECT 0 FROM question WHERE releasing = 1 LIMIT 1") { $0.integer(0) },
            ]
            return times.compactMap { $0 }.min().map(Timestamp.init(milliseconds:))
        }
    }

    /// Ends tasks whose resource timeout has passed, up to `limit`.
    package func expireTasks(at now: Timestamp, limit: Int) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let expired = try transaction.db.all(
                "SELECT task FROM live WHERE resource_deadline <= ?1 ORDER BY resource_deadline, task LIMIT ?2",
                now.milliseconds, limit
            ) { TaskID($0.integer(0)) }
            try transaction.forEachLive(expired) { try self.end($0, .failed, TaskError(.timedOut), transaction) }
        }.1
    }
}
