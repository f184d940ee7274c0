import Core
import SQL
import TestSupport
import Testing

@testable import Service
@testable import Store
@testable import Transfers

/// The comparison of fetched files with their listed digests.
struct SetVerificationTests {
    @Test(.enabled(if: !TestStore.isOnServer))
    func `A version with a refused file is not published after its verification was interrupted`() async throws {
        try await ServiceStage.run { stage in
            let service = stage.service
            let (store, database) = (service.store, service.store.database)
            // The version cannot fail yet, as if the process had ended after it has refused the file.
            try await database.write { db in
                try db.execute(
                    """
                    CREATE TRIGGER held BEFORE UPDATE ON set_version WHEN new.state = 'failed' \
                    BEGIN SELECT raise(ABORT, 'held'); END
                    """)
            }
            let set = try await service.putSet("m", of: stage.app, SetChange(), ifRevision: nil).set
            stage.origin.serve("/v1", .text("changed"))
            let listed = SetDigest(.gitBlobSHA1, String(repeating: "0", count: 40))
            let version = try await stage.version("v1", of: set, digest: listed)
            try await eventually("a second verification was attempted", within: .seconds(30)) {
                let standing = try await store.sets.standing(of: version)
                return standing.map { $0.attempts >= 2 || $0.version.state == .published } ?? false
            }
            try await database.write { try $0.execute("DROP TRIGGER held") }
            try await eventually("the version has failed", within: .seconds(30)) {
                try await service.version("v1", of: set.id).state == .failed
            }
        }
    }
}
