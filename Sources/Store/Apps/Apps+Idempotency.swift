package import Core
import SQL

extension Recording {
    /// - Throws: ``DomainError/answeredMeanwhile`` if another node has answered the same request.
    func record(_ result: Result, _ documents: Documents, _ now: Timestamp, _ db: Connection) throws {
        let answer = answer(result)
        let context = "answer/\(principal)/\(key)"
        let kept = try db.change(
            """
            INSERT INTO idempotency \
            (principal, idempotency_key, fingerprint, status, headers_document, answer, created_at) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (principal, idempotency_key) DO UPDATE \
            SET fingerprint = ?3, status = ?4, headers_document = ?5, answer = ?6, created_at = ?7 \
            WHERE idempotency.created_at <= ?8
            """,
            principal, key, fingerprint, answer.status, documents.encode(answer.headers),
            [answer.holdsSecrets ? 1 : 0]
                + (answer.holdsSecrets ? documents.sealer.seal(answer.body, boundTo: context) : answer.body),
            now.milliseconds, (now - Store.Apps.idempotencyPeriod).milliseconds)
        guard kept > 0 else { throw DomainError.answeredMeanwhile }
    }
}

extension Store.Apps {
    /// The retention of an answer for repeated requests.
    package static let idempotencyPeriod = Duration.seconds(24 * 3600)

    /// The stored answer to a key, with the fingerprint of its request.
    package func storedAnswer(
        principal: String, key: String, at now: Timestamp
    ) async throws -> (fingerprint: [UInt8], answer: StoredAnswer)? {
        try await database.read { [documents] db in
            try db.first(
                """
                SELECT fingerprint, status, headers_document, answer FROM idempotency \
                WHERE principal = ?1 AND idempotency_key = ?2 AND created_at > ?3
                """, principal, key, (now - Self.idempotencyPeriod).milliseconds
            ) { row in
                let kept = row.blob("answer")
                let isSealed = kept.first == 1
                let bytes = Array(kept.dropFirst())
                let body = isSealed ? try documents.sealer.open(bytes, boundTo: "answer/\(principal)/\(key)") : bytes
                let headers = try documents.decode(HTTPFields.self, row.blob("headers_document"))
                return (
                    row.blob("fingerprint"),
                    StoredAnswer(status: row.int("status"), headers: headers, body: body, holdsSecrets: isSealed)
                )
            }
        }
    }

    /// Stores an answer in a commit of its own, for requests that are harmless to repeat.
    package func record(_ recording: Recording<Void>, at now: Timestamp) async throws {
        try await database.write { [documents] db in try recording.record((), documents, now, db) }
    }
}
