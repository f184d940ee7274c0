package import Core
import SQL

extension Store.Questions {
    /// Up to `limit` questions of an app after a cursor, with the cursor of each. An empty set matches all states.
    package func list(
        of app: AppID, session: SessionID?, states: Set<QuestionState.Phase>, _ span: ListSpan = ListSpan(),
        after cursor: Int64, limit: Int
    ) async throws -> [(cursor: Int64, question: QuestionRecord)] {
        try await database.read { db in
            let stretch = try span.stretch(
                after: cursor, db.positions("SELECT id, created_at FROM question WHERE id >= ?1 ORDER BY id LIMIT 1"))
            // One query per state, because each index covers one state.
            let found = try (states.isEmpty ? [nil] : states.map(Optional.init)).flatMap {
                try Self.questionIDs(app, session, $0, stretch, descending: span.isDescending, limit, db)
            }
            return try found.sorted { span.isDescending ? $0.0 > $1.0 : $0.0 < $1.0 }.prefix(limit)
                .compactMap { id, publicId in try self.read(publicId, db).map { (id, $0) } }
        }
    }

    /// Uses the index that the filter allows. The states of a session's questions are compared row by row.
    private static func questionIDs(
        _ app: AppID, _ session: SessionID?, _ state: QuestionState.Phase?, _ stretch: Stretch, descending: Bool,
        _ limit: Int, _ db: Connection
    ) throws -> [(Int64, String)] {
        if let session {
            return try db.all(
                """
                SELECT q.id, q.public_id FROM question q JOIN session s ON s.id = q.session \
                WHERE q.session = ?1 AND q.id > ?2 AND q.id < ?3 AND q.app = ?4 AND s.forgotten = 0 \
                AND (q.state = ?5 OR ?5 IS NULL) ORDER BY q.id ASC LIMIT ?6
                """, session.rawValue, stretch.low, stretch.high, app.rawValue, state?.rawValue, limit,
                descending: descending, read: readIDs)
        }
        if let state {
            return try db.all(
                """
                SELECT q.id, q.public_id FROM question q JOIN session s ON s.id = q.session \
                WHERE q.app = ?1 AND q.state = ?2 AND q.id > ?3 AND q.id < ?4 AND s.forgotten = 0 \
                ORDER BY q.id ASC LIMIT ?5
                """, app.rawValue, state.rawValue, stretch.low, stretch.high, limit, descending: descending,
                read: readIDs)
        }
        return try db.all(
            """
            SELECT q.id, q.public_id FROM question q JOIN session s ON s.id = q.session \
            WHERE q.app = ?1 AND q.id > ?2 AND q.id < ?3 AND s.forgotten = 0 ORDER BY q.id ASC LIMIT ?4
            """, app.rawValue, stretch.low, stretch.high, limit, descending: descending, read: readIDs)
    }

    private static func readIDs(_ row: Row) -> (Int64, String) { (row.integer("id"), row.text("public_id")) }
}
