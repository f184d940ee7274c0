import Base
import Buckets
package import Core
package import Files
import Glibc
import Store
package import Transfers

/// The place of a finished task's content.
package enum ContentSource: Sendable {
    case here(StoredBytes)
    /// In the bucket of contents.
    case bucket([StoredObject])
}

extension Service {
    /// The content of a finished task.
    ///
    /// - Throws: ``DomainError/notFound`` if there is none yet; ``DomainError/contentExpired`` afterwards.
    package func content(of task: TaskRecord) async throws -> (record: ContentRecord, source: ContentSource) {
        let location = try await store.files.content(of: task.id)
        guard !location.record.hasExpired(at: clock.now), let storage = location.storage else {
            throw DomainError.contentExpired
        }
        switch storage {
        case .bytes(let bytes): return (location.record, .here(.bytes(bytes)))
        case .objects(let objects): return (location.record, .bucket(objects))
        case .file(let path): return (location.record, .here(.file(try await open(path, location.record, of: task))))
        }
    }

    /// Opens a content's file, unless it is missing or truncated: its reader would wait for bytes that never come.
    private func open(_ path: String, _ record: ContentRecord, of task: TaskRecord) async throws -> OpenFile {
        var found: Int64?
        do throws(SystemError) {
            let file = try await folder.open(path)
            found = try file.size()
            if found == record.length { return file }
        } catch {
            guard error.errno == ENOENT else { throw error }
            // The content may have been freed since its place was read.
            guard try await !store.files.content(of: task.id).record.isExpired else { throw DomainError.contentExpired }
        }
        if damagedContents.note(task.id) {
            log.error(
                found == nil
                    ? "the file of a content is missing"
                    : "the file of a content does not have its stored length",
                ("session", task.sessionIdentifier), ("task", task.number), ("file", path), ("length", record.length),
                ("found", found ?? 0))
        }
        throw DomainError.contentExpired
    }

    package func claimContent(of task: TaskID, expecting expected: ClaimCondition?) async throws {
        outlet.handle(try await store.files.claimContent(of: task, expecting: expected, at: clock.now))
    }

    /// Frees the contents of all matching tasks of a session, in batches.
    ///
    /// - Parameter revision: The required revision of the session when the first contents are freed, or nil.
    /// - Returns: The number of matching tasks with a content, and of contents that were not expired yet.
    package func claimContents(
        _ filter: TaskFilter, in session: SessionID, ifRevision revision: Int64?
    ) async throws -> (matched: Int, changed: Int) {
        var (matched, changed) = (0, 0)
        var (after, revision) = (Int64(0), revision)
        while true {
            let step = try await store.files.claimContents(
                filter, in: session, after: after, limit: Store.Tasks.commandGroup, ifRevision: revision, at: clock.now)
            revision = nil
            outlet.handle(step.aftermath)
            matched += step.matched
            changed += step.changed
            guard let last = step.last else { return (matched, changed) }
            after = last
        }
    }

    /// A buffer for a response that grows while its request is read.
    package func makeSpool() -> Spool { Spool(in: folder) }

    // MARK: From the bucket of contents

    /// The validity of a content's address, in seconds. A read that has begun by then continues.
    private static let addressLife = 60

    /// The length of the pieces in which a file is read for a client.
    private static let pieceLength = 256 << 10

    /// Passes stored bytes on in pieces.
    ///
    /// - Throws: ``DomainError/contentExpired`` if the file has become shorter; the errors of `take`.
    package func read(
        _ bytes: StoredBytes, _ range: Range<Int64>, _ take: @Sendable ([UInt8]) async throws -> Void
    ) async throws {
        switch bytes {
        case .bytes(let all): try await take(Array(all[Int(range.lowerBound)..<Int(range.upperBound)]))
        case .file(let file):
            for start in stride(from: range.lowerBound, to: range.upperBound, by: Self.pieceLength) {
                let piece = start..<min(range.upperBound, start + Int64(Self.pieceLength))
                let read = try await folder.disk.read(file, piece)
                guard read.count == piece.count else { throw DomainError.contentExpired }
                try await take(read)
            }
        }
    }

    /// Begins to read objects.
    ///
    /// - Throws: ``DomainError/contentExpired`` if they no longer exist; ``ServiceError/contentsUnavailable``.
    package func read(_ objects: [StoredObject], _ range: Range<Int64>) async throws -> ObjectReading {
        let contents = try contents()
        return try await fromContents { () throws(BucketFault) in
            try await ObjectReading(objects, range, contents, log: log)
        }
    }

    /// Some bytes of consecutive objects, in memory; nil if the objects no longer exist.
    ///
    /// - Throws: ``ServiceError/contentsUnavailable``.
    func bytes(_ range: Range<Int64>, of objects: [StoredObject]) async throws -> [UInt8]? {
        let client = try contents().client
        return try await fromContents { () throws(BucketFault) in
            do throws(BucketFault) {
                return try await objects.bytes(range, client)
            } catch .refused(let refusal) where refusal.meaning == .noSuchKey { return nil }
        }
    }

    /// An address at which the bucket itself serves a content, for a minute; nil if the content is in several objects.
    ///
    /// - Parameters:
    ///   - method: `GET` or `HEAD`.
    ///   - fields: `Content-Type` and other fields that the bucket sends.
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

/// The contents that could not be read, so that each is logged once, however often it is requested.
struct DamagedContents: Sendable {
    private static let limit = 1000
    private let known = Locked<Set<TaskID>>([])

    /// - Returns: Whether the task is new, or was removed since.
    func note(_ task: TaskID) -> Bool {
        known.withLock { known in
            if known.count >= Self.limit { known = [] }
            return known.insert(task).inserted
        }
    }
}
