import Core
import SQL
import TestSupport
import Testing

@testable import Service
@testable import Store
@testable import Transfers

/// Deletions of sets.
struct SetDeletionTests {
    @Test(.enabled(if: !TestStore.isOnServer))
    func `The files that a deleted set leaves stay if its removal is interrupted`() async throws {
        try await ServiceStage.run { stage in
            let (service, database) = (stage.service, stage.service.store.database)
            let set = try await stage.setOnDisk()
            stage.origin.serve("/v1", .text("v1"))
            for (name, state) in [("v1", SetVersionState.published), ("v2", .failed)] {
                try await stage.version(name, of: set)
                try await eventually("\(name) has ended") {
                    try await service.version(name, of: set.id).state == state
                }
            }
            // The removal ends before the row of the second version.
            try await database.write { db in
                try db.execute(
                    """
                    CREATE TRIGGER held BEFORE DELETE ON set_version WHEN old.name = 'v2' \
                    BEGIN SELECT raise(ABORT, 'held'); END
                    """)
            }
            try await service.deleteSet(set.id, keepsFiles: true, ifRevision: nil)
            try await eventually("a second removal was attempted", within: .seconds(30)) {
                try await service.store.sets.attempts(of: set.id) >= 2
            }
            try await database.write { try $0.execute("DROP TRIGGER held") }
            try await eventually("the set is gone", within: .seconds(30)) {
                try await service.store.sets.standing(of: set.id) == nil
            }
            #expect(readFile(stage.folder.file("root/m/current/f")) == Array("v1".utf8))
        }
    }
}
