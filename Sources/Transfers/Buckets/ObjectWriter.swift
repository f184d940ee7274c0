import Base
import Buckets
import Core
import Files
import Formats
import Store
import TransferEngine

/// Writes the content of one request into a bucket while it arrives, one part after the other.
final class ObjectWriter: Sendable {
    /// Reports to the scheduler, in order; `finished` is the last one.
    enum News: Sendable {
        /// The bucket has more of the content.
        case stored(MultipartUpload)
        /// Nothing more can be written.
        case failed(BucketFault)
        case finished(Finished)
    }

    /// The outcome of the writing.
    struct Finished: Sendable {
        var fault: BucketFault?
        /// Of the whole content, if all of it came.
        var digests: [DigestAlgorithm: [UInt8]] = [:]
        /// The only part of a content that fits into one.
        var single: SentBytes?
        /// With all parts of a content that has more than one.
        var upload: MultipartUpload?
    }

    private enum Input: Sendable {
        case part(ContentPart)
        /// Readers want the bytes.
        case expose(TaskResponse)
        /// No part follows except this one.
        case finish(last: ContentPart?)
    }

    private let task: TaskID
    let destination: ObjectDestination
    private let client: BucketClient
    private let store: Store
    private let disk: DiskQueue
    private let clock: Clock
    private let log: Log
    private let mediaType: String?
    private let inbox: Inbox<Input>
    private let tell: @Sendable (News) -> Void

    /// - Parameters:
    ///   - mediaType: Of the content, as its origin reported it.
    ///   - tell: May be called on any thread. Must not block.
    init(
        of task: TaskID, to destination: ObjectDestination, _ client: BucketClient, mediaType: String?, store: Store,
        disk: DiskQueue, clock: Clock, log: Log, tell: @escaping @Sendable (News) -> Void
    ) {
        self.task = task
        self.destination = destination
        self.client = client
        self.mediaType = mediaType
        self.store = store
        self.disk = disk
        self.clock = clock
        self.log = log
        self.tell = tell
        inbox = Inbox(clock: clock)
    }

    /// Accepts the next part.
    func write(_ part: ContentPart) { inbox.tell(.part(part)) }

    /// Lets readers read the parts before the content is complete.
    func expose(_ response: TaskResponse) { inbox.tell(.expose(response)) }

    /// Ends the writing once all given parts are written.
    func finish(last: ContentPart?) { inbox.tell(.finish(last: last)) }

    /// Runs until ``finish(last:)`` was called and all parts are written.
    ///
    /// - Parameters:
    ///   - upload: The upload to continue; nil for a new one.
    ///   - algorithms: Of the wanted digests.
    func run(goingOnWith upload: MultipartUpload?, _ algorithms: Set<DigestAlgorithm>) async {
        var state = State(upload, algorithms)
        while true {
            for input in inbox.take() {
                switch input {
                case .part(let part): await write(part, &state)
                case .expose(let response): await expose(response, &state)
                case .finish(let last):
                    if let last { await write(last, isLast: true, &state) }
                    guard !state.isAbandoned else { return }
                    return tell(.finished(state.finished))
                }
            }
            // A shutdown does not wait for the end.
            guard !Task.isCancelled else { return }
            _ = await inbox.bell.wait(until: clock.monotonic() + 60_000)
        }
    }

    /// The state of the writing.
    private struct State {
        var digests: [PausableDigest]
        var finished: Finished
        /// Set once readers want the bytes.
        var exposed: TaskResponse?
        /// Whether a shutdown has ended the wait for the store.
        var isAbandoned = false

        var isExposed: Bool { exposed != nil || finished.upload?.readable != nil }

        init(_ upload: MultipartUpload?, _ algorithms: Set<DigestAlgorithm>) {
            let known = upload?.digests ?? []
            digests = algorithms.map { algorithm in
                let state = known.first { $0.algorithm == algorithm }.flatMap { [UInt8](hexadecimal: $0.state) }
                return state.flatMap { PausableDigest(algorithm, state: $0) } ?? PausableDigest(algorithm)
            }
            finished = Finished(upload: upload)
            note(digests)
        }

        /// Sets the digests of all bytes so far.
        mutating func note(_ digests: [PausableDigest]) {
            self.digests = digests
            finished.digests = Dictionary(digests.map { ($0.algorithm, $0.value) }) { first, _ in first }
        }
    }

    private func write(_ part: ContentPart, isLast: Bool = false, _ state: inout State) async {
        guard state.finished.fault == nil, !state.isAbandoned else { return }
        do {
            let isSingle = isLast && part.number == 1
            async let sent = sentBytes(of: part, isWhole: isSingle || state.isExposed)
            state.note(try await digest(part, state.digests))
            let content = try await sent
            if isSingle {
                state.finished.single = content
                return
            }
            var upload: MultipartUpload
            if let known = state.finished.upload { upload = known } else { upload = try await begin(part.plan, state) }
            upload.parts.append(try await put(content, as: part.number, of: &upload, state))
            upload.digests = Self.states(of: state.digests)
            state.finished.upload = upload
            // The digest cannot be exported after the last part, from which no transfer resumes.
            if !isLast { tell(.stored(upload)) }
        } catch {
            fail(error, &state)
        }
    }

