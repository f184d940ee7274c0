package import Core
import SQLite

extension Store {
    package func question(_ questionId: String, app: AppID) async throws -> QuestionRecord {
        try await database.read { db in
            let owner = try db.first("SELECT app FROM question WHERE public_id = ?1", questionId) { $0.integer(0) }
            guard owner == app.rawValue, let question = try self.readQuestion(questionId, db) else {
                throw DomainError.notFound
            }
            return question
        }
    }

    /// Up to `limit` questions of an app after a cursor, with the cursor of the last.
    package func questions(
        of app: AppID, session: SessionID?, state: QuestionRecord.State?, after cursor: Int64, limit: Int
    ) async throws -> [(cursor: Int64, question: QuestionRecord)] {
        try await database.read { db in
            let found = try db.all(
                """
                SELECT q.id, q.public_id FROM question q JOIN session s ON s.id = q.session \
                WHERE q.app = ?1 AND q.id > ?2 AND s.forgotten = 0 AND (?3 IS NULL OR q.session = ?3) \
                AND (?4 IS NULL OR q.state = ?4) ORDER BY q.id LIMIT ?5
                """, app.rawValue, cursor, session?.rawValue, state?.rawValue, limit
            ) { ($0.integer(0), $0.text(1)) }
            return try found.compactMap { id, publicId in try self.readQuestion(publicId, db).map { (id, $0) } }
        }
    }

    func readQuestion(_ questionId: String, _ db: Connection) throws -> QuestionRecord? {
        try db.first(
            """
            SELECT q.task, t.number, q.session, s.identifier, q.state, q.question_document, q.disposition, \
            q.created_at, q.deadline, q.answered_at \
            FROM question q JOIN session s ON s.id = q.session JOIN task t ON t.id = q.task WHERE q.public_id = ?1
            """, questionId
        ) { row in
            QuestionRecord(
                questionId: questionId, task: TaskID(row.integer(0)), taskIdentifier: row.integer(1),
                session: SessionID(row.integer(2)), sessionIdentifier: row.text(3),
                state: QuestionRecord.State(rawValue: row.int(4)) ?? .expired,
                question: try documents.decode(
                    Question.self, row.blob(5), sealedAs: "question/\(questionId)"),
                disposition: row.textOrNil(6).flatMap(Answer.Disposition.init(rawValue:)),
                createdAt: Timestamp(milliseconds: row.integer(7)), deadline: Timestamp(milliseconds: row.integer(8)),
                answeredAt: row.integerOrNil(9).map(Timestamp.init(milliseconds:)))
        }
    }

    /// Puts a question to the app, with its event.
    func ask(
        _ question: Question, _ questionId: String, _ deadline: Timestamp, _ live: LiveTask, _ session: SessionEntry,
        _ transaction: Transaction
    ) throws {
        let kind: EventKind = question.kind == .challenge ? .didReceiveChallenge : .willBeginDelayedRequest
        let seq = try transaction.append(kind, to: session, task: live.id, data: Array(questionId.utf8))
        try transaction.db.execute(
            """
            INSERT INTO question (public_id, app, session, task, seq, state, question_document, created_at, deadline) \
            VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?8)
            """,
            questionId, session.app.rawValue, session.id.rawValue, live.id.rawValue, seq,
            try documents.encode(
                question, sealedAs: "question/\(questionId)", if: question.request?.holdsSecrets ?? false),
            transaction.now.milliseconds, deadline.milliseconds)
        transaction.wake(at: deadline)
    }

    /// Stores an answer and lets the task go on with it.
    ///
    /// - Throws: ``DomainError/questionAnswered`` for a second answer, ``DomainError/notFound``.
    package func answer(
        _ questionId: String, app: AppID, with answer: Answer, origin: String?, at now: Timestamp
    ) async throws -> (QuestionRecord, Aftermath) {
        let (_, aftermath) = try await transact(at: now) { [documents] transaction in
            let db = transaction.db
            guard let record = try self.readQuestion(questionId, db),
                try transaction.session(record.session).app == app
            else { throw DomainError.notFound }
            guard record.state == .open else { throw DomainError.questionAnswered }
            try db.execute(
                """
                UPDATE question SET state = 1, disposition = ?2, answer_document = ?3, answered_at = ?4 \
                WHERE public_id = ?1
                """,
                questionId, answer.disposition.rawValue,
                try documents.encode(answer, sealedAs: "answer/\(questionId)", if: true), now.milliseconds)
            try self.apply(answer, to: record, origin: origin, transaction)
        }
        return (try await question(questionId, app: app), aftermath)
    }

