import Base
import Buckets
import Core
import Files
import Notation
import Store
import TransferEngine

/// Writes the content of one request into a bucket while it comes, part after part.
///
/// Parts may arrive in the bucket in any order. What counts as stored is what has no gap before it.
final class ObjectWriter: Sendable {
    /// What the scheduler hears, in order; `finished` is the last word.
    enum News: Sendable {
        /// The bucket has more of the content.
        case stored(MultipartUpload)
        /// Nothing more can be written.
        case failed(BucketFault)
        case finished(Finished)
    }

    /// How it ended.
    struct Finished: Sendable {
        var fault: BucketFault?
        /// Of the whole content, where all of it came.
        var digests: [DigestAlgorithm: [UInt8]] = [:]
        /// The only part of a content that needs no others.
        var single: SentBytes?
        /// With all parts of a content that has more.
        var upload: MultipartUpload?
    }

    private enum Command: Sendable {
        case part(ContentPart)
        /// No part follows but this one.
        case finish(last: ContentPart?)
        case arrived(number: Int, tag: String)
        case lost(BucketFault)
    }

    private let task: TaskID
    private let destination: ObjectDestination
    private let client: BucketClient
    private let store: Store
    private let disk: DiskQueue
    private let clock: Clock
    private let mediaType: String?
    private let inbox: Inbox<Command>
    private let tell: @Sendable (News) -> Void

    /// - Parameters:
    ///   - mediaType: Of the content, as its origin said.
    ///   - tell: May be called from anywhere. Must not wait.
    init(
        of task: TaskID, to destination: ObjectDestination, _ client: BucketClient, mediaType: String?, store: Store,
        disk: DiskQueue, clock: Clock, tell: @escaping @Sendable (News) -> Void
    ) {
        self.task = task
        self.destination = destination
        self.client = client
        self.mediaType = mediaType
        self.store = store
        self.disk = disk
        self.clock = clock
        self.tell = tell
        inbox = Inbox(clock: clock)
    }

    /// Takes the next part.
    func write(_ part: ContentPart) { inbox.tell(.part(part)) }

    /// Ends when all that it was given is written.
    func finish(last: ContentPart?) { inbox.tell(.finish(last: last)) }

    /// What is under way.
    private struct State {
        var upload: MultipartUpload?
        var digests: [PausableDigest]
        var underWay = 0
        /// Parts that arrived before one that comes before them, and digests of what is below each part's end.
        var tags: [Int: String] = [:]
        var states: [Int: [MultipartUpload.DigestState]] = [:]
        var last: Int?
        var isClosing = false
        var single: SentBytes?
        var fault: BucketFault?

        var isOver: Bool { underWay == 0 && isClosing }
    }

    /// Runs until ``finish(last:)`` was called and all is done.
    ///
    /// - Parameters:
    ///   - upload: To be gone on with; nil for a new one.
    ///   - algorithms: Of the digests wanted.
    func run(goingOnWith upload: MultipartUpload?, _ algorithms: Set<DigestAlgorithm>) async {
        var state = State(upload: upload, digests: algorithms.map { PausableDigest($0) })
        for known in upload?.digests ?? [] {
            guard let bytes = [UInt8](hexadecimal: known.state),
                let digest = PausableDigest(known.algorithm, state: bytes),
                let index = state.digests.firstIndex(where: { $0.algorithm == known.algorithm })
            else { continue }
            state.digests[index] = digest
        }
        await withDiscardingTaskGroup { group in
            while !state.isOver {
                for command in inbox.take() {
                    switch command {
                    case .part(let part): await write(part, &state, &group)
                    case .finish(let last):
                        state.isClosing = true
                        if let last { await write(last, isLast: true, &state, &group) }
                    case .arrived(let number, let tag): arrived(number, tag, &state)
                    case .lost(let fault):
                        state.underWay -= 1
                        fail(fault, &state)
                    }
                }
                if state.isOver { break }
                // Once the service shuts down nobody waits for the end.
                guard !Task.isCancelled else { return }
                _ = await inbox.bell.wait(until: clock.monotonic() + 60_000)
            }
        }
        var finished = Finished(fault: state.fault, single: state.single, upload: state.upload)
        finished.digests = Dictionary(state.digests.map { ($0.algorithm, $0.value) }) { first, _ in first }
        tell(.finished(finished))
    }

    private func write(
        _ part: ContentPart, isLast: Bool = false, _ state: inout State, _ group: inout DiscardingTaskGroup
    ) async {
        guard state.fault == nil else { return }
        do {
            async let sent = sentBytes(of: part, isWhole: isLast && part.number == 1)
            let digests = try await digest(part, state.digests)
            let content = try await sent
            state.digests = digests
            if isLast, part.number == 1 {
                state.single = content
                return
            }
            let upload = try await open(part, &state)
            // Where the last part ends no digest can be put down: nobody goes on behind it.
            if isLast { state.last = part.number } else { state.states[part.number] = Self.states(of: digests) }
            state.underWay += 1
            let (client, inbox, key) = (client, inbox, destination.key)
            group.addTask {
                do throws(BucketFault) {
                    let tag = try await client.putPart(part.number, of: upload, key, content)
                    inbox.tell(.arrived(number: part.number, tag: tag))
                } catch {
                    inbox.tell(.lost(error))
                }
            }
        } catch let fault as BucketFault {
            fail(fault, &state)
        } catch {
            fail(.unexpected("The upload could not be noted: \(error)"), &state)
        }
    }

    /// Goes on with the digests of the content, on a disk thread.
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

    /// Begins the upload with the first part.
    ///
    /// - Returns: What the store calls it.
    private func open(_ part: ContentPart, _ state: inout State) async throws -> String {
        if let upload = state.upload { return upload.id }
        let key = destination.key
        if !destination.replace, try await client.object(key) != nil {
            throw BucketFault.exists(key)
        }
        let mark = RandomBytes.make(16).hexadecimal
        let row = try await store.beginUpload(of: task, bucket: destination.bucket, key: key, at: clock.now)
        let terms = ObjectTerms(destination, mark: mark, mediaType: mediaType)
        let id = try await client.createUpload(key, terms)
        try await store.note(upload: id, row: row)
        state.upload = MultipartUpload {
            $0.row = row
            $0.id = id
            $0.mark = mark
            $0.expected = part.plan.expected
        }
        return id
    }

    private func arrived(_ number: Int, _ tag: String, _ state: inout State) {
        state.underWay -= 1
        state.tags[number] = tag
        guard var upload = state.upload else { return }
        let before = upload.parts.count
        while let tag = state.tags.removeValue(forKey: upload.parts.count + 1) {
            upload.parts.append(tag)
            upload.digests = state.states.removeValue(forKey: upload.parts.count) ?? []
        }
        guard upload.parts.count > before else { return }
        state.upload = upload
        if upload.parts.count != state.last { tell(.stored(upload)) }
    }

    private func fail(_ fault: BucketFault, _ state: inout State) {
        guard state.fault == nil else { return }
        state.fault = fault
        tell(.failed(fault))
    }
}

extension BucketFault {
    /// There is an object that may not be replaced.
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
