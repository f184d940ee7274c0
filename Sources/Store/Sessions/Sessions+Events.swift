package import Core
import SQL

extension Store.Sessions {
    /// The retention of acknowledged events.
    package static let acknowledgedRetention = Duration.seconds(3600)

    /// Up to `limit` events after a number, by default after the last acknowledged one.
    ///
    /// - Parameter maximumBytes: The maximum of stored data that is read. At least one event is always read.
    /// - Throws: ``DomainError/eventsExpired(oldestSeq:)`` if an event after `after` has been dropped;
    ///   ``DomainError/cursorInvalid(incarnation:lastSeq:)`` if the session never had an event of that number.
    package func events(
        of id: SessionID, after: Int64?, limit: Int, maximumBytes: Int = EventPage.maximumBytes
    ) async throws -> EventPage {
        try await database.read { db in
            try self.readEvents(of: id, after: after, limit: limit, maximumBytes: maximumBytes, db)
        }
    }

    func readEvents(
        of id: SessionID, after: Int64?, limit: Int, maximumBytes: Int, _ db: Connection
    ) throws -> EventPage {
        let session = try db.first(
            """
            SELECT identifier, last_seq, acknowledged_seq, dropped_seq, running, incarnation FROM session \
            WHERE id = ?1 AND forgotten = 0 AND EXISTS (SELECT 1 FROM app WHERE id = session.app)
            """, id.rawValue
        ) { row in
            (
                identifier: row.text("identifier"),
                lastSeq: row.integer("last_seq"), acknowledgedSeq: row.integer("acknowledged_seq"),
                droppedSeq: row.integer("dropped_seq"), running: row.integer("running"),
                incarnation: row.integer("incarnation")
            )
        }
        guard let session else { throw DomainError.notFound }
        let start = after ?? session.acknowledgedSeq
        if start < session.droppedSeq { throw DomainError.eventsExpired(oldestSeq: session.droppedSeq + 1) }
        guard start <= session.lastSeq else {
            throw DomainError.cursorInvalid(incarnation: session.incarnation, lastSeq: session.lastSeq)
        }
        var room = maximumBytes
        var results = TaskResults(documents: documents)
        let events = try db.all(
            """
            SELECT e.seq, e.kind, e.task, e.occurred_at, e.data, t.number, t.client_task_id, t.group_name, t.outcome, \
            CASE WHEN e.kind IN ('task.didFinishDownloading', 'task.didFinishCollectingMetrics', 'task.didComplete') \
            THEN t.result_document END AS result_document, t.created_at, t.completed_at, c.length, c.algorithm, c.digest, c.expired \
            FROM event e LEFT JOIN task t ON t.id = e.task \
            LEFT JOIN content c ON e.kind = 'task.didFinishDownloading' AND c.task = e.task \
            WHERE e.session = ?1 AND e.seq > ?2 ORDER BY e.seq LIMIT ?3
            """, id.rawValue, start, limit,
            while: { row in
                let isFirst = room == maximumBytes
                room -= self.cost(row)
                return room >= 0 || isFirst
            },
            read: { row in
                let kind: EventKind = try row.value("kind")
                return EventRecord(
                    seq: row.integer("seq"), kind: kind, occurredAt: row.time("occurred_at"),
                    taskIdentifier: row.integerOrNil("number"), clientTaskId: row.textOrNil("client_task_id"),
                    group: row.textOrNil("group_name"),
                    payload: try self.payload(kind, row, of: (id, session.identifier), &results, db))
            })
        let end = events.last?.seq ?? start
        return EventPage(
            events: events, lastSeq: session.lastSeq, acknowledgedSeq: session.acknowledgedSeq,
            isFinished: end >= session.lastSeq && session.running == 0)
    }

    /// The bytes to read for an event. A question's bytes are in another row, and such events are rare.
    private func cost(_ row: Row) -> Int {
        switch EventKind(rawValue: row.text("kind")) {
        case .didReceiveChallenge, .willBeginDelayedRequest: 64 * 1024
        default: 256 + row.withBlob("data", \.count) + row.withBlob("result_document", \.count)
        }
    }

