import Base
import Buckets
import Core
import Formats
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

    /// Makes the object, unless the task is completed before that: it was cancelled, or took too long. Then the request
    /// that makes it is broken off. What the store has of it by then it may carry out: the object stays in the app's own
    /// bucket, and is removed from the bucket of contents.
    ///
    /// - Parameter decided: Rung when the task was decided about elsewhere.
    /// - Returns: Nil where the task was completed.
    /// - Throws: What `make` throws, and the store.
    func unlessCompleted<Result: Sendable>(
        _ decided: Doorbell, _ make: @escaping @Sendable () async throws -> Result
    ) async throws -> Result? {
        guard try await store.isUnfinished(task.id) else { return nil }
        let made = try await withThrowingTaskGroup(of: Result?.self) { group in
            group.addTask { try await make() }
            group.addTask {
                // A task that was suspended goes on from its object.
                while await decided.wait(until: nil), try await store.isUnfinished(task.id) {}
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
        if made == nil, destination.isContent, try await !store.isUnfinished(task.id) {
            try await store.noteLate(object: key, at: clock.now)
        }
        return made
    }

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

    /// Writes it, and looks what the store made of it, where the answer does not tell.
    private func put(
        _ content: SentBytes, _ terms: ObjectTerms, _ mark: String, if condition: WriteCondition
    ) async throws(BucketFault) {
        let tag = try await client.put(key, content, terms, if: condition)
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
        if !destination.isContent { try await store.forgetUpload(row: upload.row, id: upload.id) }
        return content(whole.length, whole.digest)
    }

    private func assemble(_ upload: MultipartUpload) async throws {
        do {
            try await make(upload.mark) { (condition) async throws(BucketFault) in
                try await client.completeUpload(upload.id, key, parts: upload.parts, if: condition)
            }
        } catch let fault as BucketFault {
            if try await isDone(upload) { return }
            throw fault
        }
    }

    // MARK: What the store checks

    /// How often another writer may come in between.
    private static let mostRounds = 8

    /// Writes the object under the condition that its task and the store allow.
    ///
    /// - Parameters:
    ///   - mark: What the object has from its writer.
    ///   - write: Writes it under a condition that the store checks.
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

    /// Writes over the object that is there now, and over none that comes later: a request that arrives late, of a process
    /// whose task others have completed since, changes nothing.
    private func overwrite(
        _ write: (WriteCondition) async throws(BucketFault) -> Void
    ) async throws {
        for _ in 0..<Self.mostRounds {
            let seen = try await client.object(key)
            do throws(BucketFault) {
                return try await write(seen.map { $0.entityTag.map(WriteCondition.unchanged) ?? .none } ?? .absent)
            } catch {
                // Another writer came in between. A task that is still this node's writes over that, too.
                guard error.isOfCondition, try await store.isHeld(task.id) else { throw error }
            }
        }
        throw BucketFault.unexpected("Others write \(key) all the time.")
    }

    private func isDone(_ upload: MultipartUpload) async throws(BucketFault) -> Bool {
        try await client.object(key)?.mark == upload.mark
    }
}
