package import Core
import SQL

extension Store.Tasks {
    /// Up to `limit` tasks of an app after one of them, in the order of their creation, whatever their session, each
    /// with the result of a search, if there is one.
    ///
    /// Without a search, tasks of deleted sessions are left out.
    package func list<Known>(
        of app: AppID, _ filter: TaskFilter, _ span: ListSpan = ListSpan(), matching search: TaskSearch? = nil,
        after id: Int64, limit: Int, known: @escaping @Sendable (TaskStamp) -> Known?
    ) async throws -> [SearchedTask<Known>] {
        try await database.read { db in
            try Self.listedTaskIDs(of: app, filter, span, after: id, limit: limit, db).compactMap {
                try self.search($0, at: $0.rawValue, for: search, db, known: known)
            }
        }
    }

    /// Identifiers of up to `limit` matching tasks of an app after one of them, in the order of the span.
    static func listedTaskIDs(
        of app: AppID, _ filter: TaskFilter, _ span: ListSpan, after id: Int64, limit: Int, _ db: Connection
    ) throws -> [TaskID] {
        let stretch = try span.stretch(
            after: id, db.positions("SELECT id, created_at FROM task WHERE id >= ?1 ORDER BY id LIMIT 1"))
        return try merged(filter, by: \.rawValue, inOrder: span.isDescending ? (>) : (<), limit: limit) {
            try tasksOfApp(app, $0, stretch, descending: span.isDescending, limit, db)
        }
    }

    // Each query uses the most selective index that the filter allows. CROSS JOIN keeps the tasks in the outer loop, in
    // their order. Tasks of deleted sessions are skipped.

    private static func tasksOfApp(
        _ app: AppID, _ filter: TaskFilter.Alternative, _ stretch: Stretch, descending: Bool, _ limit: Int,
        _ db: Connection
    ) throws -> [TaskID] {
        let (state, outcome) = (filter.state?.rawValue, filter.outcome?.rawValue)
        func read(_ row: Row) -> TaskID { TaskID(row.integer(0)) }
        if let clientTaskId = filter.clientTaskId {
            return try db.all(
                """
                SELECT t.id FROM task t CROSS JOIN session s WHERE s.id = t.session \
                AND t.app = ?1 AND t.client_task_id = ?2 AND t.id > ?3 AND t.id < ?4 \
                AND (t.state = ?5 OR ?5 IS NULL) AND (t.outcome = ?6 OR ?6 IS NULL) \
                AND (t.group_name = ?7 OR ?7 IS NULL) AND s.forgotten = 0 ORDER BY t.id ASC LIMIT ?8
                """, app.rawValue, clientTaskId, stretch.low, stretch.high, state, outcome, filter.group, limit,
                descending: descending, read: read)
        }
        if let group = filter.group {
            return try db.all(
                """
                SELECT t.id FROM task t CROSS JOIN session s WHERE s.id = t.session \
                AND t.app = ?1 AND t.group_name = ?2 AND t.id > ?3 AND t.id < ?4 \
                AND (t.state = ?5 OR ?5 IS NULL) AND (t.outcome = ?6 OR ?6 IS NULL) AND s.forgotten = 0 \
                ORDER BY t.id ASC LIMIT ?7
                """, app.rawValue, group, stretch.low, stretch.high, state, outcome, limit, descending: descending,
                read: read)
        }
        if let outcome, outcome != Outcome.succeeded.rawValue {
            return try db.all(
                """
                SELECT t.id FROM task t CROSS JOIN session s WHERE s.id = t.session \
                AND t.app = ?1 AND t.outcome = ?2 AND t.outcome <> 'succeeded' AND t.id > ?3 AND t.id < ?4 \
                AND (t.state = ?5 OR ?5 IS NULL) AND s.forgotten = 0 ORDER BY t.id ASC LIMIT ?6
                """, app.rawValue, outcome, stretch.low, stretch.high, state, limit, descending: descending, read: read)
        }
        if let state, state != TaskState.completed.rawValue {
            return try db.all(
                """
                SELECT t.id FROM task t CROSS JOIN session s WHERE s.id = t.session \
                AND t.app = ?1 AND t.state = ?2 AND t.state <> 'completed' AND t.id > ?3 AND t.id < ?4 \
                AND (t.outcome = ?5 OR ?5 IS NULL) AND s.forgotten = 0 ORDER BY t.id ASC LIMIT ?6
                """, app.rawValue, state, stretch.low, stretch.high, outcome, limit, descending: descending, read: read)
        }
        return try db.all(
            """
            SELECT t.id FROM task t CROSS JOIN session s WHERE s.id = t.session \
            AND t.app = ?1 AND t.id > ?2 AND t.id < ?3 AND (t.state = ?4 OR ?4 IS NULL) \
            AND (t.outcome = ?5 OR ?5 IS NULL) AND s.forgotten = 0 ORDER BY t.id ASC LIMIT ?6
            """, app.rawValue, stretch.low, stretch.high, state, outcome, limit, descending: descending, read: read)
    }
}
