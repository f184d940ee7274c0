package import Core
import SQLite

/// Tasks of one session for one origin that wait for their turn.
package struct QueuedLane: Hashable, Sendable {
    package var id: Int64
    package var app: AppID
    package var session: SessionID
    /// `scheme://host:port`.
    package var origin: String
    package var queued: Int64
    /// The session's `httpMaximumConnectionsPerHost`.
    package var limitPerHost: Int
    /// The session's `networkServiceType` is `background`.
    package var isBackground: Bool
    package var conditions: LaneConditions
    /// How long the next task has waited, for lanes whose demands relax with it.
    package var patience: Conditions.Patience?
    /// The highest priority among the waiting tasks.
    package var priority: Double
}

/// Which conditions the tasks of a lane wait for.
package struct LaneConditions: OptionSet, Hashable, Sendable {
    package let rawValue: Int
    package init(rawValue: Int) { self.rawValue = rawValue }

    package static let discretionary = LaneConditions(rawValue: 1)
    package static let noCellular = LaneConditions(rawValue: 2)
    package static let noExpensive = LaneConditions(rawValue: 4)
    package static let noConstrained = LaneConditions(rawValue: 8)

    package init(_ configuration: SessionConfiguration) {
        var conditions: LaneConditions = []
        if configuration.isDiscretionary { conditions.insert(.discretionary) }
        if !configuration.allowsCellularAccess { conditions.insert(.noCellular) }
        if !configuration.allowsExpensiveNetworkAccess { conditions.insert(.noExpensive) }
        if !configuration.allowsConstrainedNetworkAccess { conditions.insert(.noConstrained) }
        self = conditions
    }
}

