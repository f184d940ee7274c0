import Base
import Buckets
import Core
import Notation
import Store

/// Makes what was written into a bucket the object: at once where one request was enough, else from its parts.
///
/// The object appears whole or not at all. What a lost answer means is found out by the mark that every object carries of
/// who wrote it, never by asking once more for the same.
struct ObjectFinisher: Sendable {
    let client: BucketClient
    let store: Store
    let task: ClaimedTask
    let destination: ObjectDestination
    let mediaType: String?
    let clock: Clock

    private var key: String { destination.key }

    /// What the object is to its task: the content that is read from there, or nothing of the service's any more.
    private func content(_ length: Int64, _ digest: ContentDigest) -> NewContent {
        NewContent(place: destination.isContent ? .object(key) : .moved, length: length, digest: digest)
    }

    /// Writes a content of one part.
    ///
    /// - Throws: ``BucketFault``, and what the store throws.
    func write(_ content: SentBytes, digest: ContentDigest) async throws -> NewContent {
        if destination.isContent {
            // Noted first, so that a kill leaves nothing that is not known.
            _ = try await store.beginUpload(of: task.id, bucket: destination.bucket, key: key, at: clock.now)
        }
        // Twice the same of one task is the same object.
        let mark = "\(task.id.rawValue)-\(digest.value)"
        let terms = ObjectTerms(destination, mark: mark, mediaType: mediaType)
        do throws(BucketFault) {
            if destination.replace {
                try await put(content, terms, mark, onlyIfAbsent: false)
            } else {
                let isHeeded = try await client.canWriteOnlyIfAbsent()
                if !isHeeded, let other = try await client.object(key), other.mark != mark {
                    throw BucketFault.exists(key)
                }
                try await put(content, terms, mark, onlyIfAbsent: isHeeded)
            }
        } catch {
            // An attempt before this one may have been answered, and nobody heard it.
            guard error.remedy == .exists, try await client.object(key)?.mark == mark else { throw error }
        }
        return self.content(content.count, digest)
    }

    /// Writes it, and looks what the store made of it, where the answer does not tell.
    private func put(
        _ content: SentBytes, _ terms: ObjectTerms, _ mark: String, onlyIfAbsent: Bool
    ) async throws(BucketFault) {
        let tag = try await client.put(key, content, terms, onlyIfAbsent: onlyIfAbsent)
        guard !content.isProven(by: tag) else { return }
        try await check(mark, length: content.count)
    }

    /// Looks whether the object is whole. One that is not does not stay.
    private func check(_ mark: String, length: Int64) async throws(BucketFault) {
        let object = try await client.object(key)
        if let object, object.length == length { return }
        if object?.mark == mark { try await client.delete(key) }
        throw .wrongObject("The object has \(object?.length.map(String.init) ?? "no") bytes instead of \(length).")
    }

    /// Makes the parts the object.
    ///
    /// - Parameters:
    ///   - upload: With all parts.
    ///   - mayBeDone: Whether an attempt before this one may have made it already.
    /// - Throws: ``BucketFault``, and what the store throws.
    func complete(
        _ upload: MultipartUpload, _ whole: MultipartUpload.Whole, mayBeDone: Bool
    ) async throws -> NewContent {
        var isDone = false
        if mayBeDone { isDone = try await self.isDone(upload) }
        if !isDone { try await assemble(upload) }
        try await check(upload.mark, length: whole.length)
        // That of a content goes with the commit that publishes it.
        if !destination.isContent { try await store.forgetUpload(row: upload.row) }
        return content(whole.length, whole.digest)
    }

    private func assemble(_ upload: MultipartUpload) async throws {
        do throws(BucketFault) {
            var isConditional = false
            if !destination.replace { isConditional = try await client.canWriteOnlyIfAbsent() }
            if !destination.replace, !isConditional, try await client.object(key) != nil { throw .exists(key) }
            try await client.completeUpload(upload.id, key, parts: upload.parts, onlyIfAbsent: isConditional)
        } catch {
            if try await isDone(upload) { return }
            throw error
        }
    }

    private func isDone(_ upload: MultipartUpload) async throws(BucketFault) -> Bool {
        try await client.object(key)?.mark == upload.mark
    }
}
