import Base
package import Core
import Files
package import Formats
import Glibc
import Store
import TransferEngine
import Transfers

/// The parameters that a client sends with the bytes of a body.
package struct BodyOrder: Sendable {
    package var mediaType: String?
    /// The length of the whole body, if it was announced.
    package var expectedLength: Int64?
    /// The digests of the whole body that the client sent. They are checked when the body is complete.
    package var digests: [DigestAlgorithm: [UInt8]]
    /// Whether these bytes end the body.
    package var isComplete: Bool

    package init(
        mediaType: String? = nil, expectedLength: Int64? = nil, digests: [DigestAlgorithm: [UInt8]] = [:],
        isComplete: Bool = true
    ) {
        self.mediaType = mediaType
        self.expectedLength = expectedLength
        self.digests = digests
        self.isComplete = isComplete
    }

    var algorithms: Set<DigestAlgorithm> { Set(digests.keys).union([.sha256]) }

    /// The digests of the whole, which the completion of a draft checks.
    var expected: [ContentDigest] {
        digests.map { ContentDigest(algorithm: $0.key, value: $0.value.hexadecimal) }
            .sorted { $0.algorithm.rawValue < $1.algorithm.rawValue }
    }

    /// The digests to store with a draft that is a file.
    var draftDigest: DraftDigest? {
        isComplete || digests.isEmpty ? nil : DraftDigest { $0.expected = expected }
    }

    /// The order with the digests that were sent at the creation of the draft.
    func completing(_ draft: BodyRecord) -> BodyOrder {
        var order = self
        for expected in draft.draftDigest?.expected ?? [] {
            let digest = [UInt8](hexadecimal: expected.value) ?? []
            // No bytes match two different digests, nor an empty one.
            order.digests.merge([expected.algorithm: digest]) { $0 == $1 ? $0 : [] }
        }
        return order
    }
}

extension Service {
    /// Receives a body in constant memory and stores it.
    ///
    /// - Parameter next: The next bytes, nil at the end; throws if the client disconnects.
    /// - Throws: ``ServiceError/digestMismatch``, ``ServiceError/bodyTooLong(limit:)``; nothing is stored then.
    package func receiveBody(
        _ order: BodyOrder, app: AppID, recording: Recording<BodyRecord>?,
        next: () async throws -> [UInt8]?
    ) async throws -> BodyRecord {
        try requireRoom()
        if let contents = settings.contents {
            return try await receiveBody(order, app: app, recording: recording, into: contents, next)
        }
        let publicId = Identifier.make(prefix: "body_")
        let limits = try await store.apps.read(app).limits
        let folder = folder.of(app.rawValue)
        let partial = folder.stage(folder.partial(publicId))
        let digests = Self.digests(for: order)
        let received = try await receive(into: partial, order, digests, next)
        let found = Dictionary(uniqueKeysWithValues: digests.map { ($0.algorithm, $0.finish()) })
        try check(order, found)
        var file: StagedFile?
        let storage: BodyLocation.Storage
        if order.isComplete, let bytes = received.bytes {
            storage = .bytes(bytes)
        } else {
            if let bytes = received.bytes { try await partial.write(bytes) }
            try await partial.sync()
            file = try await partial.moved(to: folder.body(publicId))
            storage = .file(folder.body(publicId))
        }
        let body = try await store.files.addBody(
            publicId, app: app, storage: storage, length: received.length, digest: found[.sha256]?.hexadecimal,
            mediaType: order.mediaType, isComplete: order.isComplete,
            expectedLength: order.isComplete ? nil : order.expectedLength, draftDigest: order.draftDigest,
            limit: limits.maximumStoredBytes, at: clock.now, recording: recording)
        file.take()?.adopt()
        return body
    }

    /// Appends to a draft, and completes it with its last bytes.
    ///
    /// Bytes that arrived before the client disconnected count. Bytes with another digest than the sent one do not.
    ///
    /// - Throws: ``ServiceError/uploadOffsetMismatch(offset:)`` if the client sends another offset, or another append
    ///   is in flight; ``ServiceError/digestMismatch``, after which a draft that was complete is deleted.
    package func appendBody(
        _ publicId: String, app: AppID, at offset: Int64, _ order: BodyOrder, next: () async throws -> [UInt8]?
    ) async throws -> BodyRecord {
        try requireRoom()
        let isFirst = appending.withLock { $0.insert(publicId).inserted }
        defer { if isFirst { _ = appending.withLock { $0.remove(publicId) } } }
        // Read only now: an append that has just ended may have completed the draft.
        let draft = try await store.files.body(publicId, app: app)
        guard !draft.isComplete else { throw DomainError.notFound }
        guard isFirst, draft.length == offset else { throw ServiceError.uploadOffsetMismatch(offset: draft.length) }
        let order = order.completing(draft)
        if case .objects? = draft.storage {
            guard let contents = settings.contents else { throw ServiceError.contentsUnavailable }
            return try await appendBody(draft, order, into: contents, next)
        }
        guard case .file(let relative)? = draft.storage else { throw DomainError.notFound }
        let file = try await folder.open(relative, O_WRONLY)
        // Bytes of an append that was never stored may follow.
        try await folder.disk.run { () throws(SystemError) in try file.truncate(to: offset) }
        do {
            return try await append(to: draft, in: relative, file, order, next)
        } catch {
            // Bytes that no commit refers to do not count. The commit may have been stored although it failed: without
            // an answer of the store all bytes stay until the next append.
            if let stored = try? await store.files.body(publicId, app: app).length {
                try? await folder.disk.run { () throws(SystemError) in try file.truncate(to: stored) }
            }
            throw error
        }
    }

