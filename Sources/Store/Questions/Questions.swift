import Base
package import Core
import SQL

extension Store.Questions {
    package func read(_ questionId: String, app: AppID) async throws -> QuestionRecord {
        try await database.read { db in
            let owner = try db.first("SELECT app FROM question WHERE public_id = ?1", questionId) { $0.integer(0) }
            guard owner == app.rawValue, let question = try self.read(questionId, db) else {
                throw DomainError.notFound
            }
            return question
        }
    }

    func read(_ questionId: String, _ db: Connection) throws -> QuestionRecord? {
        try db.first(
            """
            SELECT q.task, t.number, q.session, s.identifier, q.state, q.question_document, q.disposition, \
            q.created_at, q.deadline, q.answered_at, CASE WHEN q.state = 'open' \
            THEN (SELECT count(*) FROM live WHERE live.question = q.id) ELSE q.task_count END AS task_count \
            FROM question q JOIN session s ON s.id = q.session JOIN task t ON t.id = q.task WHERE q.public_id = ?1
            """, questionId
        ) { row in
            QuestionRecord(
                questionId: questionId, task: TaskID(row.integer("task")), taskIdentifier: row.integer("number"),
                taskCount: row.integer("task_count"), session: SessionID(row.integer("session")),
                sessionIdentifier: row.text("identifier"),
                state: try QuestionState(row),
                question: try documents.decode(
                    Question.self, row.blob("question_document"), sealedAs: "question/\(questionId)"),
                createdAt: row.time("created_at"), deadline: row.time("deadline"))
        }
    }

    /// Applies an event to a question.
    ///
    /// - Parameters:
    ///   - waiting: The number of tasks that wait for the question, if it ends with some.
    ///   - answer: The document of the app's answer.
    @discardableResult
    private func move(
        question id: Int64, _ event: QuestionState.Event, waiting: Int64? = nil, answer: [UInt8]? = nil,
        _ transaction: Transaction
    ) throws -> [QuestionState.Effect] {
        let row = try transaction.db.first(
            "SELECT state, disposition, answered_at, deadline FROM question WHERE id = ?1", id
        ) { (try QuestionState($0), $0.time("deadline")) }
        guard let (before, deadline) = row else { return [] }
        var state = before
        let effects = try state.handle(event, deadline: deadline, at: transaction.now)
        guard state != before else { return effects }
        transaction.questionsChanged()
        // If the only waiting task fails, no task is left to resume.
        let isReleasing = effects.contains(.release) && (waiting ?? 0 > 1 || !effects.contains(.failTask))
        try transaction.db.execute(
            """
            UPDATE question SET state = ?2, disposition = ?3, answered_at = ?4, releasing = ?5, \
            task_count = coalesce(?6, task_count), answer_document = ?7 WHERE id = ?1
            """,
            id, state.phase.rawValue, state.disposition?.rawValue, state.answeredAt?.milliseconds, isReleasing, waiting,
            answer)
        return effects
    }

    /// Makes a task wait for the app: for the session's open question about the same protection space, otherwise for a
    /// new question with its event.
    func ask(
        _ question: Question, _ questionId: String, _ deadline: Timestamp, _ live: LiveTask, _ session: SessionEntry,
        _ transaction: Transaction
    ) throws -> QuestionID {
        let space = question.protectionSpace.map(Self.spaceKey)
        return try join(question, space, session, transaction.db)
            ?? open(question, questionId, space, deadline, live, session, transaction)
    }

    /// The key that distinguishes open questions: two public keys of a server make two questions.
    private static func spaceKey(_ space: ProtectionSpace) -> String {
        Digest.of(Array("\(key(space))\n\(space.serverPublicKey ?? "")".utf8)).hexadecimal
    }

    /// The open question that the task joins; `nil` if there is none.
    private func join(
        _ question: Question, _ space: String?, _ session: SessionEntry, _ db: Connection
    ) throws -> QuestionID? {
        let found = try space.flatMap { space in
            try db.first(
                """
                SELECT id, public_id FROM question WHERE session = ?1 AND space = ?2 AND state = 'open'
                """, session.id.rawValue, space
            ) { ($0.integer("id"), $0.text("public_id")) }
        }
        guard let (id, questionId) = found else { return nil }
        // The app learns of the refused credential, whichever task was refused first.
        if question.previousFailureCount > 0, var open = try read(questionId, db)?.question,
            open.previousFailureCount < question.previousFailureCount
        {
            open.previousFailureCount = question.previousFailureCount
            try db.execute("UPDATE question SET question_document = ?2 WHERE id = ?1", id, documents.encode(open))
        }
        return QuestionID(id, publicId: questionId)
    }

