package import Core
import SQL

package struct CompletedTask: Sendable {
    package let id: TaskID
    package let session: SessionID
    package let name: TaskName
    package let outcome: Outcome
    package let statusCode: Int?
    package let error: TaskError?
}

/// The effects that a commit leaves to run: wake-ups, transfers to stop, files to remove.
package struct Aftermath: Sendable {
    /// Sessions with new events, and their last `seq`.
    package var sessions: [SessionID: Int64] = [:]
    /// When the first stall check is due that this commit scheduled, if any.
    package var stallCheckAt: Timestamp?
    /// Sessions whose launch rule is to be evaluated again, and when.
    package var launchChecks: [SessionID: Timestamp] = [:]
    package var hasQueuedTasks = false
    package var hasDueLaunches = false
    /// The earliest due time of a delayed task that this commit set, if any.
    package var wakeAt: Timestamp?
    package var transfersToStop: [TaskID] = []
    /// Cancelled uploads of which a server holds a partial upload that it may discard.
    package var abandonedUploads: [TaskID] = []
    /// The same of deleted tasks.
    package var deletedUploads: [AbandonedUpload] = []
    package var completedTasks: [CompletedTask] = []
    /// Whether tasks were deleted with their session.
    package var hasDeletedTasks = false
    /// Files that nothing refers to any more, relative to the data folder.
    package var filesToRemove: [String] = []
    /// Whether a step on a set is due.
    package var hasDueSets = false
    /// Contents that expired unacknowledged.
    package var unreadContents = 0

    package init() {}

    package mutating func merge(_ other: Aftermath) {
        sessions.merge(other.sessions) { max($0, $1) }
        launchChecks.merge(other.launchChecks) { min($0, $1) }
        hasQueuedTasks = hasQueuedTasks || other.hasQueuedTasks
        hasDueLaunches = hasDueLaunches || other.hasDueLaunches
        if let other = other.wakeAt { wakeAt = min(wakeAt ?? other, other) }
        if let other = other.stallCheckAt { stallCheckAt = min(stallCheckAt ?? other, other) }
        transfersToStop += other.transfersToStop
        abandonedUploads += other.abandonedUploads
        deletedUploads += other.deletedUploads
        completedTasks += other.completedTasks
        hasDeletedTasks = hasDeletedTasks || other.hasDeletedTasks
        filesToRemove += other.filesToRemove
        hasDueSets = hasDueSets || other.hasDueSets
        unreadContents += other.unreadContents
    }
}

/// One transaction over the domain: it collects the changes of each session and writes every counter once, at the end.
///
/// Used on the writer's thread only, inside one closure.
final class Transaction {
    let db: Connection
    let documents: Documents
    let policies: Store.Policies
    let store: Store
    /// The node that runs the transaction, if nodes share the store.
    let node: String?
    let now: Timestamp
    var aftermath = Aftermath()
    private var sessions: [SessionID: SessionEntry] = [:]
    /// Rows that were read ahead. Each is used once, because it may change afterwards.
    private var preread: [TaskID: LiveTask.Reading?] = [:]
    /// The other inputs of the launch rule, read ahead.
    private var circumstances: [SessionID: Circumstances] = [:]
    /// Rows of completed tasks, for ``flushCompleted()``.
    private var completed: [[(any SQLBindable)?]] = []
    /// Rows that ``finish()`` inserts together.
    private var events: [[(any SQLBindable)?]] = []
    private var contents: [[(any SQLBindable)?]] = []
    private var queuedInLanes: [Int64: Int64] = [:]
    /// Changes of the apps' unfinished tasks and stored bytes.
    private var countsOfApps: [AppID: (unfinished: Int64, stored: Int64)] = [:]
    private var cacheOfApps: [AppID: CacheChange] = [:]
    private var versions: [SetVersionID: SetVersionChange] = [:]
    var landings = LandingReading()
    /// Where bytes lie that more rows may refer to, read ahead or written by this transaction.
    private var places: [PlaceKey: StoredPlace] = [:]

