import Base
import Buckets
import Core
import Store
import Transfers

/// Removes orphaned objects and uploads from the bucket of contents.
///
/// Everything written there has a row first. A sweep finds objects of a store that was restored from a backup, and of a
/// process that was stopped for long and wrote after its row was deleted.
extension Service {
    private static let firstSweep = Duration.seconds(60)
    private static let sweepInterval = Duration.seconds(24 * 3600)
    /// A row for younger objects may be about to be committed.
    private static let sweepAge = Duration.seconds(24 * 3600)
    /// The pause between two pages of a listing.
    private static let sweepPause = Duration.milliseconds(200)

    /// Sweeps once a day until it is cancelled.
    func sweepContents() async {
        guard let contents = settings.contents else { return }
        var pause = Self.firstSweep
        while !Task.isCancelled {
            try? await Task.sleep(for: pause)
            guard !Task.isCancelled else { return }
            do {
                let (objects, uploads) = try await sweep(contents)
                if objects + uploads > 0 {
                    log.warning(
                        "orphans were removed from the bucket of contents", ("objects", objects), ("uploads", uploads))
                }
                pause = Self.sweepInterval
            } catch {
                log.warning("the bucket of contents could not be swept", ("error", "\(error)"))
                pause = .seconds(3600)
            }
        }
    }

    /// - Returns: The numbers of removed objects and uploads.
    func sweep(_ contents: ContentsBucket) async throws -> (objects: Int, uploads: Int) {
        let old = clock.now - Self.sweepAge
        return (
            try await sweepObjects(contents.client, contents.folder + "/", olderThan: old),
            try await sweepUploads(contents.client, contents.folder + "/", olderThan: old)
        )
    }

    private func sweepObjects(_ client: BucketClient, _ start: String, olderThan old: Timestamp) async throws -> Int {
        var (removed, last) = (0, String?.none)
        while !Task.isCancelled {
            let page = try await client.objects(below: start, after: last)
            guard let next = page.last?.key, next != last else { break }
            last = next
            for object in page {
                guard let modified = object.modified, modified < old,
                    try await !store.files.isKnown(object: object.key)
                else { continue }
                try await client.delete(object.key)
                removed += 1
            }
            try await Task.sleep(for: Self.sweepPause)
        }
        return removed
    }

    private func sweepUploads(_ client: BucketClient, _ start: String, olderThan old: Timestamp) async throws -> Int {
        var (removed, marker) = (0, S3Answer.Uploads.Marker?.none)
        while !Task.isCancelled {
            let page = try await client.uploads(below: start, after: marker)
            for upload in page.uploads {
                guard let initiated = upload.initiated, initiated < old,
                    try await !store.files.isKnown(object: upload.key)
                else { continue }
                try await client.abortUpload(upload.id, upload.key)
                removed += 1
            }
            guard let next = page.next, next != marker else { break }
            marker = next
            try await Task.sleep(for: Self.sweepPause)
        }
        return removed
    }
}
