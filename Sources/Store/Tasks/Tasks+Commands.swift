package import Core
import Formats
import SQL

/// The row of a task that is not completed.
struct LiveTask {
    var id: TaskID
    var session: SessionID
    var number: Int64
    var kind: TaskKind
    var lane: Int64
    var life: TaskLife
    var beginsAt: Timestamp?
    var body: Int64?
    var progress: [UInt8]?
    /// The number of consecutive crashes of the service during the task's transfer.
    var crashes: Int
    var clientTaskId: String?
    /// The node that claimed the task and has not released it.
    var node: String?
    /// The destination to which its content is being moved.
    var plannedMove: [UInt8]?
    /// The flight that the task leads or follows.
    var flight: Int64?
    /// What the task fetches for a version of a set.
    var setFetch: SetFetch?

    /// A row and the result of decoding it. The row of a deleted session may refer to missing rows.
    struct Reading {
        let session: SessionID
        let task: Result<LiveTask, any Error>

        fileprivate init(_ row: Row) {
            session = SessionID(row.integer("session"))
            task = Result { try LiveTask(row) }
        }
    }

    /// Queries the rows of tasks: one or none for each.
    static func ask(_ ids: [TaskID], _ db: Connection) throws -> Asked<Reading> {
        try db.ask(
            """
            SELECT task, session, number, kind, lane, stage, begins_at, due_at, resource_deadline, resource_remaining, \
            body, progress_document, question, (SELECT public_id FROM question WHERE id = live.question) AS question_id, \
            disk_needed, disk_kept, disk_not_before, crashes, node, move_document, flight, set_version, \
            CASE WHEN set_version IS NOT NULL THEN (SELECT path FROM set_file \
            WHERE task = live.task AND version = live.set_version AND state = 'fetching') END AS set_path, \
            CASE WHEN set_version IS NOT NULL THEN (SELECT length FROM set_file \
            WHERE task = live.task AND version = live.set_version AND state = 'fetching') END AS set_length, \
            (SELECT client_task_id FROM task WHERE id = live.task) AS client_task_id FROM live WHERE task = ?1
            """, ids.map { [$0.rawValue] }
        ) { Reading($0) }
    }

    private init(_ row: Row) throws {
        id = TaskID(row.integer("task"))
        session = SessionID(row.integer("session"))
        number = row.integer("number")
        kind = try row.value("kind")
        lane = row.integer("lane")
        life = try TaskLife(live: row)
        beginsAt = row.timeOrNil("begins_at")
        body = row.integerOrNil("body")
        progress = row.blobOrNil("progress_document")
        crashes = row.int("crashes")
        clientTaskId = row.textOrNil("client_task_id")
        node = row.textOrNil("node")
        plannedMove = row.blobOrNil("move_document")
        flight = row.integerOrNil("flight")
        setFetch = row.integerOrNil("set_version").map {
            SetFetch(
                version: SetVersionID($0), path: row.textOrNil("set_path"), length: row.integerOrNil("set_length"))
        }
    }
}

/// What a task fetches for a version of a set: one of the files, or the list of files.
struct SetFetch {
    let version: SetVersionID
    /// `nil` for the list.
    let path: String?
    /// The length that the file must have, if the list tells it.
    let length: Int64?
}

extension Store.Tasks {
    /// The maximum number of tasks commanded or timed out in one commit, so that other closures run in between.
    package static let commandGroup = 200

    /// Commands one task.
    ///
    /// - Parameters:
    ///   - revision: The task's revision that the caller expects, or `nil`.
    ///   - overtakesMove: Whether a cancel is carried out even if the task's content is being moved.
    /// - Throws: ``DomainError/taskCompleted``; ``DomainError/notFound``, ``DomainError/revisionMismatch``,
    ///   ``MoveUnderWay``.
    package func command(
        _ command: TaskCommand, task id: TaskID, ifRevision revision: Int64? = nil, overtakesMove: Bool = false,
        at now: Timestamp
    ) async throws -> (TaskRecord, Aftermath) {
        try await transact(at: now, returning: { try self.read(id, $0) }) { transaction in
            guard let live = try transaction.live(id) else {
                guard try self.read(id, transaction.db) != nil else { throw DomainError.notFound }
                throw DomainError.taskCompleted
            }
            try self.check(live, hasRevision: revision, transaction.db)
            if command.endsTask, !overtakesMove { try store.files.checkMove(live.plannedMove) }
            _ = try self.carryOut(command, live, transaction)
        }
    }

    /// - Throws: ``DomainError/revisionMismatch`` if `revision` is not `nil` and not the task's.
    func check(_ live: LiveTask, hasRevision revision: Int64?, _ db: Connection) throws {
        guard let revision else { return }
        let found = try db.all("SELECT revision FROM task WHERE id = ?1", live.id.rawValue) { $0.integer(0) }
        if found != [revision] { throw DomainError.revisionMismatch }
    }