    init(_ db: Connection, _ store: Store, now: Timestamp) {
        self.db = db
        documents = store.documents
        policies = store.policies
        self.store = store
        node = store.node
        self.now = now
    }

    /// The session's counters, read once in a transaction.
    func session(_ id: SessionID) throws -> SessionEntry { try sessionIfPresent(id).orNotFound() }

    /// The session's counters; `nil` if no such session is stored.
    func sessionIfPresent(_ id: SessionID) throws -> SessionEntry? {
        if sessions[id] == nil { try readSessions([id]) }
        return sessions[id]
    }

    /// The session's counters, if its revision is the expected one.
    ///
    /// - Parameter revision: The revision that the caller expects, or `nil`.
    /// - Throws: ``DomainError/revisionMismatch`` if the session has another revision.
    func session(_ id: SessionID, ifRevision revision: Int64?) throws -> SessionEntry {
        let session = try session(id)
        if let revision, revision != session.revision { throw DomainError.revisionMismatch }
        return session
    }

    /// Reads the rows of tasks and their sessions ahead of the calls that need each of them. Until a task is handled,
    /// only the work on the task itself may change its row.
    ///
    /// - Parameter likely: The probable sessions of the tasks, whose rows are read in the same round trip.
    func preread(_ tasks: [TaskID], likely: Set<SessionID> = []) throws {
        let tasks = Array(Set(tasks))
        let ids = Array(likely)
        let rows = try LiveTask.ask(tasks, db)
        let entries = try SessionEntry.ask(ids.filter { sessions[$0] == nil }, db)
        let circumstances = try askCircumstances(of: ids)
        for (id, row) in zip(tasks, try rows.get()) { preread[id] = .some(row.first) }
        for entry in try entries.get().joined() { sessions[entry.id] = entry }
        for (id, rows) in zip(ids, try circumstances.get()) { self.circumstances[id] = rows.first }
        try readSessions(preread.values.compactMap { $0?.session })
    }

    private func readSessions(_ ids: [SessionID]) throws {
        let unread = Set(ids).filter { sessions[$0] == nil }
        for entry in try SessionEntry.ask(Array(unread), db).get().joined() { sessions[entry.id] = entry }
    }

    /// The launch rule's inputs that were read ahead; `nil` if they may have changed since.
    func circumstances(of session: SessionID) -> Circumstances? { circumstances[session] }

    /// Discards the circumstances that were read ahead, because a question changed.
    func questionsChanged() { circumstances = [:] }

    /// The row of a task that is not completed, or `nil`. A task of a deleted session also yields `nil`: the tombstone
    /// hides it, and no counter includes it.
    func live(_ id: TaskID) throws -> LiveTask? {
        let reading: LiveTask.Reading?
        if let row = preread.removeValue(forKey: id) {
            reading = row
        } else {
            try flushCompleted()
            reading = try LiveTask.ask([id], db).get()[0].first
        }
        return try reading.flatMap { try session($0.session).isForgotten ? nil : $0.task.get() }
    }

    /// Calls `body` with the row of each task, read when it is handled. For a task behind a tombstone the due times are
    /// cleared instead, so that it never becomes due again.
    func forEachLive(_ tasks: [TaskID], _ body: (LiveTask) throws -> Void) throws {
        for id in tasks {
            if let live = try live(id) {
                try body(live)
            } else {
                try db.execute(
                    """
                    UPDATE live SET due_at = NULL, resource_deadline = NULL, question = NULL, node = NULL, flight = NULL \
                    WHERE task = ?1
                    """, id.rawValue)
            }
        }
    }

    /// The task's life after an event. Stores nothing.
    func life(of live: LiveTask, after event: TaskLife.Event, crashes: Int) throws -> TaskLife {
        var life = live.life
        let isSuspect = Quarantine.verdict(after: crashes) == .runAlone
        if try life.handle(event, isSuspect: isSuspect, at: now).contains(.stopTransfer) {
            aftermath.transfersToStop.append(live.id)
        }
        return life
    }

