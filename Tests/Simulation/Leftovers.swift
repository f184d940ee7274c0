import SQL
import Store

/// Rows and files that are not needed after all sessions are deleted.
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
                UNION ALL SELECT 'flight', count(*) FROM flight UNION ALL SELECT 'cached', count(*) FROM cached \
                UNION ALL SELECT 'file_set', count(*) FROM file_set \
                UNION ALL SELECT 'set_version', count(*) FROM set_version \
                UNION ALL SELECT 'set_file', count(*) FROM set_file \
                UNION ALL SELECT 'bucket_upload', count(*) FROM bucket_upload \
                UNION ALL SELECT 'open launch', count(*) FROM launch WHERE ended_at IS NULL
                """
            ) { row in row.integer(1) == 0 ? nil : "\(row.integer(1)) rows of \(row.text(0))" }.compactMap(\.self)
        }
    }

    /// Objects that no row refers to.
    static func unknown(_ keys: [String], to store: Store) async throws -> [String] {
        var unknown: [String] = []
        for key in keys where try await !store.files.isKnown(object: key) { unknown.append("object \(key)") }
        return unknown
    }

    /// At most one launch of a session is open.
    static func openLaunches(of store: Store) async throws -> [String] {
        try await store.database.read { db in
            try db.all(
                """
                SELECT session, count(*) FROM launch WHERE ended_at IS NULL AND session IS NOT NULL \
                GROUP BY session HAVING count(*) > 1
                """
            ) { "session \($0.integer(0)) has \($0.integer(1)) open launches" }
        }
    }

    /// Files that may remain: those of resume data, which outlives its session, and of bodies, which are kept for a
    /// day.
    static func files(of store: Store) async throws -> Set<String> {
        try await store.database.read { db in
            Set(
                try db.all(
                    "SELECT file FROM resume_data WHERE spent = 0 UNION SELECT file FROM body WHERE file IS NOT NULL"
                ) { $0.text(0) })
        }
    }
}