    private func fail(_ error: any Error, _ state: inout State) {
        guard !(error is CancellationError) else {
            state.isAbandoned = true
            return
        }
        // The words of the store are for the operator alone.
        if !(error is BucketFault) { log.warning("an upload could not be recorded", ("error", "\(error)")) }
        let fault = error as? BucketFault ?? .unexpected("The upload could not be recorded.")
        state.finished.fault = fault
        tell(.failed(fault))
    }

    /// Writes a part, as an object if readers want the bytes.
    ///
    /// - Returns: The entity tag of the part; empty for an object.
    private func put(
        _ content: SentBytes, as number: Int, of upload: inout MultipartUpload, _ state: State
    ) async throws(BucketFault) -> String {
        if upload.readable == nil {
            do throws(BucketFault) {
                return try await client.putPart(number, of: upload.id, destination.key, content)
            } catch {
                // A process that joined the parts may have ended before the commit.
                guard destination.isContent, error.remedy == .anew, try await isJoined(upload) else { throw error }
                upload.expose(state.exposed)
            }
        }
        let key = MultipartUpload.key(ofPart: number, of: destination.key)
        try await client.putBlock(key, content, ObjectTerms(mark: upload.mark))
        return ""
    }

    /// Updates the digests of the content, on a disk thread.
    private func digest(
        _ part: ContentPart, _ digests: [PausableDigest]
    ) async throws(SystemError) -> [PausableDigest] {
        try await disk.run(.long) { () throws(SystemError) in
            var digests = digests
            for index in digests.indices { part.bytes.withUnsafeBytes { digests[index].update($0) } }
            return digests
        }
    }

    /// Prepares the request that sends a part, on another disk thread.
    private func sentBytes(of part: ContentPart, isWhole: Bool) async throws(SystemError) -> SentBytes {
        try await disk.run(.long) { () throws(SystemError) in SentBytes(part.bytes, isWhole: isWhole) }
    }

    private static func states(of digests: [PausableDigest]) -> [MultipartUpload.DigestState] {
        digests.compactMap { digest in
            digest.state.map { MultipartUpload.DigestState(digest.algorithm, state: $0.hexadecimal) }
        }
    }

    /// Begins the upload, or notes that there will be objects instead.
    private func begin(_ plan: PartPlan, _ state: State) async throws -> MultipartUpload {
        let key = destination.key
        if !destination.replace, try await client.object(key) != nil { throw BucketFault.exists(key) }
        var upload = MultipartUpload()
        // A row whose commit was reported as failed is useless.
        upload.row = try await Store.insist {
            try await store.files.beginUpload(of: task, bucket: destination.bucket, key: key, at: clock.now)
        }
        upload.key = destination.isContent ? key : nil
        upload.mark = Self.newMark()
        upload.expected = plan.expected
        if destination.isContent, state.isExposed {
            try await note(Store.Files.partObjects, of: upload)
            upload.expose(state.exposed)
        } else {
            upload.id = try await client.createUpload(
                key, ObjectTerms(destination, mark: upload.mark, mediaType: mediaType))
            try await note(upload.id, of: upload)
        }
        return upload
    }

    static func newMark() -> String { RandomBytes.make(16).hexadecimal }

    private func note(_ id: String, of upload: MultipartUpload) async throws {
        let isNeeded = try await Store.insist {
            try await store.files.note(
                upload: id, row: upload.row, bucket: destination.bucket, key: destination.key, at: clock.now)
        }
        guard isNeeded else { throw BucketFault.uploadIsUseless }
    }

    // MARK: Readers

    /// Lets readers read the parts, those that are in the bucket and all that follow.
    private func expose(_ response: TaskResponse, _ state: inout State) async {
        guard destination.isContent, state.finished.fault == nil, !state.isAbandoned else { return }
        state.exposed = response
        guard var upload = state.finished.upload, upload.readable == nil else { return }
        do {
            try await note(Store.Files.partObjects, of: upload)
            if !upload.parts.isEmpty { try await join(upload) }
            upload.expose(response)
            state.finished.upload = upload
            tell(.stored(upload))
        } catch {
            fail(error, &state)
        }
    }

    /// Has the store join the uploaded parts to an object.
    private func join(_ upload: MultipartUpload) async throws(BucketFault) {
        var fault: BucketFault?
        do throws(BucketFault) {
            try await client.completeUpload(upload.id, destination.key, parts: upload.parts)
        } catch { fault = error }
        // The response may be lost.
        guard try await isJoined(upload) else {
            throw fault ?? .wrongObject("The object of the first parts is not complete.")
        }
    }

    private func isJoined(_ upload: MultipartUpload) async throws(BucketFault) -> Bool {
        let object = try await client.object(destination.key)
        return object?.mark == upload.mark && object?.length == upload.length
    }
}

extension MultipartUpload {
    /// Notes that the parts are objects.
    fileprivate mutating func expose(_ response: TaskResponse?) {
        var readable = Readable()
        (readable.joined, readable.response) = (parts.count, response)
        self.readable = readable
    }
}

extension BucketFault {
    /// The task was completed while its upload began. The janitor aborts the upload.
    static var uploadIsUseless: BucketFault { .unexpected("The upload is no longer needed.") }

    /// An object exists that may not be replaced.
    static func exists(_ key: String) -> BucketFault {
        .refused(S3Error(status: 412, code: "PreconditionFailed", message: "There is an object \(key) already."))
    }
}

extension ObjectTerms {
    init(_ destination: ObjectDestination, mark: String, mediaType: String?) {
        self.init(
            mark: mark, mediaType: mediaType, storageClass: destination.storageClass,
            metadata: destination.metadata)
    }
}
