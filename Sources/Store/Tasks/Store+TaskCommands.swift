package import Core
import SQLite

/// The row of a task that is not completed.
struct LiveTask {
    var id: TaskID
    var session: SessionID
    var number: Int64
    var kind: TaskKind
    var lane: Int64
    var stage: TaskStage
    var beginsAt: Timestamp?
    var deadline: Timestamp?
    var remaining: Duration?
    var body: Int64?
    var progress: [UInt8]?
    /// The question that it waits for.
    var question: Int64?
    /// Crashes of the service in a row that found it under way.
    var crashes: Int

    var isSuspect: Bool { Quarantine.verdict(after: crashes) == .runAlone }

    static func read(_ id: TaskID, _ db: Connection) throws -> LiveTask? {
        try db.first(
            """
            SELECT task, session, number, kind, lane, stage, begins_at, resource_deadline, resource_remaining, body, \
            progress_document, question, crashes FROM live WHERE task = ?1
            """, id.rawValue, read: LiveTask.init)
    }

    private init(_ row: Row) throws {
        id = TaskID(row.integer("task"))
        session = SessionID(row.integer("session"))
        number = row.integer("number")
        kind = try row.value("kind")
        lane = row.integer("lane")
        stage = try row.value("stage")
        beginsAt = row.timeOrNil("begins_at")
        deadline = row.timeOrNil("resource_deadline")
        remaining = row.integerOrNil("resource_remaining").map { .milliseconds($0) }
        body = row.integerOrNil("body")
        progress = row.blobOrNil("progress_document")
        question = row.integerOrNil("question")
        crashes = row.int("crashes")
    }
}

extension Store {
    /// Commands one task.
    ///
    /// - Throws: ``DomainError/taskCompleted``; ``DomainError/notFound``.
    package func command(
        _ command: TaskCommand, task id: TaskID, at now: Timestamp
    ) async throws -> (TaskRecord, Aftermath) {
        let (_, aftermath) = try await transact(at: now) { transaction in
            guard let live = try transaction.live(id) else {
                guard try self.readTask(id, transaction.db) != nil else { throw DomainError.notFound }
                throw DomainError.taskCompleted
            }
            _ = try self.carryOut(command, live, transaction)
        }
        return (try await task(id), aftermath)
    }

    /// Looks at up to `limit` tasks of a session that are not completed, beginning after a number, and commands those
    /// that match.
    ///
    /// - Returns: How many matched and changed, and the last number looked at, nil at the end.
    package func command(
        _ command: TaskCommand, _ filter: TaskFilter, in session: SessionID, after number: Int64, limit: Int,
        at now: Timestamp
    ) async throws -> (matched: Int, changed: Int, last: Int64?, aftermath: Aftermath) {
        guard filter.outcome == nil, filter.state != .completed else { return (0, 0, nil, Aftermath()) }
        let (result, aftermath) = try await transact(at: now) { transaction -> (Int, Int, Int64?) in
            let found = try Self.unfinished(session, after: number, limit: limit, transaction.db)
            var (matched, changed) = (0, 0)
            for task in found where filter.matches(state: task.state, group: task.group) {
                matched += 1
                guard let live = try transaction.live(task.id) else { continue }
                if try self.carryOut(command, live, transaction) { changed += 1 }
            }
            return (matched, changed, found.count < limit ? nil : found.last?.number)
        }
        return (result.0, result.1, result.2, aftermath)
    }

    /// - Returns: Whether it changed anything.
    func carryOut(_ command: TaskCommand, _ live: LiveTask, _ transaction: Transaction) throws -> Bool {
        switch command {
        case .suspend:
            return try move(live, .suspend, transaction)
        case .resume:
            let beginsLater = live.beginsAt.map { $0 > transaction.now } ?? false
            return try move(
                live, .resume(beginsLater: beginsLater, hasOpenQuestion: live.question != nil), transaction)
        case .cancel(let reason):
            var result = TaskResult(progress: try progress(of: live))
            let error = TaskError(.cancelled, backgroundTaskCancelledReason: reason)
            result.error = error
            if live.stage == .active { transaction.aftermath.transfersToStop.append(live.id) }
            try complete(live, .cancelled, result, content: nil, transaction)
            return true
        }
    }