    /// The payload of an event. The three last events of a task read its row, whose result never changes afterwards but for
    /// the bytes that are kept for a retry.
    private func payload(
        _ kind: EventKind, _ row: Row, of session: (id: SessionID, identifier: String), _ results: inout TaskResults,
        _ db: Connection
    ) throws -> EventRecord.Payload {
        switch kind {
        case .willBeginDelayedRequest, .didReceiveChallenge:
            let questionId = String(decoding: row.blob("data"), as: UTF8.self)
            let (task, number, occurredAt) = (row.integer("task"), row.integer("number"), row.time("occurred_at"))
            if let question = try store.questions.read(questionId, db) { return .question(question) }
            // Only a delayed request may hold secrets, and be lost with the master key.
            guard kind == .willBeginDelayedRequest else { throw DomainError.notFound }
            return .question(
                QuestionRecord(
                    questionId: questionId, task: TaskID(task), taskIdentifier: number, session: session.id,
                    sessionIdentifier: session.identifier, state: .expired,
                    question: Question(
                        kind: .delayedRequest, request: TransferRequest(url: Store.Upkeep.lostURL, method: "GET")),
                    createdAt: occurredAt, deadline: occurredAt))
        case .didResumeAtOffset:
            return .resumed(try documents.decode(Resumption.self, row.blob("data")))
        case .didFinishDownloading:
            let expiresAt = try row.blobOrNil("data").map { try documents.decode(Timestamp.self, $0) }
            return .finishedDownloading(
                try ContentRecord(row, expiresAt: expiresAt), try results.result(in: row).response)
        case .didFinishCollectingMetrics:
            return .metrics(
                try results.result(in: row), createdAt: row.time("created_at"), completedAt: row.time("completed_at"))
        case .didComplete:
            return .completed(try row.value("outcome"), try results.result(in: row))
        case .didStall:
            return .stalled(try documents.decode(SessionStall.self, row.blob("data")))
        case .didPublish:
            return .published(try documents.decode(SetPublication.self, row.blob("data")))
        case .didFailToPublish:
            return .failedToPublish(try documents.decode(SetFailures.self, row.blob("data")))
        case .didFinishEvents:
            return .finishedEvents(launchId: String(decoding: row.blob("data"), as: UTF8.self))
        case .didBecomeInvalid:
            return .becameInvalid
        }
    }

    /// Acknowledges all events up to a number. Cumulative and idempotent.
    ///
    /// - Parameter epoch: The epoch of the caller's attachment, if it has one.
    /// - Throws: ``DomainError/acknowledgementOutOfRange(lastSeq:)``, ``DomainError/attachmentFenced``,
    ///   ``DomainError/revisionMismatch``.
    package func acknowledge(
        through seq: Int64, epoch: Int64?, in id: SessionID, ifRevision revision: Int64? = nil, at now: Timestamp
    ) async throws -> (SessionRecord, Aftermath) {
        try await transact(at: now, returning: { try self.read(id, $0) }) { transaction in
            let session = try transaction.session(id, ifRevision: revision)
            try self.checkFence(session, epoch: epoch, transaction)
            guard seq <= session.lastSeq else {
                throw DomainError.acknowledgementOutOfRange(lastSeq: session.lastSeq)
            }
            try self.acknowledge(through: seq, session, transaction)
        }
    }

    /// Advances the acknowledgement and starts the retention of the covered rows without writing them: two rows.
    func acknowledge(through seq: Int64, _ session: SessionEntry, _ transaction: Transaction) throws {
        guard session.book.acknowledge(through: seq) else { return }
        try transaction.db.execute(
            "INSERT INTO acknowledgement (session, through, at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
            session.id.rawValue, seq, transaction.now.milliseconds)
        session.revision += 1
        session.isChanged = true
    }

    /// Sessions with unacknowledged events, after a cursor. Used at start, when no client is attached.
    package func unacknowledged(after cursor: SessionID, limit: Int) async throws -> [SessionID] {
        try await database.read { db in
            try db.all(
                """
                SELECT id FROM session WHERE forgotten = 0 AND last_seq > acknowledged_seq AND id > ?1 \
                ORDER BY id LIMIT ?2
                """, cursor.rawValue, limit
            ) { SessionID($0.integer(0)) }
        }
    }
}

/// Reads the results of tasks for their events. Three events in a row share a result.
private struct TaskResults {
    let documents: Documents
    private var last: (task: Int64, result: TaskResult)?

    init(documents: Documents) { self.documents = documents }

    mutating func result(in row: Row) throws -> TaskResult {
        let task = row.integer("number")
        if let last, last.task == task { return last.result }
        let result = try documents.decode(TaskResult.self, row.blob("result_document"))
        last = (task, result)
        return result
    }
}