    /// Updates lanes, counters and clocks for a change of a task's life.
    ///
    /// - Parameter before: The previous life, `nil` for a new task.
    func follow(_ before: TaskLife?, _ after: TaskLife, lane: Int64, of session: SessionEntry) {
        if before?.phase == .queued { addQueued(-1, lane: lane) }
        if after.phase == .queued { addQueued(1, lane: lane) }
        if after.phase == .quarantined { aftermath.hasQueuedTasks = true }
        if let due = after.dueAt { wake(at: due) }
        if let deadline = after.deadline, deadline != before?.deadline { wake(at: deadline) }
        if after.waitsForProgress, before?.waitsForProgress != true {
            session.stall.began(at: now)
            session.isChanged = true
        }
        guard after.state != before?.state else { return }
        if let before { session.counts.add(-1, before) } else { addUnfinished(1, app: session.app) }
        session.counts.add(1, after)
        if after.state == .completed { addUnfinished(-1, app: session.app) }
        session.isChanged = true
    }

    func addQueued(_ count: Int64, lane: Int64) {
        queuedInLanes[lane, default: 0] += count
        if count > 0 { aftermath.hasQueuedTasks = true }
    }

    func addUnfinished(_ count: Int64, app: AppID) { countsOfApps[app, default: (0, 0)].unfinished += count }

    /// Adds to the app's stored bytes of bodies and contents; negative for removed bytes.
    func addStored(_ count: Int64, app: AppID) { countsOfApps[app, default: (0, 0)].stored += count }

    /// The change of the app's stored bytes that is not written yet.
    func stored(of app: AppID) -> Int64 { countsOfApps[app]?.stored ?? 0 }

    func change(cacheOf app: AppID, _ body: (inout CacheChange) -> Void) {
        body(&cacheOfApps[app, default: CacheChange()])
    }

    func change(_ version: SetVersionID, _ body: (inout SetVersionChange) -> Void) {
        body(&versions[version, default: SetVersionChange()])
    }

    func place(of digest: String, _ app: AppID) -> StoredPlace? { places[PlaceKey(app: app, digest: digest)] }

    func note(_ place: StoredPlace?, of digest: String, _ app: AppID) {
        places[PlaceKey(app: app, digest: digest)] = place
    }

    func forget(_ place: StoredPlace) { places = places.filter { $0.value != place } }

    func wake(at time: Timestamp) { aftermath.wakeAt = min(aftermath.wakeAt ?? time, time) }

    /// Appends a stored event and returns its number.
    @discardableResult
    func append(
        _ kind: EventKind, to session: SessionEntry, task: TaskID? = nil, data: [UInt8]? = nil
    ) throws -> Int64 {
        session.book.lastSeq += 1
        session.isChanged = true
        events.append([session.id.rawValue, session.lastSeq, kind.rawValue, task?.rawValue, now.milliseconds, data])
        return session.lastSeq
    }

    /// Queues the row of a task's content for insertion.
    func keep(content row: [(any SQLBindable)?]) { contents.append(row) }

    /// Completes a task: updates its row and deletes its row in `live`.
    func complete(task row: [(any SQLBindable)?]) { completed.append(row) }

    /// Writes the completed tasks, so that later statements of the transaction see them.
    func flushCompleted() throws {
        try db.executeAll(
            """
            UPDATE task SET state = ?6, outcome = ?2, result_document = ?3, completed_at = ?4, \
            completed_seq = ?5, revision = revision + 1 WHERE id = ?1
            """, completed)
        try db.executeAll("DELETE FROM live WHERE task = ?1", completed.map { [$0[0]] })
        completed = []
    }

    /// Writes events and contents, so that later statements of the transaction see them.
    func flushRows() throws {
        try db.executeAll(
            "INSERT INTO event (session, seq, kind, task, occurred_at, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)", events)
        events = []
        try db.executeAll(
            """
            INSERT INTO content (task, session, seq, length, algorithm, digest, bytes, file, expires_at, expired, \
            object, app, indexed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
            """, contents)
        contents = []
    }

