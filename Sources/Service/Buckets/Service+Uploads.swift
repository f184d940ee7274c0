import Base
import Buckets
import Core
import Store
import Transfers

/// Aborts multipart uploads that no task needs.
extension Service {
    /// Milliseconds between two rounds.
    private static let uploadRound: Int64 = 5000
    private static let uploadsAtOnce = 16
    /// After so many failed attempts, an upload is left to the bucket's own rules.
    private static let mostAttempts = 200
    /// How far the store's clock may be behind.
    private static let clockTolerance = Duration.seconds(60)

    /// Aborts orphaned uploads until it is cancelled.
    ///
    /// Runs beside the janitor, because a bucket may be slow, and separately for each bucket, because another may be
    /// fast. Rows of a bucket that the operator removed wait for its return.
    func abortUploads() async {
        await withDiscardingTaskGroup { group in
            var clients = settings.buckets
            clients[Store.Files.contentsBucket] = settings.contents?.client
            for (name, client) in clients {
                group.addTask {
                    if name != Store.Files.contentsBucket { await self.probe(name, client) }
                    while !Task.isCancelled {
                        await self.abortUselessUploads(name, client)
                        try? await Task.sleep(for: .milliseconds(Self.uploadRound))
                    }
                }
            }
        }
    }

    /// Logs at once why a bucket does not work, and finds out which conditions its store supports.
    private func probe(_ name: String, _ client: BucketClient) async {
        let log = log.with("bucket", name)
        do throws(BucketFault) {
            let heeded = try await client.heededConditions()
            log.info("the bucket accepts objects", ("conditions", heeded.absent ? "heeded" : "ignored"))
            if !heeded.absent {
                log.warning("the store ignores If-None-Match: the absence of an object is checked before it is written")
            }
            if !heeded.unchanged {
                log.warning("the store ignores If-Match: a delayed request may overwrite a newer object")
            }
        } catch {
            log.error("the bucket cannot be used", ("code", error.code), ("message", error.message))
        }
    }

    /// Renews the rows of bodies that are being written into the bucket of contents, until it is cancelled. The rows of
    /// a dead node expire soon.
    func keepBodies() async {
        guard let contents = settings.contents else { return }
        while !Task.isCancelled {
            try? await Task.sleep(for: contents.bodyLease / 4)
            let rows = contents.writers.rows
            guard !rows.isEmpty, !Task.isCancelled else { continue }
            do {
                try await store.files.extendUploads(rows: rows, until: clock.now + contents.bodyLease)
            } catch {
                if Store.Obstacle(error) != .away {
                    log.warning("leases of bodies in flight could not be renewed", ("error", "\(error)"))
                }
            }
        }
    }

    private func abortUselessUploads(_ bucket: String, _ client: BucketClient) async {
        do {
            while !Task.isCancelled {
                let useless = try await store.files.uselessUploads(of: bucket, at: clock.now, limit: Self.uploadsAtOnce)
                await withDiscardingTaskGroup { group in
                    for upload in useless { group.addTask { await self.abort(upload, bucket, client) } }
                }
                guard useless.count == Self.uploadsAtOnce else { return }
            }
        } catch {
            log.warning("orphaned uploads could not be read", ("error", "\(error)"))
        }
    }

    private func abort(_ upload: UselessUpload, _ bucket: String, _ client: BucketClient) async {
        let log = log.with("bucket", bucket).with("key", upload.key)
        do {
            switch upload.id {
            case _ where upload.isObject: break
            case let id? where !upload.hasPartObjects: try await client.abortUpload(id, upload.key)
            // The upload that joins objects of parts has no row of its own.
            default:
                guard try await abortNameless(upload, bucket, client) else {
                    return try await store.files.postponeUpload(row: upload.row, until: clock.now + .seconds(5))
                }
            }
            // An object may exist that no commit refers to.
            if bucket == Store.Files.contentsBucket,
                try await store.files.claimRemoval(ofObject: upload.key, row: upload.row)
            {
                try await client.delete(upload.key)
            }
            if upload.hasPartObjects {
                try await client.deleteParts(of: upload.key)
                // A part that is still being written appears later.
                guard upload.attempts > 0 else {
                    return try await store.files.postponeUpload(
                        row: upload.row, until: clock.now + Store.Files.longestDelay)
                }
            }
            try await store.files.forgetUpload(row: upload.row, id: upload.id)
        } catch {
            let message = (error as? BucketFault)?.message ?? "\(error)"
            if upload.attempts >= Self.mostAttempts {
                // If the row remains, it is still due, and the next round tries again.
                if (try? await store.files.forgetUpload(row: upload.row, id: upload.id)) != nil {
                    log.error("an upload could not be aborted and is abandoned", ("message", message))
                }
                return
            }
            let delay = Duration.seconds(5 << min(upload.attempts, 9))
            if upload.attempts == 0 {
                log.warning("an upload could not be aborted and is retried", ("message", message))
            }
            // If this fails, the row is still due, and the next round tries again.
            try? await store.files.postponeUpload(row: upload.row, until: clock.now + delay)
        }
    }

    /// Aborts uploads that may have begun without a response: those of this object since then that have no row.
    ///
    /// - Returns: False if another upload of this object begins, so that the two cannot be distinguished yet.
    private func abortNameless(_ upload: UselessUpload, _ bucket: String, _ client: BucketClient) async throws -> Bool {
        // In this order: an upload that begins meanwhile has a row by the time the service's store is read.
        let begun = try await client.uploads(of: upload.key)
        let known = try await store.files.uploads(of: upload.key, bucket: bucket, besides: upload.row, at: clock.now)
        guard let known else { return false }
        let since = upload.begunAt - Self.clockTolerance
        for other in begun where !known.contains(other.id) {
            guard let initiated = other.initiated, initiated >= since else { continue }
            try await client.abortUpload(other.id, upload.key)
        }
        return true
    }
}