    /// The outcome of one step of a command to many tasks.
    package struct CommandStep: Sendable {
        /// The number of matching tasks.
        package var matched = 0
        package var changed = 0
        /// The last number visited, `nil` at the end.
        package var last: Int64?
        /// Numbers of tasks that were skipped because their content is being moved.
        package var moving: Set<Int64> = []
    }

    /// Visits up to `limit` unfinished tasks of a session after a number, and commands those that match.
    ///
    /// - Parameters:
    ///   - newest: The newest task that matches, `nil` for any.
    ///   - revision: The session's revision that the caller expects, or `nil`.
    ///   - overtakesMoves: Whether a cancel is carried out even if a task's content is being moved.
    /// - Throws: ``DomainError/revisionMismatch``.
    package func command(
        _ command: TaskCommand, _ filter: TaskFilter, in session: SessionID, after number: Int64, limit: Int,
        upTo newest: TaskID? = nil, ifRevision revision: Int64? = nil, overtakesMoves: Bool = false, at now: Timestamp
    ) async throws -> (CommandStep, Aftermath) {
        guard filter.outcomes.isEmpty, filter.states != [.completed] else { return (CommandStep(), Aftermath()) }
        return try await transact(at: now) { transaction in
            if revision != nil { _ = try transaction.session(session, ifRevision: revision) }
            let found = try Self.unfinished(
                session, among: filter.numbers, after: number, limit: limit, transaction.db)
            var step = CommandStep()
            step.last = found.count < limit ? nil : found.last?.number
            for task in found where filter.matches(state: task.state, group: task.group) {
                if let newest, task.id.rawValue > newest.rawValue { continue }
                let live = try transaction.live(task.id)
                if let live, command.endsTask, !overtakesMoves {
                    do {
                        try store.files.checkMove(live.plannedMove)
                    } catch is MoveUnderWay {
                        step.moving.insert(task.number)
                        continue
                    }
                }
                step.matched += 1
                if let live, try self.carryOut(command, live, transaction) { step.changed += 1 }
            }
            return step
        }
    }

    /// - Returns: Whether it changed anything.
    func carryOut(_ command: TaskCommand, _ live: LiveTask, _ transaction: Transaction) throws -> Bool {
        switch command {
        case .suspend:
            // An explicit suspension outlasts the node that held the task.
            try transaction.db.execute(
                "UPDATE live SET held_by = NULL WHERE task = ?1 AND held_by IS NOT NULL", live.id.rawValue)
            return try move(live, .suspend, transaction)
        case .resume: return try move(live, .resume(beginsAt: live.beginsAt), transaction)
        case .cancel(let reason):
            try end(live, .cancelled, TaskError(.cancelled, backgroundTaskCancelledReason: reason), transaction)
            return true
        }
    }

    func progress(of live: LiveTask) throws -> TaskProgress {
        try live.progress.map { try documents.decode(TaskProgress.self, $0) } ?? TaskProgress()
    }

    /// Applies an event to a task and updates the state that depends on it. Used for all events but completions.
    ///
    /// - Parameters:
    ///   - crashes: The new number of crashes; `nil` resets it at the end of an attempt and keeps it otherwise.
    ///   - letsGo: Whether the node that claimed the task has released it.
    /// - Returns: Whether anything changed.
    @discardableResult
    func move(
        _ live: LiveTask, _ event: TaskLife.Event, progress: TaskProgress? = nil, crashes: Int? = nil,
        letsGo: Bool = false, _ transaction: Transaction
    ) throws -> Bool {
        let isCleared = crashes == nil && event.endsAttempt
        let crashes = crashes ?? (isCleared ? 0 : live.crashes)
        let life = try transaction.life(of: live, after: event, crashes: crashes)
        guard life != live.life else { return false }
        let session = try transaction.session(live.session)
        transaction.follow(live.life, life, lane: live.lane, of: session)
        let columns = LiveColumns(life)
        try transaction.db.execute(
            """
            UPDATE live SET stage = ?2, due_at = ?3, resource_deadline = ?4, resource_remaining = ?5, question = ?6, \
            disk_needed = ?7, disk_kept = ?8, disk_not_before = ?9, \
            progress_document = coalesce(?10, progress_document), crashes = ?11, \
            node = CASE WHEN ?12 = 0 THEN node END, move_document = CASE WHEN ?12 = 0 THEN move_document END, \
            left_by = CASE WHEN ?13 = 0 THEN left_by END, \
            adopts = CASE WHEN ?10 IS NULL THEN adopts ELSE ?14 END WHERE task = ?1
            """,
            live.id.rawValue, columns.phase, columns.dueAt, columns.deadline, columns.remaining, columns.question,
            columns.diskNeeded, columns.diskKept, columns.diskNotBefore, progress.map { documents.encode($0) },
            crashes, letsGo, isCleared, progress?.adoptedFile)
        if life.state != live.life.state {
            try transaction.db.execute(
                """
                UPDATE task SET state = ?2, started_at = coalesce(started_at, ?3), revision = revision + 1 WHERE id = ?1
                """,
                live.id.rawValue, life.state.rawValue, life.state == .running ? transaction.now.milliseconds : nil)
        }
        // The transfer of an active task still writes: its last settlement passes the bytes on.
        if live.flight != nil, life.phase == .suspended, live.life.phase != .active {
            try store.cache.leaveFlight(live, passing: self.progress(of: live), transaction)
        }
        return true
    }

