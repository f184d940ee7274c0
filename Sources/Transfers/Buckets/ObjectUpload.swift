import Base
import Buckets
package import Core
package import Files
import Formats
package import Store
import TransferEngine

/// So many large bodies are being received, or so many of one app, that there is no memory for another one.
package struct TooManyBodies: Error {}

/// The bodies being written into the bucket of contents, each of which has a part in memory, and the rows of uploads that
/// no task continues. One app has at most half of the places.
package final class BodyWriters: Sendable {
    /// With parts of 8 MiB, 512 MiB.
    static let most = 64

    /// The permit of one body, until its release.
    final class Permit: Sendable {
        private let writers: BodyWriters
        private let app: AppID
        private let row = Locked<Int64?>(nil)

        fileprivate init(of app: AppID, _ writers: BodyWriters) {
            self.writers = writers
            self.app = app
        }

        /// Has the row of the permit's upload renewed.
        func keep(row: Int64) {
            self.row.withLock { $0 = row }
            writers.keep(row: row)
        }

        /// Stops renewing the row, which then expires at its stored time.
        func letGo() {
            guard let row = row.withLock({ $0.take() }) else { return }
            writers.forget(row: row)
        }

        deinit {
            letGo()
            writers.state.withLock { $0.release(app) }
        }
    }

    private struct State {
        var count = 0
        var countOfApps: [AppID: Int] = [:]
        /// Rows of the uploads that have begun.
        var rows: Set<Int64> = []

        mutating func take(_ app: AppID) -> Bool {
            guard count < most, countOfApps[app, default: 0] < most / 2 else { return false }
            count += 1
            countOfApps[app, default: 0] += 1
            return true
        }

        mutating func release(_ app: AppID) {
            count -= 1
            countOfApps[app] = countOfApps[app].flatMap { $0 > 1 ? $0 - 1 : nil }
        }
    }

    private let state = Locked(State())

    /// - Throws: ``TooManyBodies``.
    func take(for app: AppID) throws(TooManyBodies) -> Permit {
        guard state.withLock({ $0.take(app) }) else { throw TooManyBodies() }
        return Permit(of: app, self)
    }

    /// Has the row of a copy of an unfinished content renewed, which has no permit: its memory is granted for each block.
    package func keep(row: Int64) { state.withLock { _ = $0.rows.insert(row) } }

    package func forget(row: Int64) { state.withLock { _ = $0.rows.remove(row) } }

    /// Rows of the uploads in flight.
    package var rows: [Int64] { state.withLock { Array($0.rows) } }
}

