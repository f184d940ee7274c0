package import Core
import SQL

/// The key that seals the store's secrets: its check, and the repair of a store whose key is lost.
extension Store.Upkeep {
    private static let checkContext = "master-key"
    private static let checkText = Array("urlsessiond".utf8)
    /// The check while a repair is under way: no key opens it.
    private static let brokenCheck: [UInt8] = [0]

    /// Whether the given key opens the secrets in the store. True for a store without secrets.
    package func hasRightKey() async throws -> Bool {
        try await database.read { [documents] db in
            if let check = try db.first("SELECT document FROM setting WHERE name = 'master-key'", read: { $0.blob(0) })
            {
                return (try? documents.sealer.open(check, boundTo: Self.checkContext)) == Self.checkText
            }
            // An older version kept no check: any app's secret serves instead.
            let secret = try db.first("SELECT secret, app FROM webhook_secret LIMIT 1") {
                ($0.blob("secret"), $0.integer("app"))
            }
            guard let (sealed, app) = secret else { return true }
            return (try? documents.sealer.open(sealed, boundTo: "webhook/\(app)")) != nil
        }
    }

    /// Stores a check value by which a later start recognizes the key, unless there is one.
    package func keepKeyCheck() async throws {
        try await database.write { [documents] db in
            guard try !db.exists("SELECT 1 FROM setting WHERE name = 'master-key'") else { return }
            try Self.setCheck(documents.sealer.seal(Self.checkText, boundTo: Self.checkContext), db)
        }
    }

    private static func setCheck(_ check: [UInt8], _ db: Connection) throws {
        try db.execute(
            """
            INSERT INTO setting (name, document) VALUES ('master-key', ?1) \
            ON CONFLICT (name) DO UPDATE SET document = ?1
            """, check)
    }

    // MARK: Without the key

    /// Makes the store usable after its key is lost, by removing everything that only the key could open.
    ///
    /// Credentials, cookies, answers to challenges and kept answers with secrets are removed. Sessions whose
    /// configuration is lost are invalidated, and their tasks fail. Tasks whose request is lost fail too. The work runs
    /// in steps. No key passes the check until the last step, so that an interrupted repair starts again from the
    /// beginning.
    ///
    /// - Parameter makeSecret: Generates the webhook secrets that replace the lost ones.
    package func loseSecrets(at now: Timestamp, makeSecret: @escaping @Sendable () -> [UInt8]) async throws {
        try await database.write { db in
            try Self.setCheck(Self.brokenCheck, db)
            try db.execute("DELETE FROM credential")
            try db.execute("DELETE FROM cookie_jar")
            try db.execute(
                """
                UPDATE app SET stored_bytes = stored_bytes - (SELECT coalesce(CAST(sum(length) AS BIGINT), 0) \
                FROM resume_data WHERE resume_data.app = app.id AND spent = 0)
                """)
            try db.execute("DELETE FROM resume_data")
            try db.execute("DELETE FROM idempotency WHERE substr(answer, 1, 1) = ?1", Documents.sealMark)
            try db.execute("UPDATE question SET answer_document = NULL")
            try db.execute("DELETE FROM question WHERE substr(question_document, 1, 1) = ?1", Documents.sealMark)
        }
        try await replaceWebhookSecrets(at: now, makeSecret)
        while try await loseRequests(at: now) {}
        while try await leaveLostQuestions(at: now) {}
        while try await loseConfigurations(at: now) {}
        try await database.write { [documents] db in
            try Self.setCheck(documents.sealer.seal(Self.checkText, boundTo: Self.checkContext), db)
        }
    }

    private func replaceWebhookSecrets(at now: Timestamp, _ makeSecret: @escaping @Sendable () -> [UInt8]) async throws
    {
        try await database.write { [documents] db in
            try db.execute("DELETE FROM webhook_secret")
            for app in try db.all("SELECT id FROM app", read: { $0.integer(0) }) {
                try db.execute(
                    "INSERT INTO webhook_secret (app, secret, created_at) VALUES (?1, ?2, ?3)", app,
                    documents.sealer.seal(makeSecret(), boundTo: "webhook/\(app)"), now.milliseconds)
            }
        }
    }