    func progress(of live: LiveTask) throws -> TaskProgress {
        try live.progress.map { try documents.decode(TaskProgress.self, $0) } ?? TaskProgress()
    }

    /// Takes a task to its next stage and keeps clocks, lanes and counters in step.
    ///
    /// - Parameter crashes: How many count against it from now on; an attempt that ended by itself counts for it.
    /// - Returns: Whether the stage changed.
    @discardableResult
    func move(
        _ live: LiveTask, _ event: TaskStage.Event, dueAt: Timestamp? = nil, progress: TaskProgress? = nil,
        crashes: Int? = nil, _ transaction: Transaction
    ) throws -> Bool {
        var live = live
        live.crashes = crashes ?? (event.endsAttempt ? 0 : live.crashes)
        var stage = live.stage
        if try stage.handle(event, isSuspect: live.isSuspect) == .stopTransfer {
            transaction.aftermath.transfersToStop.append(live.id)
        }
        guard stage != live.stage else { return false }
        let session = try transaction.session(live.session)
        let now = transaction.now
        var (deadline, remaining) = (live.deadline, live.remaining)
        if stage == .suspended {
            // The time counts from `earliestBeginDate` on, which may still be ahead.
            remaining = deadline.map { max(.zero, $0 - max(now, live.beginsAt ?? now)) } ?? session.resourceTimeout
            deadline = nil
        } else if live.stage == .suspended {
            let start = max(now, live.beginsAt ?? now)
            deadline = start + (remaining ?? session.resourceTimeout)
            remaining = nil
        }
        let due = stage.hasDueDate ? dueAt ?? live.beginsAt ?? now : nil
        try transaction.db.execute(
            """
            UPDATE live SET stage = ?2, due_at = ?3, resource_deadline = ?4, resource_remaining = ?5, \
            progress_document = coalesce(?6, progress_document), crashes = ?7 WHERE task = ?1
            """,
            live.id.rawValue, stage.rawValue, due?.milliseconds, deadline?.milliseconds, remaining?.milliseconds,
            try progress.map { try documents.encode($0) }, live.crashes)
        if live.stage == .queued { transaction.addQueued(-1, lane: live.lane) }
        if stage == .queued { transaction.addQueued(1, lane: live.lane) }
        if stage == .quarantined { transaction.aftermath.hasQueuedTasks = true }
        if let due { transaction.wake(at: due) }
        if let deadline, deadline != live.deadline { transaction.wake(at: deadline) }
        if stage.state != live.stage.state {
            let isSuspended = stage == .suspended
            session.counts.suspended += isSuspended ? 1 : -1
            session.counts.running += isSuspended ? -1 : 1
            session.isChanged = true
            try transaction.db.execute(
                """
                UPDATE task SET state = ?2, started_at = coalesce(started_at, ?3), revision = revision + 1 WHERE id = ?1
                """,
                live.id.rawValue, stage.state.rawValue, isSuspended ? nil : now.milliseconds)
        }
        return true
    }

    /// Changes a task. What is completed keeps all but its description and metadata.
    ///
    /// - Throws: ``DomainError/taskCompleted``, ``DomainError/revisionMismatch``, ``DomainError/notFound``.
    package func changeTask(
        _ id: TaskID, _ changes: TaskChanges, ifRevision revision: Int64?, at now: Timestamp
    ) async throws -> (TaskRecord, Aftermath) {
        let (_, aftermath) = try await transact(at: now) { [documents] transaction in
            let db = transaction.db
            guard var task = try self.readTask(id, db) else { throw DomainError.notFound }
            if let revision, revision != task.revision { throw DomainError.revisionMismatch }
            let live = try transaction.live(id)
            let changesTransfer =
                changes.priority != nil || changes.earliestBeginDate != nil || changes.request != nil
            if live == nil && changesTransfer { throw DomainError.taskCompleted }
            task.specification.priority = changes.priority ?? task.specification.priority
            if let description = changes.taskDescription { task.specification.taskDescription = description }
            task.specification.metadata = changes.metadata ?? task.specification.metadata
            if let begin = changes.earliestBeginDate { task.specification.earliestBeginDate = begin }
            task.specification.request = changes.request ?? task.specification.request
            try db.execute(
                """
                UPDATE task SET specification_document = ?2, priority = ?3, revision = revision + 1 WHERE id = ?1
                """,
                id.rawValue,
                try documents.encode(
                    task.specification, sealedAs: Self.context(task.session, task.number),
                    if: task.specification.request.holdsSecrets),
                task.specification.priority)
            if let live { try self.apply(changes, to: live, task, transaction) }
        }
        return (try await task(id), aftermath)
    }