    /// Writes the counters of lanes, apps and versions, so that later statements of the transaction see them.
    func flushCounters() throws {
        for (lane, count) in queuedInLanes where count != 0 {
            try db.execute(
                "UPDATE lane SET queued = CASE WHEN queued + ?2 > 0 THEN queued + ?2 ELSE 0 END WHERE id = ?1", lane,
                count)
        }
        queuedInLanes = [:]
        for (app, count) in countsOfApps where count != (0, 0) {
            try db.execute(
                """
                UPDATE app SET unfinished_tasks = \
                CASE WHEN unfinished_tasks + ?2 > 0 THEN unfinished_tasks + ?2 ELSE 0 END, \
                stored_bytes = CASE WHEN stored_bytes + ?3 > 0 THEN stored_bytes + ?3 ELSE 0 END WHERE id = ?1
                """, app.rawValue, count.unfinished, count.stored)
        }
        countsOfApps = [:]
        for (app, change) in cacheOfApps { try change.write(for: app, db) }
        cacheOfApps = [:]
        for (version, change) in versions { try change.write(for: version, self) }
        versions = [:]
    }

    /// Writes the changes of each session, after ending invalidations and evaluating the launch rule.
    func finish() throws -> Aftermath {
        try flushCompleted()
        try store.cache.endEmptyFlights(self)
        try flushCounters()
        let changed = sessions.values.filter(\.isChanged)
        for session in changed where session.counts.unfinished == 0 && session.book.versionsInFlight == 0 {
            guard session.state.handle(.noTaskLeft, at: now).contains(.tellInvalid) else { continue }
            session.revision += 1
            try append(.didBecomeInvalid, to: session)
        }
        try flushRows()
        try askLaunchRule(of: changed)
        for session in changed where !session.isForgotten {
            let before = session.stall.checkAt
            session.stall.follow(runningTasks: session.counts.running)
            if let moment = session.stall.checkAt, moment != before {
                aftermath.stallCheckAt = min(aftermath.stallCheckAt ?? moment, moment)
            }
        }
        try SessionEntry.write(changed, db)
        for session in changed { aftermath.sessions[session.id] = session.lastSeq }
        return aftermath
    }
}

extension Face {
    /// Runs `body` as one transaction and returns its result and aftermath.
    func transact<Result: Sendable>(
        at now: Timestamp, _ body: @escaping @Sendable (Transaction) throws -> Result
    ) async throws -> (Result, Aftermath) {
        try await database.write { db in
            let transaction = Transaction(db, store, now: now)
            let result = try body(transaction)
            return (result, try transaction.finish())
        }
    }

    /// Runs `body` as one transaction, and reads the changed resource in it: no later commit's change of the resource is
    /// shown to this caller as its own.
    ///
    /// - Throws: ``DomainError/notFound`` if the resource does not exist.
    func transact<Value: Sendable>(
        at now: Timestamp, returning read: @escaping @Sendable (Connection) throws -> Value?,
        _ body: @escaping @Sendable (Transaction) throws -> Void
    ) async throws -> (Value, Aftermath) {
        try await database.write { db in
            let transaction = Transaction(db, store, now: now)
            try body(transaction)
            let aftermath = try transaction.finish()
            return (try read(db).orNotFound(), aftermath)
        }
    }

    /// Runs `body` as one transaction, reads its result after the commit, and returns the result and aftermath.
    ///
    /// - Parameter body: Returns the closure that reads the result after the commit. An error of that closure undoes
    ///   nothing, because the response to a commit may be lost.
    func transactThenRead<Value: Sendable>(
        at now: Timestamp, _ body: @escaping @Sendable (Transaction) throws -> () throws -> Value
    ) async throws -> (Result<Value, any Error>, Aftermath) {
        try await database.writeThenRead { db in
            let transaction = Transaction(db, store, now: now)
            let result = try body(transaction)
            let aftermath = try transaction.finish()
            return { (Result(catching: result), aftermath) }
        }
    }
}
