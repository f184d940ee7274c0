import Base
import Core
import SQL
import TestSupport
import Testing

@testable import Service
@testable import Store
@testable import Transfers

/// Versions that a destination may show although they are not published.
struct SetWithdrawalTests {
    @Test(.enabled(if: !TestStore.isOnServer))
    func `A failed version that readers may have seen gives way to the current one`() async throws {
        try await ServiceStage.run { stage in
            for name in ["v1", "v2"] { stage.origin.serve("/\(name)", .text(name)) }
            let (service, database) = (stage.service, stage.service.store.database)
            let set = try await stage.setOnDisk()
            func shown() -> [UInt8]? { readFile(stage.folder.file("root/m/current/f")) }
            try await stage.version("v1", of: set)
            try await eventually("v1 is published") {
                try await service.version("v1", of: set.id).state == .published
            }
            // The second version is shown, and its publication is not stored.
            try await database.write { db in
                try db.execute(
                    """
                    CREATE TRIGGER held BEFORE UPDATE ON set_version WHEN old.state = 'publishing' \
                    AND new.state = 'published' BEGIN SELECT raise(ABORT, 'held'); END
                    """)
            }
            let version = try await stage.version("v2", of: set)
            try await eventually("v2 is shown") { shown() == Array("v2".utf8) }
            await #expect(throws: DomainError.setVersionState(.publishing)) {
                try await service.cancelVersion(version, ifRevision: nil)
            }
            service.outlet.handle(
                try await service.store.sets.handle(.failed, version, at: service.clock.now).aftermath)
            try await eventually("v1 is shown again", within: .seconds(30)) {
                shown() == Array("v1".utf8) && fileLength(stage.folder.file("root/m/.versions/v2/f")) == nil
            }
        }
    }
}