/// A task taken from the queue, with all that its transfer needs.
package struct ClaimedTask: Sendable {
    package var id: TaskID
    package var session: SessionID
    package var app: AppID
    package var number: Int64
    package var lane: Int64
    package var specification: TaskSpecification
    package var progress: TaskProgress
    package var body: BodyLocation?
    package var resourceDeadline: Timestamp?

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
private struct TakenTask: Sendable {
    var id: TaskID
    var number: Int64
    var lane: QueuedLane
    var specification: [UInt8]
    var progress: [UInt8]?
    var bodyID: Int64?
    var body: BodyLocation?
    var resourceDeadline: Timestamp?
}

extension Store {
    /// Lanes read for one round of the scheduler: a bounded window of the queue, however long it is.
    package static let laneWindow = 512

    /// Stores how attempts ended and takes the next tasks from the queue, in one commit.
    ///
    /// Reads at most ``laneWindow`` lanes and one row for each task taken; the length of the queue does not matter.
    ///
    /// - Parameters:
    ///   - cookies: Jars that changed, as lines of Netscape's cookie file. One row each.
    ///   - cursor: The lane after which the window begins, so that many lanes take turns.
    ///   - pick: How many tasks each lane may start. Pure.
    /// - Returns: The tasks taken, those among them whose documents cannot be read (the master key is another one), and
    ///   the last lane of a full window, 0 after the last one.
    package func advance(
        settling settlements: [Settlement], cookies: [SessionID: [String]] = [:], after cursor: Int64,
        at now: Timestamp, pick: @escaping @Sendable ([QueuedLane]) -> [(lane: Int64, count: Int)]
    ) async throws -> (claimed: [ClaimedTask], unreadable: [TaskID], cursor: Int64, aftermath: Aftermath) {
        let (result, aftermath) = try await transact(at: now) { transaction -> ([TakenTask], Int64) in
            try self.settle(settlements, transaction)
            for (session, lines) in cookies { try self.save(cookies: lines, of: session, transaction.db) }
            try self.promoteDueTasks(transaction)
            try transaction.flushCounters()
            let lanes = try self.queuedLanes(after: cursor, transaction.db)
            var claimed: [TakenTask] = []
            for (lane, count) in pick(lanes) where count > 0 {
                guard let lane = lanes.first(where: { $0.id == lane }) else { continue }
                claimed += try self.claim(count, of: lane, transaction)
            }
            return (claimed, lanes.count < Self.laneWindow ? 0 : lanes.last?.id ?? 0)
        }
        var (tasks, unreadable): ([ClaimedTask], [TaskID]) = ([], [])
        for taken in result.0 {
            do {
                tasks.append(try claimed(taken))
            } catch {
                unreadable.append(taken.id)
            }
        }
        return (tasks, unreadable, result.1, aftermath)
    }

    /// Moves tasks whose moment has come into the queue, up to 1,000 at a time.
    private func promoteDueTasks(_ transaction: Transaction) throws {
        let due = try transaction.db.all(
            "SELECT task FROM live WHERE due_at <= ?1 ORDER BY due_at, task LIMIT 1000", transaction.now.milliseconds
        ) { TaskID($0.integer(0)) }
        for id in due {
            guard let live = try transaction.live(id) else {
                try transaction.stopClocks(of: id)
                continue
            }
            try move(live, .due, transaction)
        }
    }

    private func queuedLanes(after cursor: Int64, _ db: Connection) throws -> [QueuedLane] {
        try db.all(
            """
            SELECT l.id, l.app, l.session, l.origin, l.queued, l.limit_per_host, l.background, l.conditions, \
            (SELECT priority FROM live WHERE lane = l.id AND stage = 2 ORDER BY priority DESC, number LIMIT 1), \
            CASE WHEN l.conditions & 1 THEN (SELECT resource_deadline FROM live WHERE lane = l.id AND stage = 2 \
            ORDER BY priority DESC, number LIMIT 1) END, \
            CASE WHEN l.conditions & 1 THEN (SELECT resource_timeout FROM session WHERE id = l.session) END \
            FROM lane l WHERE l.queued > 0 AND l.id > ?1 ORDER BY l.id LIMIT ?2
            """, cursor, Self.laneWindow
        ) { row in
            QueuedLane(
                id: row.integer(0), app: AppID(row.integer(1)), session: SessionID(row.integer(2)),
                origin: row.text(3), queued: row.integer(4), limitPerHost: row.int(5), isBackground: row.bool(6),
                conditions: LaneConditions(rawValue: row.int(7)),
                patience: Self.patience(row.integerOrNil(9), row.integerOrNil(10)), priority: row.realOrNil(8) ?? 0)
        }
    }

    /// When a discretionary task's resource timeout began, and how long it is.
    private static func patience(_ deadline: Int64?, _ timeout: Int64?) -> Conditions.Patience? {
        guard let deadline, let timeout else { return nil }
        return Conditions.Patience(
            began: Timestamp(milliseconds: deadline - timeout), resourceTimeout: .milliseconds(timeout))
    }

    private func claim(_ count: Int, of lane: QueuedLane, _ transaction: Transaction) throws -> [TakenTask] {
        let db = transaction.db
        let taken = try db.all(
            """
            UPDATE live SET stage = 3 WHERE task IN (SELECT task FROM live WHERE lane = ?1 AND stage = 2 \
            ORDER BY priority DESC, number LIMIT ?2) \
            RETURNING task, number, body, progress_document, resource_deadline, \
            (SELECT specification_document FROM task WHERE id = live.task)
            """, lane.id, count
        ) { row in
            TakenTask(
                id: TaskID(row.integer(0)), number: row.integer(1), lane: lane, specification: row.blob(5),
                progress: row.blobOrNil(3), bodyID: row.integerOrNil(2),
                resourceDeadline: row.integerOrNil(4).map(Timestamp.init(milliseconds:)))
        }
        transaction.addQueued(-Int64(taken.count), lane: lane.id)
        return try taken.map { task in
            var task = task
            task.body = try task.bodyID.flatMap { try bodyLocation($0, db) }
            return task
        }.sorted { $0.number < $1.number }
    }

    /// Reads the documents of tasks that were taken, off the writer's thread.
    private func claimed(_ taken: TakenTask) throws -> ClaimedTask {
        ClaimedTask(
            id: taken.id, session: taken.lane.session, app: taken.lane.app, number: taken.number, lane: taken.lane.id,
            specification: try documents.decode(
                TaskSpecification.self, taken.specification,
                sealedAs: Self.context(taken.lane.session, taken.number)),
            progress: try taken.progress.map { try documents.decode(TaskProgress.self, $0) } ?? TaskProgress(),
            body: taken.body, resourceDeadline: taken.resourceDeadline)
    }

    /// The next moment that something is due: a delayed task, a retry, a resource timeout or a question's deadline.
    package func nextDueTime() async throws -> Timestamp? {
        try await database.read { db in
            let times = [
                try db.first("SELECT min(due_at) FROM live WHERE due_at IS NOT NULL") { $0.integerOrNil(0) } ?? nil,
                try db.first("SELECT min(resource_deadline) FROM live WHERE resource_deadline IS NOT NULL") {
                    $0.integerOrNil(0)
                } ?? nil,
                try db.first("SELECT min(deadline) FROM question WHERE state = 0") { $0.integerOrNil(0) } ?? nil,
            ]
            return times.compactMap { $0 }.min().map(Timestamp.init(milliseconds:))
        }
    }

    /// Ends tasks whose resource timeout has passed, up to `limit`.
    package func expireTasks(at now: Timestamp, limit: Int) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let expired = try transaction.db.all(
                "SELECT task FROM live WHERE resource_deadline <= ?1 ORDER BY resource_deadline LIMIT ?2",
                now.milliseconds, limit
            ) { TaskID($0.integer(0)) }
            for id in expired {
                guard let live = try transaction.live(id) else {
                    try transaction.stopClocks(of: id)
                    continue
                }
                var result = TaskResult(progress: try self.progress(of: live))
                result.error = TaskError(.timedOut)
                if live.stage == .active { transaction.aftermath.transfersToStop.append(id) }
                try self.complete(live, .failed, result, content: nil, transaction)
            }
        }.1
    }

    /// Puts back into the queue what was under way when the service ended. No attempt is charged.
    ///
    /// Called once at start, before the scheduler runs; costs one row for each transfer that was under way.
    ///
    /// - Parameter length: The length of a task's partial file; what came beyond its recorded offset comes once more.
    package func recoverInterruptedTasks(
        at now: Timestamp, partialFile length: @escaping @Sendable (TaskID) -> Int64? = { _ in nil }
    ) async throws -> Int {
        try await transact(at: now) { transaction in
            let active = try transaction.db.all("SELECT task FROM live WHERE stage = 3") { TaskID($0.integer(0)) }
            for id in active {
                guard let live = try transaction.live(id) else { continue }
                var progress: TaskProgress?
                if live.kind == .download, let length = length(id) {
                    var reached = try self.progress(of: live)
                    reached.noteFetchedTwice(length - (reached.resume?.offset ?? 0))
                    progress = reached
                }
                try self.move(live, .interrupted, progress: progress, transaction)
            }
            return active.count
        }.0
    }
}
