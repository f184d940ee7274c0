import Base
import Buckets
import Core
import Files
import Formats
import Store
import Transfers

/// Bodies that are too large for the database, in the bucket of contents: a complete one is one object, a draft has one
/// more object for each request that appends to it.
extension Service {
    /// Receives a body, in as much memory as a part needs.
    func receiveBody(
        _ order: BodyOrder, app: AppID, recording: Recording<BodyRecord>?, into contents: ContentsBucket,
        _ next: () async throws -> [UInt8]?
    ) async throws -> BodyRecord {
        let publicId = Identifier.make(prefix: "body_")
        let limits = try await store.apps.read(app).limits
        // The algorithms of the digests that complete a draft are not known yet.
        var digests = RunningDigests(order.isComplete ? Array(order.algorithms) : DigestAlgorithm.allCases)
        var (small, upload, length) = ([UInt8]?.some([]), newUpload(publicId, app, order, contents), Int64(0))
        return try await intoContents(&upload) { upload in
            try check(announced: order)
            while let bytes = try await next() {
                try check(length: length + Int64(bytes.count))
                digests.update(bytes)
                length += Int64(bytes.count)
                if let held = small, held.count + bytes.count > ServiceSettings.inlineLimit || !order.isComplete {
                    try await upload.write(held)
                    small = nil
                }
                if small == nil { try await upload.write(bytes) } else { small? += bytes }
            }
            try check(order, digests.values)
            let storage: BodyLocation.Storage
            if order.isComplete, let small {
                storage = .bytes(small)
            } else {
                storage = .objects(length > 0 ? [try await upload.finish()] : [])
            }
            return try await store.files.addBody(
                publicId, app: app, storage: storage, length: length,
                digest: order.isComplete ? digests.values[.sha256]?.hexadecimal : nil, mediaType: order.mediaType,
                isComplete: order.isComplete, expectedLength: order.isComplete ? nil : order.expectedLength,
                draftDigest: order.isComplete ? nil : digests.kept(expecting: order.expected),
                limit: limits.maximumStoredBytes, at: clock.now, recording: recording)
        }
    }

    /// Appends to a draft. If another node appends to it at the same time, one of the two appends fails.
    func appendBody(
        _ draft: BodyRecord, _ order: BodyOrder, into contents: ContentsBucket, _ next: () async throws -> [UInt8]?
    ) async throws -> BodyRecord {
        guard var digests = draft.draftDigest.flatMap({ RunningDigests($0) }) else { throw DomainError.notFound }
        let limits = try await store.apps.read(draft.app).limits
        let limit = min(settings.maximumBodyLength, order.expectedLength ?? .max)
        var upload = newUpload(draft.publicId, draft.app, order, contents)
        return try await intoContents(&upload) { upload in
            var (length, failure) = (draft.length, (any Error)?.none)
            do {
                while let bytes = try await next() {
                    guard length + Int64(bytes.count) <= limit else { throw ServiceError.bodyTooLong(limit: limit) }
                    try await upload.write(bytes)
                    digests.update(bytes)
                    length += Int64(bytes.count)
                }
            } catch let error where error is BucketFault || error as? ServiceError == .digestMismatch {
                throw error
            } catch is TooManyBodies {
                throw ServiceError.overloaded
            } catch {
                // Bytes that arrived before the client disconnected count.
                failure = error
            }
            var digest: String?
            if failure == nil, order.isComplete {
                do {
                    try check(order, digests.values)
                } catch {
                    try await deleteBody(draft.publicId, app: draft.app)
                    throw error
                }
                digest = digests.values[.sha256]?.hexadecimal
            }
            let objects = length > draft.length ? [try await upload.finish()] : []
            let body = try await store.files.appendBody(
                draft.publicId, app: draft.app, at: draft.length, objects, digest: digest,
                digests.kept(expecting: draft.draftDigest?.expected ?? []), limit: limits.maximumStoredBytes,
                at: clock.now)
            guard let body else {
                let now = try await store.files.body(draft.publicId, app: draft.app)
                throw ServiceError.uploadOffsetMismatch(offset: now.length)
            }
            if let failure { throw failure }
            return body
        }
    }

    private func newUpload(
        _ publicId: String, _ app: AppID, _ order: BodyOrder, _ contents: ContentsBucket
    ) -> ObjectUpload {
        ObjectUpload(
            contents.newKey(ofBody: publicId), for: app, expected: order.expectedLength, contents, store,
            folder.of(app.rawValue).disk)
    }

    /// Runs a closure that writes an object. If it fails, the object is removed.
    private func intoContents(
        _ upload: inout ObjectUpload, _ body: (inout ObjectUpload) async throws -> BodyRecord
    ) async throws -> BodyRecord {
        do {
            return try await body(&upload)
        } catch {
            await upload.abandon()
            guard let fault = error as? BucketFault else { throw error }
            settings.contents?.access.note(fault)
            log.warning("a body could not be stored", ("code", fault.code), ("message", fault.message))
            throw ServiceError.contentsUnavailable
        }
    }
}