/// Writes bytes that arrive in order into a new object of the bucket of contents: in one request if they fit into a
/// part, otherwise in parts.
///
/// A row precedes the upload. The commit that names the object deletes the row; otherwise the object is removed.
package struct ObjectUpload {
    /// How long an object waits for tasks that name it.
    private static let stay = Duration.seconds(3600)

    /// In place of an app's number, where memory is shared: all bodies together.
    private static let share: Int64 = -1

    private let key: String
    private let app: AppID
    private let task: TaskID?
    private let contents: ContentsBucket
    private let store: Store
    private let disk: DiskQueue
    private let plan: PartPlan
    private let mark = RandomBytes.make(16).hexadecimal
    private var bytes: [UInt8] = []
    /// For a part that is longer than usual.
    private var grant: PartMemory.Grant?
    private var length: Int64 = 0
    private var row: Int64?
    private var upload: String?
    private var tags: [String] = []
    private var permit: BodyWriters.Permit?

    /// - Parameters:
    ///   - task: The task whose newest upload this is; nil if no task continues it.
    ///   - expected: The number of bytes, if it is known.
    package init(
        _ key: String, for app: AppID, of task: TaskID? = nil, expected: Int64?, _ contents: ContentsBucket,
        _ store: Store, _ disk: DiskQueue
    ) {
        self.key = key
        self.app = app
        self.task = task
        self.contents = contents
        self.store = store
        self.disk = disk
        plan = PartPlan(expected: expected)
    }

    private var client: BucketClient { contents.client }
    private var clock: Clock { contents.clock }

    /// - Throws: ``TooManyBodies``, ``BucketFault``, and the errors of the store.
    package mutating func write(_ piece: [UInt8]) async throws {
        if task == nil, permit == nil { permit = try contents.writers.take(for: app) }
        var rest = piece[...]
        while !rest.isEmpty {
            let partLength = Int(plan.length(ofPart: tags.count + 1))
            // A full part is sent when more bytes come: the last part may be the whole object.
            if bytes.count == partLength { try await putPart() }
            let count = min(rest.count, Int(plan.length(ofPart: tags.count + 1)) - bytes.count)
            if bytes.count + count > PartPlan.usual, grant == nil { try await waitForMemory() }
            bytes += rest.prefix(count)
            rest = rest.dropFirst(count)
        }
        length += Int64(piece.count)
    }

    private mutating func waitForMemory() async throws {
        let excess = plan.length(ofPart: tags.count + 1) - PartPlan.usual
        grant = await contents.partMemory.grant(excess, of: Self.share)
        if grant == nil { throw CancellationError() }
    }

    /// Completes the object from the written bytes.
    package mutating func finish() async throws -> StoredObject {
        if upload == nil {
            try await putWhole()
        } else {
            try await putPart()
            try await complete()
        }
        return StoredObject(key: key, length: length)
    }

    /// Has the written bytes removed.
    package func abandon() async {
        permit?.letGo()
        guard let row else { return }
        try? await store.files.abandonUpload(row: row, of: key, at: clock.now)
    }

    /// Keeps the written bytes for some time, though no commit names them yet.
    func stay() async throws {
        permit?.letGo()
        guard let row else { return }
        try await store.files.extendUploads(rows: [row], until: clock.now + Self.stay)
    }

    private mutating func note() async throws {
        let row = try await store.files.beginUpload(
            of: task ?? TaskID(0), bucket: Store.Files.contentsBucket, key: key, at: clock.now,
            until: task == nil ? clock.now + contents.bodyLease : nil)
        self.row = row
        permit?.keep(row: row)
    }

    private func sent(isWhole: Bool) async throws(SystemError) -> SentBytes {
        let bytes = bytes
        return try await disk.run(.long) { () throws(SystemError) in SentBytes(bytes, isWhole: isWhole) }
    }

    private mutating func putWhole() async throws {
        try await note()
        let content = try await sent(isWhole: true)
        let tag = try await client.put(key, content, ObjectTerms(mark: mark))
        if !content.isProven(by: tag) { try await check() }
    }

    private mutating func putPart() async throws {
        if upload == nil {
            try await note()
            let id = try await client.createUpload(key, ObjectTerms(mark: mark))
            guard let row,
                try await store.files.note(
                    upload: id, row: row, bucket: Store.Files.contentsBucket, key: key, at: clock.now)
            else { throw BucketFault.uploadIsUseless }
            upload = id
        }
        guard let upload else { return }
        tags.append(try await client.putPart(tags.count + 1, of: upload, key, try await sent(isWhole: false)))
        (bytes, grant) = ([], nil)
    }

    private func complete() async throws {
        guard let upload else { return }
        do throws(BucketFault) {
            try await client.completeUpload(upload, key, parts: tags)
        } catch {
            // The response may be lost, and no other node writes to this key.
            guard try await client.object(key)?.mark == mark else { throw error }
        }
        try await check()
    }

    private func check() async throws(BucketFault) {
        let found = try await client.object(key)?.length
        guard found == length else {
            throw .wrongObject("The object has \(found.map(String.init) ?? "no") bytes instead of \(length).")
        }
    }
}

extension ContentsBucket {
    private static let pieceLength: Int64 = 1 << 20

    /// Uploads a file to the bucket in its current state.
    ///
    /// - Parameters:
    ///   - task: The task of the content; nil for a body.
    ///   - take: Receives all bytes in passing.
    /// - Throws: ``ContentsFault``, ``TooManyBodies``, and the errors of the file and the store.
    package func put(
        _ file: OpenFile, as key: String, for app: AppID, of task: TaskID? = nil, _ store: Store, _ disk: DiskQueue,
        take: ([UInt8]) -> Void = { _ in }
    ) async throws -> StoredObject {
        let length = try file.size()
        var upload = ObjectUpload(key, for: app, of: task, expected: length, self, store, disk)
        do {
            var offset: Int64 = 0
            while offset < length {
                let bytes = try await disk.read(file, offset..<min(length, offset + Self.pieceLength))
                guard !bytes.isEmpty else { break }
                take(bytes)
                try await upload.write(bytes)
                offset += Int64(bytes.count)
            }
            let object = try await upload.finish()
            if task == nil { try await upload.stay() }
            // The row may have been deleted before the object existed.
            if let task, try await !store.tasks.isUnfinished(task) {
                try await store.files.noteLate(object: key, at: clock.now)
            }
            return object
        } catch {
            await upload.abandon()
            guard let fault = error as? BucketFault else { throw error }
            access.note(fault)
            throw ContentsFault(fault: fault)
        }
    }
}
