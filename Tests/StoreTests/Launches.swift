import Core
import SQL

@testable import Store

/// The results of the launch rule.
enum Launches {
    static func count(of store: Store) async throws -> Int {
        try await store.database.read { db in try db.first("SELECT count(*) FROM launch") { $0.int(0) } ?? 0 }
    }

    static func reasons(of launchId: String, _ store: Store) async throws -> LaunchRule.Reasons? {
        try await store.database.read { db in
            try db.first("SELECT reasons FROM launch WHERE public_id = ?1", launchId) {
                LaunchRule.Reasons(rawValue: $0.int(0))
            }
        }
    }
}

extension StoreFixture {
    func setForceQuit(_ isForceQuit: Bool, _ app: AppID) async throws {
        try await store.database.write { db in
            try db.execute("UPDATE app SET force_quit = ?2 WHERE id = ?1", app.rawValue, isForceQuit)
        }
    }
}