    private func apply(
        _ answer: Answer, to record: QuestionRecord, origin: String?, _ transaction: Transaction
    ) throws {
        guard var live = try transaction.live(record.task) else { return }
        switch answer.disposition {
        case .cancel, .cancelAuthenticationChallenge:
            var result = TaskResult(progress: try progress(of: live))
            result.error = TaskError(.cancelled)
            result.response = record.question.failureResponse
            return try complete(live, .cancelled, result, content: nil, transaction)
        case .useNewRequest:
            if let request = answer.request { try replaceRequest(request, origin: origin, of: live, transaction) }
            live = try LiveTask.read(record.task, transaction.db) ?? live
        case .continueLoading, .useCredential, .performDefaultHandling, .rejectProtectionSpace:
            break
        }
        var progress = try progress(of: live)
        switch record.question.kind {
        case .delayedRequest: progress.isConfirmed = true
        case .challenge:
            progress.authentication.append(
                AuthenticationStep(
                    questionId: record.questionId, disposition: answer.disposition,
                    space: record.question.protectionSpace))
        }
        try transaction.db.execute(
            "UPDATE live SET progress_document = ?2 WHERE task = ?1", live.id.rawValue,
            try documents.encode(progress))
        live.progress = try documents.encode(progress)
        if live.stage == .awaitingAnswer { try move(live, .answered, transaction) }
    }

    private func replaceRequest(
        _ request: TransferRequest, origin: String?, of live: LiveTask, _ transaction: Transaction
    ) throws {
        guard var task = try readTask(live.id, transaction.db) else { return }
        task.specification.request = request
        try transaction.db.execute(
            "UPDATE task SET specification_document = ?2, revision = revision + 1 WHERE id = ?1", live.id.rawValue,
            try documents.encode(
                task.specification, sealedAs: Self.context(task.session, task.number), if: request.holdsSecrets))
        guard let origin else { return }
        let lane = try lane(origin, transaction.session(live.session), transaction.db)
        try transaction.db.execute("UPDATE live SET lane = ?2 WHERE task = ?1", live.id.rawValue, lane)
    }

    /// What an app answered, secrets included. For the transfer alone.
    package func answerGiven(to questionId: String) async throws -> (question: Question, answer: Answer)? {
        try await database.read { [documents] db in
            try db.first(
                """
                SELECT question_document, answer_document FROM question \
                WHERE public_id = ?1 AND answer_document IS NOT NULL
                """, questionId
            ) { row in
                (
                    try documents.decode(Question.self, row.blob(0), sealedAs: "question/\(questionId)"),
                    try documents.decode(Answer.self, row.blob(1), sealedAs: "answer/\(questionId)")
                )
            }
        }
    }

    /// Fails the tasks whose questions nobody answered in time, up to `limit`.
    package func expireQuestions(at now: Timestamp, limit: Int) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            let due = try transaction.db.all(
                "SELECT task FROM question WHERE state = 0 AND deadline <= ?1 LIMIT ?2", now.milliseconds, limit
            ) { TaskID($0.integer(0)) }
            for id in due {
                guard let live = try transaction.live(id) else {
                    try self.expireQuestions(of: id, transaction)
                    continue
                }
                var result = TaskResult(progress: try self.progress(of: live))
                result.error = TaskError(.userAuthenticationRequired)
                if live.stage == .active { transaction.aftermath.transfersToStop.append(id) }
                try self.complete(live, .failed, result, content: nil, transaction)
            }
        }.1
    }

    /// Closes the open questions of a task that ends.
    func expireQuestions(of task: TaskID, _ transaction: Transaction) throws {
        try transaction.db.execute("UPDATE question SET state = 2 WHERE task = ?1 AND state = 0", task.rawValue)
    }
}