    private func append(
        to draft: BodyRecord, in relative: String, _ file: OpenFile, _ order: BodyOrder,
        _ next: () async throws -> [UInt8]?
    ) async throws -> BodyRecord {
        let (publicId, app) = (draft.publicId, draft.app)
        let limits = try await store.apps.read(app).limits
        let (length, failure) = await append(to: file, at: draft.length, order, next)
        if let failure, failure as? ServiceError == .digestMismatch { throw failure }
        try await folder.disk.run { () throws(SystemError) in try file.sync() }
        var digest: String?
        if failure == nil, order.isComplete {
            let found = try await folder.of(app.rawValue).digest(relative, Array(order.algorithms))
            do {
                try check(order, found)
            } catch {
                try await deleteBody(publicId, app: app)
                throw error
            }
            digest = (found[.sha256] ?? []).hexadecimal
        }
        let body = try await store.files.advanceBody(
            publicId, app: app, from: draft.length, to: length, digest: digest, limit: limits.maximumStoredBytes,
            at: clock.now)
        if let failure { throw failure }
        return body
    }

    /// Writes the bytes until they end or the client disconnects.
    private func append(
        to file: OpenFile, at offset: Int64, _ order: BodyOrder, _ next: () async throws -> [UInt8]?
    ) async -> (length: Int64, failure: (any Error)?) {
        let limit = min(settings.maximumBodyLength, order.expectedLength ?? .max)
        var length = offset
        do {
            while let bytes = try await next() {
                guard length + Int64(bytes.count) <= limit else { throw ServiceError.bodyTooLong(limit: limit) }
                try await write(bytes, to: file, at: length)
                length += Int64(bytes.count)
            }
            return (length, nil)
        } catch {
            return (length, error)
        }
    }

    package func body(_ publicId: String, app: AppID) async throws -> BodyRecord {
        try await store.files.body(publicId, app: app)
    }

    package func bodies(
        of app: AppID, isComplete: Bool?, isInUse: Bool?, _ span: ListSpan, after cursor: Int64, limit: Int
    ) async throws -> [(cursor: Int64, body: BodyRecord)] {
        try await store.files.bodies(
            of: app, isComplete: isComplete, isInUse: isInUse, span, after: cursor, limit: limit)
    }

    package func deleteBody(_ publicId: String, app: AppID) async throws {
        outlet.handle(try await store.files.deleteBody(publicId, app: app, at: clock.now))
    }

    private static func digests(for order: BodyOrder) -> [Digest] {
        guard order.isComplete else { return [] }
        return order.algorithms.map { Digest($0) }
    }

    func check(_ order: BodyOrder, _ found: [DigestAlgorithm: [UInt8]]) throws {
        guard order.isComplete else { return }
        for (algorithm, expected) in order.digests where found[algorithm] != expected {
            throw ServiceError.digestMismatch
        }
    }

    func check(announced order: BodyOrder) throws { try check(length: order.expectedLength ?? 0) }

    func check(length: Int64) throws {
        let limit = settings.maximumBodyLength
        if length > limit { throw ServiceError.bodyTooLong(limit: limit) }
    }

    /// Reads to the end: into memory while the body is short, into the file once it is longer.
    private func receive(
        into partial: borrowing StagedFile, _ order: BodyOrder, _ digests: [Digest], _ next: () async throws -> [UInt8]?
    ) async throws -> (length: Int64, bytes: [UInt8]?) {
        try check(announced: order)
        if let expected = order.expectedLength, !room.fits(expected) { throw ServiceError.insufficientStorage }
        var memory: [UInt8] = []
        var file: OpenFile?
        var length: Int64 = 0
        while let bytes = try await next() {
            try check(length: length + Int64(bytes.count))
            for digest in digests { digest.update(bytes) }
            if file == nil, memory.count + bytes.count > ServiceSettings.inlineLimit {
                file = try await partial.create()
                if let file, !memory.isEmpty { try await write(memory, to: file, at: 0) }
                memory = []
            }
            if let file {
                try await write(bytes, to: file, at: length)
            } else {
                memory += bytes
            }
            length += Int64(bytes.count)
        }
        return (length, file == nil ? memory : nil)
    }

    /// Writes bytes if they leave the disk's floor free.
    ///
    /// - Throws: ``ServiceError/insufficientStorage``; nothing is written then.
    private func write(_ bytes: [UInt8], to file: OpenFile, at offset: Int64) async throws {
        guard room.take(bytes.count) else { throw ServiceError.insufficientStorage }
        try await folder.disk.write(bytes, to: file, at: offset)
    }
}
