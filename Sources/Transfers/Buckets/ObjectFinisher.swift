import Base
import Buckets
import Core
import Formats
import Store

/// Completes the object of a content: with one request if it is small enough, otherwise from its parts.
///
/// The object appears whole or not at all. If a response is lost, the mark of its writer, which every object carries,
/// decides whether the request succeeded. The request is never simply repeated.
struct ObjectFinisher: Sendable {
    let client: BucketClient
    let store: Store
    let task: ClaimedTask
    let destination: ObjectDestination
    let mediaType: String?
    let clock: Clock

    private var key: String { destination.key }

    /// Completes the object, unless the task is completed first: cancelled, or timed out. Then the request for it is
    /// aborted. The store may still carry out a request that it has received: the object stays in the app's own bucket,
    /// and is removed from the bucket of contents.
    ///
    /// - Parameter decided: Rung when the task was decided elsewhere.
    /// - Returns: Nil if the task was completed.
    /// - Throws: The errors of `make` and of the store.
    func unlessCompleted<Result: Sendable>(
        _ decided: Doorbell, _ make: @escaping @Sendable () async throws -> Result
    ) async throws -> Result? {
        guard try await store.tasks.isUnfinished(task.id) else { return nil }
        let made = try await withThrowingTaskGroup(of: Result?.self) { group in
            group.addTask { try await make() }
            group.addTask {
                // A suspended task resumes from its object.
                while await decided.wait(until: nil), try await store.tasks.isUnfinished(task.id) {}
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
        if made == nil, destination.isContent, try await !store.tasks.isUnfinished(task.id) {
            try await store.files.noteLate(object: key, at: clock.now)
        }
        return made
    }

    /// The task's content: the object, or nothing if the object belongs to the app.
    private func content(_ length: Int64, _ digest: ContentDigest) -> NewContent {
        NewContent(storage: destination.isContent ? .object(key) : .moved, length: length, digest: digest)
    }

    /// Writes a content of one part.
    ///
    /// - Throws: ``BucketFault``, and the errors of the store.
    func write(_ content: SentBytes, digest: ContentDigest) async throws -> NewContent {
        if destination.isContent {
            // Noted first, so that a kill leaves no unknown object.
            _ = try await store.files.beginUpload(of: task.id, bucket: destination.bucket, key: key, at: clock.now)
        }
        // Equal contents of one task have the same mark.
        let mark = "\(task.id.rawValue)-\(digest.value)"
        let terms = ObjectTerms(destination, mark: mark, mediaType: mediaType)
        do {
            try await make(mark) { (condition) async throws(BucketFault) in
                try await put(content, terms, mark, if: condition)
            }
        } catch let fault as BucketFault {
            // The response to an earlier attempt may have been lost.
            guard fault.remedy == .exists, try await client.object(key)?.mark == mark else { throw fault }
        }
        return self.content(content.count, digest)
    }

    /// Writes the content, and checks the stored object if the response does not prove it.
    private func put(
        _ content: SentBytes, _ terms: ObjectTerms, _ mark: String, if condition: WriteCondition
    ) async throws(BucketFault) {
        let tag = try await client.put(key, content, terms, if: condition)
        guard !content.isProven(by: tag) else { return }
        try await check(mark, length: content.count)
    }

    /// Checks the length of the object. An incomplete one is deleted.
    private func check(_ mark: String, length: Int64) async throws(BucketFault) {
        let object = try await client.object(key)
        if let object, object.length == length { return }
        if object?.mark == mark { try await client.delete(key) }
        throw .wrongObject("The object has \(object?.length.map(String.init) ?? "no") bytes instead of \(length).")
    }

    /// Completes the object from its parts.
    ///
    /// - Parameters:
    ///   - upload: The upload with all parts.
    ///   - mayBeDone: Whether an earlier attempt may have completed the object already.
    /// - Throws: ``BucketFault``, and the errors of the store.
    func complete(
        _ upload: MultipartUpload, _ whole: MultipartUpload.Whole, mayBeDone: Bool
    ) async throws -> NewContent {
        var isDone = false
        if mayBeDone { isDone = try await self.isDone(upload) }
        if !isDone { try await assemble(upload) }
        try await check(upload.mark, length: whole.length)
        // Readers find the bytes in the whole object.
        if upload.readable != nil { try await client.deleteParts(of: key) }
        // The row of a content is deleted by the commit that publishes the content.
        if !destination.isContent { try await store.files.forgetUpload(row: upload.row, id: upload.id) }
        return content(whole.length, whole.digest)
    }

    private func assemble(_ upload: MultipartUpload) async throws {
        do {
            if upload.readable != nil {
                try await join(upload)
            } else {
                try await make(upload.mark) { (condition) async throws(BucketFault) in
                    try await client.completeUpload(upload.id, key, parts: upload.parts, if: condition)
                }
            }
        } catch let fault as BucketFault {
            if try await isDone(upload) { return }
            throw fault
        }
    }

    /// Has the store join the objects of the parts, or joins them here if the store does not copy.
    private func join(_ upload: MultipartUpload) async throws {
        let terms = ObjectTerms(destination, mark: upload.mark, mediaType: mediaType)
        let objects = upload.objects
        do {
            try await client.join(objects, as: key, terms)
        } catch BucketFault.refused(let error) where error.meaning == .noSuchKey {
            throw BucketFault.wrongObject("An object with a part of the content is missing.")
        } catch let fault as BucketFault where fault.remedy == .change {
            let length = objects.reduce(0) { $0 + $1.length }
            let plan = PartPlan(expected: length)
            let count = Int((length - 1) / plan.length(ofPart: 1) + 1)
            try await client.assemble(key, terms, parts: count, width: 1) { [client, key] number, id in
                let range = plan.offset(ofPart: number)..<min(plan.offset(ofPart: number + 1), length)
                let bytes = try await objects.bytes(range, client)
                return try await client.putPart(number, of: id, key, SentBytes(bytes, isWhole: false))
            }
        }
    }

    // MARK: Write conditions

    /// How often another writer may interfere.
    private static let mostRounds = 8

    /// Writes the object under the condition that its task and the store allow.
    ///
    /// - Parameters:
    ///   - mark: The mark of the object's writer.
    ///   - write: Writes the object under a condition that the store checks.
    private func make(
        _ mark: String, _ write: (WriteCondition) async throws(BucketFault) -> Void
    ) async throws {
        // No other task ever writes to this key.
        if destination.isContent { return try await write(.none) }
        let heeded = try await client.heededConditions()
        if destination.replace {
            return heeded.absent && heeded.unchanged ? try await overwrite(write) : try await write(.none)
        }
        if !heeded.absent, let other = try await client.object(key), other.mark != mark {
            throw BucketFault.exists(key)
        }
        try await write(heeded.absent ? .absent : .none)
    }

    /// Replaces the object that exists now, and none that is written later: a late request, of a process whose task
    /// others have completed since, changes nothing.
    private func overwrite(
        _ write: (WriteCondition) async throws(BucketFault) -> Void
    ) async throws {
        for _ in 0..<Self.mostRounds {
            let seen = try await client.object(key)
            do throws(BucketFault) {
                return try await write(seen.map { $0.entityTag.map(WriteCondition.unchanged) ?? .none } ?? .absent)
            } catch {
                // Another writer interfered. A task that this node still holds replaces that object, too.
                guard error.isOfCondition, try await store.tasks.isHeld(task.id) else { throw error }
            }
        }
        throw BucketFault.unexpected("Other programs keep writing \(key).")
    }

    private func isDone(_ upload: MultipartUpload) async throws(BucketFault) -> Bool {
        try await client.object(key)?.mark == upload.mark
    }
}
