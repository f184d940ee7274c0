import Base
import Buckets
import Core
import Store
import TestSupport
import Testing
import TransferEngine

@testable import Service
@testable import Transfers

/// Removal of objects without a row from the bucket of contents.
struct SweepTests {
    @Test func `Old orphans are removed, and no other object`() async throws {
        let bucket = try ObjectStore()
        let contents = try BucketClient.stage(bucket).asContents
        try await ServiceStage.run(configured: { $0.contents = contents }) { stage in
            stage.origin.serve("/a", .generated(seed: 1, length: 100_000))
            let session = try await stage.session()
            try await stage.run(.download, "GET", stage.origin.url("/a"), in: session)
            let known = Set(bucket.objects.keys.filter { $0.hasPrefix("p/ours/contents/") })
            #expect(known.count == 1)
            let note = contents.newKey(ofBody: "body_1")
            _ = try await stage.service.store.files.beginUpload(
                of: TaskID(0), bucket: Store.Files.contentsBucket, key: note, at: stage.service.clock.now,
                until: stage.service.clock.now + .seconds(3600))
            // A part of a content that is being written, and one of a content that was published.
            let parts = ["p/\(note).3", "p/ours/contents/1-lost.3"]
            let strangers: Set = [
                "other", "p/other", "p/theirs/contents/1-a", "p/ours2/contents/1-a",
            ]
            let lost = (1...5).map { "p/ours/contents/\($0)-lost" } + ["p/ours/bodies/body_1-lost"]
            for key in strangers.union(lost).union(parts).union(["p/\(note)"]) { bucket.put(key, [1]) }
            for key in ["p/ours/contents/7-lost", "p/theirs/contents/7-a", "p/\(note)"] { bucket.beginUpload(key) }

            // The age of the objects is not known yet.
            var removed = try await stage.service.sweep(contents)
            #expect(removed.objects == 0 && removed.uploads == 0)
            bucket.age()
            removed = try await stage.service.sweep(contents)
            #expect(removed.objects == lost.count + 1 && removed.uploads == 1, "\(removed)")
            let left = Set(bucket.objects.keys.filter { !$0.contains(".urlsessiond-probe") })
            #expect(left == strangers.union(known).union(["p/\(note)", parts[0]]))
            #expect(bucket.uploads == 2)
        }
    }
}
