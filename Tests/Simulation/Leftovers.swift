import SQL
import Store

/// Rows that nothing needs any more when all sessions are deleted.
enum Leftovers {
    static func rows(of store: Store) async throws -> [String] {
        try await store.database.read { db in
            try db.all(
                """
                SELECT 'session', count(*) FROM session UNION ALL SELECT 'task', count(*) FROM task \
                UNION ALL SELECT 'live', count(*) FROM live UNION ALL SELECT 'lane', count(*) FROM lane \
                UNION ALL SELECT 'event', count(*) FROM event UNION ALL SELECT 'content', count(*) FROM content \
                UNION ALL SELECT 'question', count(*) FROM question \
                UNION ALL SELECT 'acknowledgement', count(*) FROM acknowledgement \
                UNION ALL SELECT 'open launch', count(*) FROM launch WHERE ended_at IS NULL
                """
            ) { row in row.integer(1) == 0 ? nil : "\(row.integer(1)) rows of \(row.text(0))" }.compactMap(\.self)
        }
    }
}
