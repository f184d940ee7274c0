import Core
import SQL

/// The counters of one session while a transaction changes them.
final class SessionEntry {
    let id: SessionID
    let app: AppID
    let identifier: String
    let appIdentifier: String
    /// Whether the small contents of its app are found by their digests.
    let indexesContents: Bool
    let sendsLaunches: Bool
    let resourceTimeout: Duration
    let isDiscretionary: Bool
    var state: SessionState
    /// Whether the session or its app was deleted.
    var isForgotten: Bool
    var nextTask: Int64
    /// The state of the launch rule.
    var book = LaunchBook()
    var attachment: [UInt8]?
    var stall = StallWatch()
    var counts: TaskCounts
    var bytesReceived: Int64
    var bytesSent: Int64
    var revision: Int64
    var isChanged = false

    var lastSeq: Int64 { book.lastSeq }

    static func ask(_ ids: [SessionID], _ db: Connection) throws -> Asked<SessionEntry> {
        try db.ask(
            """
            SELECT s.id, s.app, s.identifier, sends_launches, resource_timeout, state, \
            forgotten = 1 OR a.id IS NULL AS gone, next_task, last_seq, \
            acknowledged_seq, last_completion_seq, exhausted_seq, open_launch, idle_completions, launch_not_before, \
            attachment_document, suspended, running, succeeded, http_error, failed, cancelled, not_modified, \
            bytes_received, bytes_sent, invalid_at, stall_interval, progressed_at, stalled, stall_check_at, \
            last_stall_seq, versions_in_flight, last_publication_seq, last_set_failure_seq, s.revision, discretionary, \
            a.identifier AS app_identifier, coalesce(a.indexes_contents, 0) AS indexes_contents \
            FROM session s LEFT JOIN app a ON a.id = s.app WHERE s.id = ?1
            """, ids.map { [$0.rawValue] }
        ) { try SessionEntry($0) }
    }

    private init(_ row: Row) throws {
        id = SessionID(row.integer("id"))
        app = AppID(row.integer("app"))
        identifier = row.text("identifier")
        appIdentifier = row.text("app_identifier")
        indexesContents = row.bool("indexes_contents")
        sendsLaunches = row.bool("sends_launches")
        resourceTimeout = .milliseconds(row.integer("resource_timeout"))
        isDiscretionary = row.bool("discretionary")
        state = try SessionState(row)
        isForgotten = row.bool("gone")
        nextTask = row.integer("next_task")
        book.lastSeq = row.integer("last_seq")
        book.acknowledgedSeq = row.integer("acknowledged_seq")
        book.lastCompletionSeq = row.integer("last_completion_seq")
        book.exhaustedSeq = row.integer("exhausted_seq")
        book.openLaunch = row.integerOrNil("open_launch")
        book.idleCompletions = row.int("idle_completions")
        book.notBefore = row.time("launch_not_before")
        attachment = row.blobOrNil("attachment_document")
        stall.interval = row.integerOrNil("stall_interval").map { .milliseconds($0) }
        stall.progressedAt = row.time("progressed_at")
        stall.isStalled = row.bool("stalled")
        stall.checkAt = row.timeOrNil("stall_check_at")
        book.lastStallSeq = row.integer("last_stall_seq")
        book.versionsInFlight = row.integer("versions_in_flight")
        book.lastPublicationSeq = row.integer("last_publication_seq")
        book.lastSetFailureSeq = row.integer("last_set_failure_seq")
        counts = TaskCounts(row)
        bytesReceived = row.integer("bytes_received")
        bytesSent = row.integer("bytes_sent")
        revision = row.integer("revision")
    }

    static func write(_ entries: [SessionEntry], _ db: Connection) throws {
        try db.executeAll(
            """
            UPDATE session SET state = ?2, next_task = ?3, last_seq = ?4, acknowledged_seq = ?5, \
            last_completion_seq = ?6, exhausted_seq = ?7, open_launch = ?8, idle_completions = ?9, \
            launch_not_before = ?10, attachment_document = ?11, suspended = ?12, running = ?13, succeeded = ?14, \
            http_error = ?15, failed = ?16, cancelled = ?17, not_modified = ?18, bytes_received = ?19, \
            bytes_sent = ?20, invalid_at = ?21, revision = ?22, forgotten = ?23, \
            progressed_at = ?24, stalled = ?25, stall_check_at = ?26, last_stall_seq = ?27, \
            versions_in_flight = ?28, last_publication_seq = ?29, last_set_failure_seq = ?30 WHERE id = ?1
            """, entries.map(\.row))
        for entry in entries { entry.isChanged = false }
    }

    func write(_ db: Connection) throws { try Self.write([self], db) }

    private var row: [(any SQLBindable)?] {
        [
            id.rawValue, state.phase.rawValue, nextTask, lastSeq, book.acknowledgedSeq, book.lastCompletionSeq,
            book.exhaustedSeq, book.openLaunch, book.idleCompletions, book.notBefore.milliseconds, attachment,
            counts.suspended, counts.running, counts.succeeded, counts.httpError, counts.failed, counts.cancelled,
            counts.notModified, bytesReceived, bytesSent, state.invalidSince?.milliseconds, revision, isForgotten,
            stall.progressedAt.milliseconds, stall.isStalled, stall.checkAt?.milliseconds, book.lastStallSeq,
            book.versionsInFlight, book.lastPublicationSeq, book.lastSetFailureSeq,
        ]
    }

    /// Rejects new tasks from now on.
    func invalidate(at now: Timestamp) {
        let before = state
        state.handle(.invalidate, at: now)
        guard state != before else { return }
        revision += 1
        isChanged = true
    }

    /// Hides the session from all readers but the janitor, at once: the same transaction may reuse its identifier.
    func forget(at now: Timestamp, _ db: Connection) throws {
        state.handle(.forget, at: now)
        isForgotten = true
        stall.checkAt = nil
        try write(db)
    }
}

extension SessionState {
    init(_ row: Row) throws(UnknownValue) {
        switch try row.value("state") as Phase {
        case .active: self = .active
        case .invalidating: self = .invalidating
        case .invalid:
            guard let moment = row.timeOrNil("invalid_at") else {
                throw UnknownValue(type: "SessionState", word: "invalid without its moment")
            }
            self = .invalid(since: moment)
        }
    }

    fileprivate var invalidSince: Timestamp? { if case .invalid(let moment) = self { moment } else { nil } }
}
