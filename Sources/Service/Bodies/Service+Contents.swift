import Base
import Buckets
package import Core
package import Files
import Glibc
import Store
package import Transfers

/// Where the bytes of a finished task are read.
package enum ContentSource: Sendable {
    case here(StoredBytes)
    /// In the bucket of contents.
    case bucket([StoredObject])
}

extension Service {
    /// A finished task's bytes.
    ///
    /// - Throws: ``DomainError/notFound`` before there are any; ``DomainError/contentExpired`` afterwards.
    package func content(of task: TaskRecord) async throws -> (record: ContentRecord, source: ContentSource) {
        let location = try await store.content(of: task.id)
        guard !location.record.isExpired, let place = location.place else { throw DomainError.contentExpired }
        switch place {
        case .bytes(let bytes): return (location.record, .here(.bytes(bytes)))
        case .objects(let objects): return (location.record, .bucket(objects))
        case .file(let path): return (location.record, .here(.file(try await open(path, location.record, of: task))))
        }
    }

    /// Opens a content's file, unless the disk has lost it or some of it: who reads would wait for bytes that never come.
    private func open(_ path: String, _ record: ContentRecord, of task: TaskRecord) async throws -> OpenFile {
        var found: Int64?
        do throws(SystemError) {
            let file = try await folder.open(path)
            found = try file.size()
            if found == record.length { return file }
        } catch {
            guard error.errno == ENOENT else { throw error }
            // It may have been freed since its place was read.
            guard try await !store.content(of: task.id).record.isExpired else { throw DomainError.contentExpired }
        }
        if damagedContents.note(task.id) {
            log.error(
                found == nil
                    ? "the file of a content is missing, and cannot be read"
                    : "a content is not as long as it was stored, and cannot be read",
                ("session", task.sessionIdentifier), ("task", task.number), ("file", path), ("length", record.length),
                ("found", found ?? 0))
        }
        throw DomainError.contentExpired
    }

    package func claimContent(of task: TaskID, expecting expected: ClaimCondition?) async throws {
        outlet.handle(try await store.claimContent(of: task, expecting: expected, at: clock.now))
    }

    /// Frees the contents of all matching tasks of a session, some at a time.
    ///
    /// - Parameter revision: What the session's must be when the first of them are freed, or nil.
    /// - Returns: How many of them had a content, and how many contents were not expired yet.
    package func claimContents(
        _ filter: TaskFilter, in session: SessionID, ifRevision revision: Int64?
    ) async throws -> (matched: Int, changed: Int) {
        var (matched, changed) = (0, 0)
        var (after, revision) = (Int64(0), revision)
        while true {
            let step = try await store.claimContents(
                filter, in: session, after: after, limit: Store.commandGroup, ifRevision: revision, at: clock.now)
            revision = nil
            outlet.handle(step.aftermath)
            matched += step.matched
            changed += step.changed
            guard let last = step.last else { return (matched, changed) }
            after = last
        }
    }

    /// A place for an answer that grows while its request is read.
    package func makeSpool() -> Spool { Spool(in: folder) }

    // MARK: From the bucket of contents

    /// For how long an address of a content is good, in seconds. A read that has begun by then goes on.
    private static let addressLife = 60

    /// Begins to read objects.
    ///
    /// - Throws: ``DomainError/contentExpired`` where they are not there any more; ``ServiceError/contentsUnavailable``.
    package func read(_ objects: [StoredObject], _ range: Range<Int64>) async throws -> ObjectReading {
        let contents = try contents()
        return try await fromContents { () throws(BucketFault) in
            try await ObjectReading(objects, range, contents, log: log)
        }
    }

    /// An address at which the store itself hands out a content, for a minute; nil where it is in several objects.
    ///
    /// - Parameters:
    ///   - method: `GET` or `HEAD`.
    ///   - fields: `Content-Type` and others that the store shall send.
    package func address(
        of objects: [StoredObject], _ method: String, fields: [(name: String, value: String)]
    ) async throws -> String? {
        guard objects.count == 1 else { return nil }
        let client = try contents().client
        let query = fields.map { (name: "response-\($0.name.asciiLowercased)", value: $0.value) }
        return try await fromContents { () throws(BucketFault) in
            try await client.address(toRead: objects[0].key, method, for: Self.addressLife, query: query)
        }
    }

    private func contents() throws(ServiceError) -> ContentsBucket {
        guard let contents = settings.contents else { throw .contentsUnavailable }
        return contents
    }

    private func fromContents<Result>(_ body: () async throws(BucketFault) -> Result) async throws -> Result {
        do throws(BucketFault) {
            return try await body()
        } catch {
            log.warning("a content could not be read", ("code", error.code), ("message", error.message))
            if case .refused(let refusal) = error, refusal.meaning == .noSuchKey { throw DomainError.contentExpired }
            throw ServiceError.contentsUnavailable
        }
    }
}

/// The contents that could not be read, so that each is reported once, however often it is asked for.
struct DamagedContents: Sendable {
    private static let limit = 1000
    private let known = Locked<Set<TaskID>>([])

    /// - Returns: Whether this one is new, or was forgotten since.
    func note(_ task: TaskID) -> Bool {
        known.withLock { known in
            if known.count >= Self.limit { known = [] }
            return known.insert(task).inserted
        }
    }
}
