package import Core
import SQL

extension Store.Tasks {
    /// Stores pauses of origins, for the next start and for other nodes. Longer stored ones stay.
    func save(_ pauses: [OriginPause], _ db: Connection) throws {
        for pause in pauses {
            try db.execute(
                """
                INSERT INTO origin_pause (app, origin, ends_at, ends_for_others_at) VALUES (?1, ?2, ?3, ?4) \
                ON CONFLICT (app, origin) DO UPDATE SET \
                ends_at = CASE WHEN origin_pause.ends_at > excluded.ends_at \
                THEN origin_pause.ends_at ELSE excluded.ends_at END, \
                ends_for_others_at = CASE WHEN origin_pause.ends_for_others_at > excluded.ends_for_others_at \
                THEN origin_pause.ends_for_others_at ELSE excluded.ends_for_others_at END
                """, pause.app, pause.origin, pause.end.milliseconds, pause.endForOthers.milliseconds)
        }
    }

    /// The pauses of origins that have not ended, the longest first.
    package func pauses(at now: Timestamp) async throws -> [OriginPause] {
        try await database.read { db in try Self.askPauses(at: now, db).get().flatMap { $0 } }
    }

    static func askPauses(at now: Timestamp, _ db: Connection) throws -> Asked<OriginPause> {
        try db.ask(
            """
            SELECT origin, app, ends_at, ends_for_others_at FROM origin_pause WHERE ends_at > ?1 \
            ORDER BY ends_at DESC LIMIT ?2
            """, [[now.milliseconds, Self.mostPauses]]
        ) { row in
            OriginPause(
                row.text("origin"), app: row.integer("app"), end: row.time("ends_at"),
                endForOthers: row.time("ends_for_others_at"))
        }
    }

    private static let mostPauses = 10_000
}