    /// Tasks that one step of the repair changes.
    private static let tasksAtOnce = 500

    /// Replaces sealed requests by one with an invalid URL and fails their tasks. Returns whether there were any.
    private func loseRequests(at now: Timestamp) async throws -> Bool {
        try await transact(at: now) { transaction in
            let db = transaction.db
            let lost = try db.all(
                """
                SELECT id, client_task_id, group_name FROM task WHERE substr(specification_document, 1, 1) = ?1 \
                ORDER BY id LIMIT ?2
                """, Documents.sealMark, Self.tasksAtOnce
            ) { (TaskID($0.integer("id")), $0.textOrNil("client_task_id"), $0.textOrNil("group_name")) }
            for (id, clientTaskId, group) in lost {
                let live = try transaction.live(id)
                var specification = TaskSpecification(
                    kind: live?.kind ?? .download,
                    request: TransferRequest(url: Self.lostURL, method: "GET"))
                specification.clientTaskId = clientTaskId
                specification.group = group
                try db.execute(
                    "UPDATE task SET specification_document = ?2 WHERE id = ?1", id.rawValue,
                    self.documents.encode(specification))
                if let live { try self.fail(live, "The request was lost with the master key.", transaction) }
            }
            return !lost.isEmpty
        }.0
    }

    /// Resumes tasks that wait for a lost question. If their origin asks again, they ask the app again. Returns whether
    /// there were any.
    private func leaveLostQuestions(at now: Timestamp) async throws -> Bool {
        try await transact(at: now) { transaction in
            let db = transaction.db
            let waiting = try db.all(
                """
                SELECT task FROM live WHERE question IS NOT NULL \
                AND NOT EXISTS (SELECT 1 FROM question WHERE id = live.question) LIMIT ?1
                """, Self.tasksAtOnce
            ) { TaskID($0.integer(0)) }
            try transaction.forEachLive(waiting) { try store.tasks.move($0, .answered, transaction) }
            return !waiting.isEmpty
        }.0
    }

    /// Fails the tasks of a session whose configuration was sealed, in batches, and invalidates the session. Returns
    /// whether there was such a session.
    private func loseConfigurations(at now: Timestamp) async throws -> Bool {
        try await transact(at: now) { transaction in
            let db = transaction.db
            let lost = try db.first(
                "SELECT id FROM session WHERE substr(configuration_document, 1, 1) = ?1 ORDER BY id LIMIT 1",
                Documents.sealMark
            ) { SessionID($0.integer(0)) }
            guard let id = lost else { return false }
            let tasks = try db.all(
                "SELECT task FROM live WHERE session = ?1 ORDER BY number LIMIT ?2", id.rawValue, Self.tasksAtOnce
            ) { TaskID($0.integer(0)) }
            let unfinished = try tasks.compactMap { try transaction.live($0) }
            for live in unfinished {
                try self.fail(live, "The session's configuration was lost with the master key.", transaction)
            }
            guard unfinished.isEmpty else { return true }
            try transaction.session(id).invalidate(at: now)
            try db.execute(
                "UPDATE session SET configuration_document = ?2 WHERE id = ?1", id.rawValue,
                self.documents.encode(SessionConfiguration()))
            return true
        }.0
    }

    /// A URL that never resolves (RFC 6761 section 6.4).
    static let lostURL = "https://lost.invalid/"

    private func fail(_ live: LiveTask, _ reason: String, _ transaction: Transaction) throws {
        var error = TaskError(
            .unknown, reason,
            underlying: TaskError.Underlying(domain: "urlsessiond", code: "master-key-lost", message: reason))
        error.failingURL = Self.lostURL
        try store.tasks.end(live, .failed, error, transaction)
    }
}