    /// Changes a task. A completed task allows changes of its description and metadata only.
    ///
    /// - Parameter overtakesMove: Whether the request may change while the content of the old request is being moved.
    /// - Throws: ``DomainError/taskCompleted``, ``DomainError/revisionMismatch``, ``DomainError/notFound``,
    ///   ``MoveUnderWay``.
    package func change(
        _ id: TaskID, _ changes: TaskChanges, ifRevision revision: Int64?, overtakesMove: Bool = false,
        at now: Timestamp
    ) async throws -> (TaskRecord, Aftermath) {
        try await transact(at: now, returning: { try self.read(id, $0) }) { transaction in
            let db = transaction.db
            guard var task = try self.read(id, db) else { throw DomainError.notFound }
            if let revision, revision != task.revision { throw DomainError.revisionMismatch }
            let (live, old) = (try transaction.live(id), task.specification)
            let changesTransfer =
                changes.priority != nil || changes.earliestBeginDate != nil || changes.request != nil
            if live == nil && changesTransfer { throw DomainError.taskCompleted }
            if changes.request != nil, !overtakesMove { try store.files.checkMove(live?.plannedMove) }
            task.specification.priority = changes.priority ?? task.specification.priority
            if let description = changes.taskDescription { task.specification.taskDescription = description }
            task.specification.metadata = changes.metadata ?? task.specification.metadata
            if let begin = changes.earliestBeginDate { task.specification.earliestBeginDate = begin }
            task.specification.request = changes.request ?? task.specification.request
            // Compared as bytes: Swift's strings are equal in all Unicode forms.
            if task.specification.bytesAtRest != old.bytesAtRest { try self.save(task, db) }
            if let live { try self.apply(changes, to: live, task, transaction) }
        }
    }

    /// Stores the changed specification of a task.
    func save(_ task: TaskRecord, _ db: Connection) throws {
        try db.execute(
            "UPDATE task SET specification_document = ?2, priority = ?3, revision = revision + 1 WHERE id = ?1",
            task.id.rawValue,
            documents.encode(
                task.specification, sealedAs: Self.context(task.session, task.number),
                if: task.specification.request.holdsSecrets),
            task.specification.priority)
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
                if live.life.phase == .queued {
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
            try save(progress, of: live.id, db)
            try store.files.outdateMove(of: live, db)
            try store.cache.leaveFlight(live, transaction)
            live.flight = nil
            if live.life.phase == .following { try move(live, .due, transaction) }
            if live.life.phase == .active {
                transaction.aftermath.transfersToStop.append(live.id)
                try move(live, .interrupted, transaction)
                live = try transaction.live(live.id) ?? live
            }
        }
        if let begin = changes.earliestBeginDate {
            try db.execute("UPDATE live SET begins_at = ?2 WHERE task = ?1", live.id.rawValue, begin?.milliseconds)
            let timeout = try transaction.session(live.session).resourceTimeout
            try move(live, .reschedule(beginsAt: begin, timeout: timeout), transaction)
        }
    }

    /// Unfinished tasks in the order of their numbers. The caller applies the other filters: a request for few of many
    /// tasks must not read all of them in one transaction.
    private static func unfinished(
        _ session: SessionID, among numbers: Set<Int64>?, after number: Int64, limit: Int, _ db: Connection
    ) throws -> [Unfinished] {
        guard let numbers else { return try unfinished(session, after: number, limit: limit, db) }
        var found: [Unfinished] = []
        for wanted in numbers.filter({ $0 > number }).sorted() where found.count < limit {
            found += try unfinished(session, after: wanted - 1, limit: 1, db).filter { $0.number == wanted }
        }
        return found
    }

    private typealias Unfinished = (id: TaskID, number: Int64, state: TaskState, group: String?)

    private static func unfinished(
        _ session: SessionID, after number: Int64, limit: Int, _ db: Connection
    ) throws -> [Unfinished] {
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
        guard states.isEmpty || states.contains(state) else { return false }
        guard let wanted = self.group else { return true }
        return group.map { $0.utf8.elementsEqual(wanted.utf8) } ?? false
    }
}
