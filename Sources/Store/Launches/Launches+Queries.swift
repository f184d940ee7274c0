package import Core
import SQL

extension Store.Launches {
    /// Up to `limit` launches of an app after a cursor, with the cursor of each. Empty sets match all.
    package func list(
        of app: AppID, session identifier: String?, states: Set<LaunchState.Phase>, kinds: Set<LaunchKind>,
        _ span: ListSpan = ListSpan(), after cursor: Int64, limit: Int
    ) async throws -> [(cursor: Int64, launch: LaunchRecord)] {
        try await database.read { db in
            let stretch = try Self.stretch(of: span, after: cursor, db)
            // An index finds the app's launches. Their states and kinds are compared row by row.
            let (states, kinds) = (Self.listed(states), Self.listed(kinds))
            let ids = try db.all(
                """
                SELECT id FROM launch WHERE app = ?1 AND id > ?2 AND id < ?3 \
                AND (session_identifier = ?4 OR ?4 IS NULL) AND (?5 LIKE '%,' || state || ',%' OR ?5 IS NULL) \
                AND (?6 LIKE '%,' || kind || ',%' OR ?6 IS NULL) ORDER BY id ASC LIMIT ?7
                """, app.rawValue, stretch.low, stretch.high, identifier, states, kinds, limit,
                descending: span.isDescending
            ) { $0.integer(0) }
            return try ids.compactMap { id in try self.read(id, db).map { (id, $0) } }
        }
    }

    /// A launch with its attempts.
    ///
    /// - Throws: ``DomainError/notFound``.
    package func read(_ launchId: String, app: AppID) async throws -> LaunchRecord {
        try await database.read { db in
            let id = try self.launchID(launchId, app: app, db)
            return try self.read(id, db).orNotFound()
        }
    }

    /// The words between commas, for a search with `LIKE`; `nil` for an empty set, which matches all.
    private static func listed<Word: RawRepresentable<String>>(_ words: Set<Word>) -> String? {
        words.isEmpty ? nil : ",\(words.map(\.rawValue).joined(separator: ",")),"
    }

    /// The positions of a span in the launches of all apps.
    static func stretch(of span: ListSpan, after cursor: Int64, _ db: Connection) throws -> Stretch {
        try span.stretch(
            after: cursor, db.positions("SELECT id, created_at FROM launch WHERE id >= ?1 ORDER BY id LIMIT 1"))
    }

    func launchID(_ launchId: String, app: AppID, _ db: Connection) throws -> Int64 {
        try db.first(
            "SELECT id FROM launch WHERE public_id = ?1 AND app = ?2", launchId, app.rawValue
        ) { $0.integer(0) }.orNotFound()
    }
}