    private func apply(
        _ changes: TaskChanges, to live: LiveTask, _ task: TaskRecord, _ transaction: Transaction
    ) throws {
        let db = transaction.db
        var live = live
        if let priority = changes.priority {
            try db.execute("UPDATE live SET priority = ?2 WHERE task = ?1", live.id.rawValue, priority)
        }
        if let origin = changes.origin {
            let lane = try lane(origin, transaction.session(live.session), db)
            if lane != live.lane {
                if live.stage == .queued {
                    transaction.addQueued(-1, lane: live.lane)
                    transaction.addQueued(1, lane: lane)
                }
                try db.execute("UPDATE live SET lane = ?2 WHERE task = ?1", live.id.rawValue, lane)
                live.lane = lane
            }
        }
        if changes.request != nil {
            var progress = try progress(of: live)
            progress.currentURL = nil
            progress.redirects = []
            try db.execute(
                "UPDATE live SET progress_document = ?2 WHERE task = ?1", live.id.rawValue,
                try documents.encode(progress))
            if live.stage == .active {
                transaction.aftermath.transfersToStop.append(live.id)
                try move(live, .interrupted, transaction)
                live = try transaction.live(live.id) ?? live
            }
        }
        if let begin = changes.earliestBeginDate {
            try db.execute("UPDATE live SET begins_at = ?2 WHERE task = ?1", live.id.rawValue, begin?.milliseconds)
            let oldBegin = live.beginsAt
            live.beginsAt = begin
            try reschedule(live, after: oldBegin, transaction)
        }
    }

    /// Applies a new `earliestBeginDate` to a task that is not under way. A later one gives it its whole time anew.
    private func reschedule(_ live: LiveTask, after oldBegin: Timestamp?, _ transaction: Transaction) throws {
        let now = transaction.now
        let begin = live.beginsAt ?? now
        let session = try transaction.session(live.session)
        guard [.delayed, .queued, .quarantined].contains(live.stage) else { return }
        let stage: TaskStage = begin > now ? .delayed : live.isSuspect ? .quarantined : .queued
        let remaining = live.deadline.map { $0 - max(now, oldBegin ?? now) } ?? session.resourceTimeout
        let deadline = begin > now ? begin + session.resourceTimeout : now + min(remaining, session.resourceTimeout)
        try transaction.db.execute(
            "UPDATE live SET stage = ?2, due_at = ?3, resource_deadline = ?4 WHERE task = ?1", live.id.rawValue,
            stage.rawValue, stage == .delayed ? begin.milliseconds : nil, deadline.milliseconds)
        if live.stage == .queued { transaction.addQueued(-1, lane: live.lane) }
        if stage == .queued { transaction.addQueued(1, lane: live.lane) }
        if stage == .quarantined { transaction.aftermath.hasQueuedTasks = true }
        if stage == .delayed { transaction.wake(at: begin) }
        transaction.wake(at: deadline)
    }

    /// Tasks that are not completed, in the order of their numbers. Filters are for the caller: who asks for few of many
    /// must not have all of them looked at in one transaction.
    private static func unfinished(
        _ session: SessionID, after number: Int64, limit: Int, _ db: Connection
    ) throws -> [(id: TaskID, number: Int64, state: TaskState, group: String?)] {
        try db.all(
            """
            SELECT l.task, l.number, t.state, t.group_name FROM live l JOIN task t ON t.id = l.task \
            WHERE l.session = ?1 AND l.number > ?2 ORDER BY l.number LIMIT ?3
            """, session.rawValue, number, limit
        ) { row in
            (
                TaskID(row.integer("task")), row.integer("number"), try row.value("state") as TaskState,
                row.textOrNil("group_name")
            )
        }
    }
}

extension TaskFilter {
    fileprivate func matches(state: TaskState, group: String?) -> Bool {
        if let wanted = self.state, wanted != state { return false }
        guard let wanted = self.group else { return true }
        return group.map { $0.utf8.elementsEqual(wanted.utf8) } ?? false
    }
}