    private func open(
        _ question: Question, _ questionId: String, _ space: String?, _ deadline: Timestamp, _ live: LiveTask,
        _ session: SessionEntry, _ transaction: Transaction
    ) throws -> QuestionID {
        let kind: EventKind = question.kind == .challenge ? .didReceiveChallenge : .willBeginDelayedRequest
        let seq = try transaction.append(kind, to: session, task: live.id, data: Array(questionId.utf8))
        let id = try transaction.db.insert(
            """
            INSERT INTO question \
            (public_id, app, session, task, seq, state, question_document, created_at, deadline, space) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
            """,
            questionId, session.app.rawValue, session.id.rawValue, live.id.rawValue, seq,
            QuestionState.open.phase.rawValue,
            documents.encode(
                question, sealedAs: "question/\(questionId)", if: question.request?.holdsSecrets ?? false),
            transaction.now.milliseconds, deadline.milliseconds, space)
        transaction.questionsChanged()
        transaction.wake(at: deadline)
        return QuestionID(id, publicId: questionId)
    }

    /// Stores an answer, and its credential if requested, and resumes the waiting tasks: the first ones at once, the
    /// rest with the clock (``expire(at:limit:)``).
    ///
    /// - Parameter credentialId: The identifier for the stored credential.
    /// - Throws: ``DomainError/questionAnswered`` for a second answer or an answer after the deadline,
    ///   ``DomainError/notFound``.
    package func answer(
        _ questionId: String, app: AppID, with answer: Answer, origin: String?, credentialId: String = "",
        at now: Timestamp
    ) async throws -> (QuestionRecord, Aftermath) {
        try await transact(at: now, returning: { try self.read(questionId, $0) }) { [documents] transaction in
            let db = transaction.db
            let id = try db.first(
                "SELECT id FROM question WHERE public_id = ?1 AND app = ?2", questionId, app.rawValue
            ) { $0.integer(0) }
            guard let id, let record = try self.read(questionId, db) else { throw DomainError.notFound }
            let document = documents.encode(answer, sealedAs: "answer/\(questionId)", if: true)
            do {
                try self.move(
                    question: id, .answer(answer.disposition), waiting: record.taskCount, answer: document, transaction)
            } catch is Refused {
                throw DomainError.questionAnswered
            }
            if let credential = answer.credential, credential.persistence != .none,
                let space = record.question.protectionSpace
            {
                // A server is trusted by the session that was asked, whatever the persistence.
                let isOfSession = credential.persistence == .forSession || credential.trustPublicKey != nil
                try self.keep(
                    credential, for: space, app: app, session: isOfSession ? record.session : nil, credentialId,
                    at: now, db)
            }
            if let request = answer.request, answer.disposition == .useNewRequest,
                let live = try transaction.live(record.task)
            {
                try self.replaceRequest(request, origin: origin, of: live, transaction)
            }
            try self.release(questionId, limit: Self.releasedAtOnce, transaction)
        }
    }

    /// The maximum number of tasks resumed in one transaction: each may complete, which costs eight rows.
    private static let releasedAtOnce = 200

    /// Resumes up to `limit` of the tasks that waited for an ended question.
    private func release(_ questionId: String, limit: Int, _ transaction: Transaction) throws {
        let db = transaction.db
        guard let record = try read(questionId, db) else {
            try db.execute("UPDATE question SET releasing = 0 WHERE public_id = ?1", questionId)
            return
        }
        let waiting = try db.all(
            """
            SELECT l.task FROM question q JOIN live l ON l.question = q.id WHERE q.public_id = ?1 \
            ORDER BY l.number LIMIT ?2
            """, questionId, limit
        ) { TaskID($0.integer(0)) }
        try transaction.forEachLive(waiting) { try letGoOn($0, after: record, transaction) }
        if waiting.count < limit {
            try db.execute("UPDATE question SET releasing = 0 WHERE public_id = ?1", questionId)
        } else {
            transaction.wake(at: transaction.now)
        }
    }

