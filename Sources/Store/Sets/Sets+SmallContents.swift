package import Core
import SQL

extension Store.Sets {
    /// Indexes the small contents of an app by their digests, unless it has sets. The caller creates the first one
    /// afterwards.
    ///
    /// A set does not fetch a file that the app has stored. Larger contents are indexed in any case, because equal ones
    /// are stored once. An index of the small ones would slow down every small download of apps without sets.
    ///
    /// - Parameter limit: The most contents in a transaction.
    package func indexContents(of app: AppID, atOnce limit: Int = 500) async throws {
        let hasSets = try await database.read { db in
            try db.exists("SELECT 1 FROM file_set WHERE app = ?1 LIMIT 1", app.rawValue)
        }
        if hasSets { return }
        // From this commit on, new contents are indexed with their insertion.
        try await database.write { db in
            try db.execute("UPDATE app SET indexes_contents = 1 WHERE id = ?1 AND indexes_contents = 0", app.rawValue)
        }
        var place = ContentPlace(session: 0, seq: 0)
        while true {
            let contents = try await contents(of: app, after: place, limit: limit)
            guard let last = contents.last else { return }
            try await database.write { db in
                try db.executeAll(
                    "UPDATE content SET indexed = 1 WHERE task = ?1 AND bytes IS NOT NULL",
                    contents.map { [$0.task] })
            }
            place = last.place
        }
    }

    /// Where a content is in the order of ``contents(of:after:limit:)``.
    private struct ContentPlace { var session, seq: Int64 }

    /// The next small contents of an app that are not indexed, with their places in the order of sessions and events.
    private func contents(
        of app: AppID, after place: ContentPlace, limit: Int
    ) async throws -> [(task: Int64, place: ContentPlace)] {
        try await database.read { db in
            try db.all(
                """
                SELECT task, session, seq FROM content WHERE session = ?2 AND seq > ?3 AND expired = 0 \
                AND bytes IS NOT NULL AND indexed = 0 \
                UNION ALL SELECT content.task, session.id, content.seq FROM session \
                JOIN content ON content.session = session.id AND content.expired = 0 \
                WHERE session.app = ?1 AND session.forgotten = 0 AND session.id > ?2 \
                AND content.bytes IS NOT NULL AND content.indexed = 0 \
                ORDER BY session, seq LIMIT ?4
                """, app.rawValue, place.session, place.seq, limit
            ) { row in
                (row.integer("task"), ContentPlace(session: row.integer("session"), seq: row.integer("seq")))
            }
        }
    }
}
