package import Core
import SQLite

extension Store {
    /// Acknowledged events are kept for this long.
    package static let acknowledgedRetention = Duration.seconds(3600)

    /// Up to `limit` events after a number, by default after what is acknowledged.
    ///
    /// - Parameter maximumBytes: Of what they tell, as it is stored; one event is always read.
    /// - Throws: ``DomainError/eventsExpired(oldestSeq:)`` when an event behind `after` has been dropped;
    ///   ``DomainError/cursorInvalid(incarnation:lastSeq:)`` when the session never had an event of that number.
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
            SELECT last_seq, acknowledged_seq, dropped_seq, running, identifier, incarnation FROM session \
            WHERE id = ?1 AND forgotten = 0 AND EXISTS (SELECT 1 FROM app WHERE id = session.app)
            """, id.rawValue
        ) { ($0.integer(0), $0.integer(1), $0.integer(2), $0.integer(3), $0.text(4), $0.integer(5)) }
        guard let (lastSeq, acknowledged, dropped, running, identifier, incarnation) = session else {
            throw DomainError.notFound
        }
        let start = after ?? acknowledged
        if start < dropped { throw DomainError.eventsExpired(oldestSeq: dropped + 1) }
        guard start <= lastSeq else { throw DomainError.cursorInvalid(incarnation: incarnation, lastSeq: lastSeq) }
        var room = maximumBytes
        let events = try db.all(
            """
            SELECT e.seq, e.kind, e.task, e.occurred_at, e.data, t.number, t.client_task_id, t.group_name, t.outcome, \
            CASE WHEN e.kind IN (5, 6) THEN t.result_document END, t.created_at, t.completed_at, \
            c.length, c.algorithm, c.digest, c.expired \
            FROM event e LEFT JOIN task t ON t.id = e.task LEFT JOIN content c ON e.kind = 4 AND c.task = e.task \
            WHERE e.session = ?1 AND e.seq > ?2 ORDER BY e.seq LIMIT ?3
            """, id.rawValue, start, limit,
            while: { row in
                let isFirst = room == maximumBytes
                room -= self.cost(row)
                return room >= 0 || isFirst
            },
            read: { row in
                EventRecord(
                    seq: row.integer(0), kind: EventKind(rawValue: row.int(1)) ?? .didComplete,
                    occurredAt: Timestamp(milliseconds: row.integer(3)), taskIdentifier: row.integerOrNil(5),
                    clientTaskId: row.textOrNil(6), group: row.textOrNil(7),
                    payload: try self.payload(row, session: id, identifier: identifier, db))
            })
        let end = events.last?.seq ?? start
        return EventPage(
            events: events, lastSeq: lastSeq, acknowledgedSeq: acknowledged,
            isFinished: end >= lastSeq && running == 0)
    }

    /// Bytes that have to be read for an event. A question's are not in the row, and seldom.
    private func cost(_ row: Row) -> Int {
        switch EventKind(rawValue: row.int(1)) {
        case .didReceiveChallenge, .willBeginDelayedRequest: 64 * 1024
        default: 256 + row.withBlob(4, \.count) + row.withBlob(9, \.count)
        }
    }

    /// What an event tells. The three last events of a task are told from its row, which never changes after.
    private func payload(
        _ row: Row, session: SessionID, identifier: String, _ db: Connection
    ) throws -> EventRecord.Payload {
        switch EventKind(rawValue: row.int(1)) ?? .didBecomeInvalid {
        case .willBeginDelayedRequest, .didReceiveChallenge:
            let questionId = String(decoding: row.blob(4), as: UTF8.self)
            guard let question = try readQuestion(questionId, db) else { throw DomainError.notFound }
            return .question(question)
        case .didResumeAtOffset:
            return .resumed(try documents.decode(Resumption.self, row.blob(4)))
        case .didFinishDownloading:
            return .finishedDownloading(
                ContentRecord(
                    length: row.integerOrNil(12) ?? 0,
                    digest: ContentDigest(
                        algorithm: row.textOrNil(13).flatMap(DigestAlgorithm.init(rawValue:)) ?? .sha256,
                        value: row.textOrNil(14) ?? ""),
                    expiresAt: try row.blobOrNil(4).map { try documents.decode(Timestamp.self, $0) },
                    isExpired: (row.integerOrNil(15) ?? 1) != 0))
        case .didFinishCollectingMetrics:
            return .metrics(
                try documents.decode(TaskResult.self, row.blob(9)),
                createdAt: Timestamp(milliseconds: row.integer(10)),
                completedAt: Timestamp(milliseconds: row.integer(11)))
        case .didComplete:
            return .completed(
                row.integerOrNil(8).flatMap { Outcome(rawValue: Int($0)) } ?? .failed,
                try documents.decode(TaskResult.self, row.blob(9)))
        case .didFinishEvents:
            return .finishedEvents(launchId: String(decoding: row.blob(4), as: UTF8.self))
        case .didBecomeInvalid:
            return .becameInvalid
        }
    }

    /// Acknowledges all events up to a number. Cumulative and idempotent.
    ///
    /// - Parameter epoch: The caller's attachment, where it has one.
    /// - Throws: ``DomainError/acknowledgementOutOfRange(lastSeq:)``, ``DomainError/attachmentFenced``.
    package func acknowledge(
        through seq: Int64, epoch: Int64?, in id: SessionID, at now: Timestamp
    ) async throws -> (SessionRecord, Aftermath) {
        let (_, aftermath) = try await transact(at: now) { transaction in
            let session = try transaction.session(id)
            try self.checkFence(session, epoch: epoch, transaction)
            guard seq <= session.lastSeq else {
                throw DomainError.acknowledgementOutOfRange(lastSeq: session.lastSeq)
            }
            try self.acknowledge(through: seq, session, transaction)
        }
        return (try await session(id), aftermath)
    }

    /// Moves the acknowledgement forward and starts the clocks of what it covers, which is not touched: two rows.
    func acknowledge(through seq: Int64, _ session: SessionEntry, _ transaction: Transaction) throws {
        guard session.book.acknowledge(through: seq) else { return }
        try transaction.db.execute(
            "INSERT OR IGNORE INTO acknowledgement (session, through, at) VALUES (?1, ?2, ?3)",
            session.id.rawValue, seq, transaction.now.milliseconds)
        session.revision += 1
        session.isChanged = true
    }
}
