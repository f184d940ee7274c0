import Base
import Core
import Glibc
import SQL
import TestSupport
import Testing

@testable import Service
@testable import Store
@testable import Transfers

/// The janitor's handling of orphaned files and of failed errands.
struct ErrandTests {
    @Test
    func `A failed query delays no other errand, and is retried`() async throws {
        let folder = TemporaryFolder()
        folder.makeFolder("data/partial")
        folder.write([1], to: "data/partial/canary")
        try await ServiceStage.run(folder: folder) { stage in
            try await eventually("the start has swept") { stage.partialFiles().isEmpty }
            let (partial, content) = ("partial/77", "contents/4d/78")
            for file in [partial, content] { stage.folder.write([1], to: "data/" + file) }
            func exists(_ file: String) -> Bool { fileLength(stage.folder.file("data/" + file)) != nil }
            let database = stage.service.store.database
            try await database.write { try $0.execute("ALTER TABLE resume_data RENAME TO away") }
            let errands = await stage.service.run([.removeIfOrphan(partial), .remove([content])])
            #expect(exists(partial) && !exists(content))
            #expect(errands.failed == [.removeIfOrphan(partial)])
            try await database.write { try $0.execute("ALTER TABLE away RENAME TO resume_data") }
            let again = await stage.service.run(errands.failed)
            #expect(!exists(partial) && again.failed.isEmpty)
        }
    }

    @Test
    func `A file that could not be removed stays recorded, and is removed later`() async throws {
        try await ServiceStage.run { stage in
            // A folder cannot be removed like a file.
            let (file, path) = ("contents/4d/79", stage.folder.file("data/contents/4d/79"))
            #expect(mkdir(path, 0o700) == 0)
            let store = stage.service.store
            try await store.database.write { db in
                try db.execute("INSERT INTO useless_file (node, path) VALUES ('', ?1)", file)
            }
            stage.service.outlet.janitor.tell(.remove([file]))
            let failed = try await stage.service.removeOrphans()
            #expect(Set(failed) == [.removeIfOrphan(file)])
            #expect(try await store.files.discarded(limit: 10) == [file])
            #expect(rmdir(path) == 0)
            stage.folder.write([1], to: "data/" + file)
            try await eventually("it is removed in a later round", within: .seconds(30)) {
                try await store.files.discarded(limit: 10).isEmpty
            }
            #expect(fileLength(path) == nil)
        }
    }
}