    /// Resumes a task with the answer, or without one if none arrived in time, so that it asks again.
    private func letGoOn(_ live: LiveTask, after record: QuestionRecord, _ transaction: Transaction) throws {
        guard let disposition = record.state.disposition else {
            return _ = try store.tasks.move(live, .answered, transaction)
        }
        var progress = try store.tasks.progress(of: live)
        switch (disposition, record.question.kind) {
        case (.cancel, _), (.cancelAuthenticationChallenge, _):
            return try store.tasks.end(
                live, .cancelled, TaskError(.cancelled),
                response: live.id == record.task ? record.question.failureResponse : nil, transaction)
        case (_, .delayedRequest): progress.isConfirmed = true
        case (_, .challenge):
            progress.authentication.append(
                AuthenticationStep(
                    questionId: record.questionId, disposition: disposition, space: record.question.protectionSpace))
        }
        try store.tasks.move(live, .answered, progress: progress, transaction)
    }

    private func replaceRequest(
        _ request: TransferRequest, origin: String?, of live: LiveTask, _ transaction: Transaction
    ) throws {
        guard var task = try store.tasks.read(live.id, transaction.db) else { return }
        try store.cache.leaveFlight(live, transaction)
        task.specification.request = request
        try store.tasks.save(task, transaction.db)
        guard let origin else { return }
        let lane = try store.tasks.lane(origin, transaction.session(live.session), transaction.db)
        try transaction.db.execute("UPDATE live SET lane = ?2 WHERE task = ?1", live.id.rawValue, lane)
    }

    /// The app's answer, secrets included, and its time. For the transfer only.
    package func answerGiven(
        to questionId: String
    ) async throws -> (question: Question, answer: Answer, at: Timestamp)? {
        try await database.read { [documents] db in
            try db.first(
                """
                SELECT question_document, answer_document, answered_at FROM question \
                WHERE public_id = ?1 AND answer_document IS NOT NULL
                """, questionId
            ) { row in
                (
                    try documents.decode(
                        Question.self, row.blob("question_document"), sealedAs: "question/\(questionId)"),
                    try documents.decode(Answer.self, row.blob("answer_document"), sealedAs: "answer/\(questionId)"),
                    row.time("answered_at")
                )
            }
        }
    }

    /// Expires the questions that were not answered in time, up to `limit`, and resumes a few hundred of the tasks that
    /// wait for a question that has ended.
    ///
    /// Only the task that asked fails. Other waiting tasks ask again.
    package func expire(at now: Timestamp, limit: Int) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let db = transaction.db
            let due = try db.all(
                """
                SELECT id, task, (SELECT count(*) FROM live WHERE live.question = question.id) AS waiting FROM question \
                WHERE state = 'open' AND deadline <= ?1 ORDER BY deadline, id LIMIT ?2
                """, now.milliseconds, limit
            ) { (id: $0.integer("id"), task: TaskID($0.integer("task")), count: $0.integer("waiting")) }
            for (question, id, count) in due {
                let effects = try self.move(question: question, .deadlinePassed, waiting: max(1, count), transaction)
                guard effects.contains(.failTask) else { continue }
                try transaction.forEachLive([id]) {
                    try store.tasks.end($0, .failed, TaskError(.userAuthenticationRequired), transaction)
                }
            }
            let over = try db.all("SELECT public_id FROM question WHERE releasing = 1 ORDER BY id LIMIT 20") {
                $0.text(0)
            }
            // Each ended question progresses, however many tasks wait for another one.
            for questionId in over {
                try self.release(questionId, limit: Self.releasedAtOnce / over.count, transaction)
            }
            try self.store.cache.releaseFollowers(transaction)
        }.1
    }

    /// Removes an ending task from its question. The question passes to the next waiting task, or ends.
    func leaveQuestion(_ live: LiveTask, _ transaction: Transaction) throws {
        guard let question = live.life.question?.rawValue else { return }
        try transaction.flushCompleted()
        let next = try transaction.db.first(
            "SELECT task FROM live WHERE question = ?1 ORDER BY number LIMIT 1", question
        ) { $0.integer(0) }
        guard let next else { return _ = try move(question: question, .taskEnded, transaction) }
        try transaction.db.execute(
            "UPDATE question SET task = ?3 WHERE id = ?1 AND task = ?2 AND state = 'open'", question, live.id.rawValue,
            next)
    }
}

extension QuestionState {
    fileprivate init(_ row: Row) throws(UnknownValue) {
        switch try row.value("state") as Phase {
        case .open: self = .open
        case .expired: self = .expired
        case .answered:
            guard let disposition: Answer.Disposition = try row.valueOrNil("disposition"),
                let moment = row.timeOrNil("answered_at")
            else { throw UnknownValue(type: "QuestionState", word: "answered without its answer") }
            self = .answered(disposition, at: moment)
        }
    }
}
