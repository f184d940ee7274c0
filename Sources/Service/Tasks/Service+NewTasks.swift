import Base
import Buckets
package import Core
import Files
import Formats
import Glibc
import Store
import TransferEngine
import Transfers

/// A task whose body is available. Destroying it removes the copy made for its body, unless the task was created.
package final class PreparedTask {
    let task: NewTask
    private var file: StagedFile?
    private let held: HeldBytes?

    fileprivate init(_ task: NewTask, _ file: consuming StagedFile?, _ held: HeldBytes?) {
        self.task = task
        self.file = file
        self.held = held
    }

    fileprivate func adoptFile() { file.take()?.adopt() }
}

/// Bytes of a file that are kept in memory until the commit of their task: a batch may have thousands of files.
private final class HeldBytes {
    private static let limit = 128 << 20

    private let count: Int
    private let total: Locked<Int>

    /// Nil if too many bytes are held already.
    init?(_ count: Int, of total: Locked<Int>) {
        let fits = total.withLock { total in
            guard total + count <= Self.limit else { return false }
            total += count
            return true
        }
        guard fits else { return nil }
        self.count = count
        self.total = total
    }

    deinit { total.withLock { $0 -= count } }
}

extension Service {
    /// Creates all tasks or none, in one commit. Bodies that are files are copied before.
    package func createTasks(
        _ orders: [TaskOrder], in session: SessionRecord, recording: Recording<[CreatedTask]>?
    ) async throws -> [CreatedTask] {
        var tasks: [PreparedTask] = []
        tasks.reserveCapacity(orders.count)
        for begin in stride(from: 0, to: orders.count, by: Self.filesAtOnce) {
            tasks += try await prepare(orders[begin..<min(orders.count, begin + Self.filesAtOnce)], in: session)
        }
        return try await createTasks(tasks, in: session, recording: recording)
    }

    /// Creates all tasks or none, in one commit. Refused tasks can be passed again without copying their bodies again.
    package func createTasks(
        _ tasks: [PreparedTask], in session: SessionRecord, recording: Recording<[CreatedTask]>?
    ) async throws -> [CreatedTask] {
        let app = try await store.apps.read(session.app)
        let (created, aftermath) = try await store.tasks.create(
            tasks.map(\.task), in: session.id, limit: app.limits.maximumUnfinishedTasks,
            storedLimit: app.limits.maximumStoredBytes, at: clock.now, recording: recording)
        for (item, task) in zip(created, tasks) where !item.isExisting { task.adoptFile() }
        outlet.handle(aftermath)
        tell(of: created, in: session, of: app)
        return created
    }

    /// Reports new tasks to the log and the streams.
    func tell(of created: [CreatedTask], in session: SessionRecord, of app: AppRecord) {
        for item in created where !item.isExisting {
            let specification = item.task.specification
            log.created(
                TaskName(
                    app: app.identifier, session: session.identifier, number: item.task.number,
                    clientTaskId: specification.clientTaskId), specification.kind)
        }
        publishCreation(of: created, in: session)
    }

    private func publishCreation(of created: [CreatedTask], in session: SessionRecord) {
        guard hub.hasStreams(session.id) else { return }
        for item in created where !item.isExisting && item.task.state != .completed {
            let (task, specification) = (item.task, item.task.specification)
            var payloads = [LiveEvent.Payload.didCreate(kind: specification.kind, url: specification.request.address)]
            let isHeld = task.phase == .queued && conditionVerdict(of: task, in: session).waitsForConnectivity
            if isHeld { payloads.append(.isWaitingForConnectivity) }
            for payload in payloads {
                hub.publish(LiveEvent(payload, of: task.id, task.number, specification, at: clock.now), to: session.id)
            }
        }
    }

    /// Prepares the task of an order: redeems its resume data and copies the body that it names, so that later changes
    /// of the source do not affect the task. A repetition of an earlier order needs neither its source nor room.
    ///
    /// - Throws: ``DomainError/sessionInvalidated``, ``ServiceError/insufficientStorage``, and errors of index 0.
    package func prepare(_ order: TaskOrder, in session: SessionRecord) async throws -> PreparedTask {
        try await prepare([order], in: session)[0]
    }

    private func prepare(_ orders: ArraySlice<TaskOrder>, in session: SessionRecord) async throws -> [PreparedTask] {
        var tasks: [NewTask] = []
        for index in orders.indices {
            tasks.append(try await newTask(of: orders[index], index: index, in: session))
        }
        let repeated = try await repeated(orders, tasks, in: session)
        if repeated.count < orders.count {
            try requireRoom()
            guard session.state == .active else { throw DomainError.sessionInvalidated }
        }
        let files = try await readFiles(of: orders, but: repeated, app: session.app)
        var prepared: [PreparedTask] = []
        for (index, var task) in zip(orders.indices, tasks) {
            if repeated.contains(index) {
                task.isRepetition = true
                prepared.append(PreparedTask(task, nil, nil))
            } else {
                prepared.append(
                    try await fetchBody(orders[index].body, index: index, file: files[index], for: task, in: session))
            }
        }
        return prepared
    }

    /// The indices of orders that have created their tasks already, as far as that decides what happens before the
    /// commit: whether a source is read, or whether the order is refused.
    private func repeated(
        _ orders: ArraySlice<TaskOrder>, _ tasks: [NewTask], in session: SessionRecord
    ) async throws -> Set<Int> {
        let takesTasks = session.state == .active && (try? requireRoom()) != nil
        let asked = zip(orders.indices, tasks).filter { index, task in
            task.specification.clientTaskId != nil && (!takesTasks || orders[index].body?.isCopied ?? false)
        }
        if asked.isEmpty { return [] }
        let found = try await store.tasks.repeated(asked.map(\.1), in: session.id)
        return Set(found.map { asked[$0].0 })
    }

    /// The task of an order, without a body that is copied.
    ///
    /// - Parameter index: The position of the order, for errors.
    func newTask(of order: TaskOrder, index: Int, in session: SessionRecord) async throws -> NewTask {
        var order = order
        var resumed: (progress: TaskProgress, nonce: [UInt8])?
        if let resumeData = order.resumeData {
            let redeemed = try await redeem(resumeData, app: session.app, index: index)
            order.specification.request = redeemed.request
            resumed = (redeemed.progress, redeemed.nonce)
        } else if let retried = order.retried {
            resumed = try await keptForRetry(of: retried)
        }
        let origin = try origin(of: &order, index: index)
        if let root = order.specification.destination?.root, settings.filesRoots[root] == nil {
            throw ServiceError.unknownRoot(index: index, name: root)
        }
        if let bucket = order.specification.destinationObject?.bucket, settings.buckets[bucket] == nil {
            throw ServiceError.unknownBucket(index: index, name: bucket, place: .destination)
        }
        var task = NewTask(specification: order.specification, origin: origin, isSuspended: order.isSuspended)
        try take(order.body, index: index, for: &task)
        task.progress = resumed?.progress
        task.resumeNonce = resumed?.nonce
        if order.resumeData != nil, let nonce = resumed?.nonce { task.fingerprint += nonce }
        return task
    }

    /// The origin of an order's request, which gets the URL of the object that it names.
    private func origin(of order: inout TaskOrder, index: Int) throws -> String {
        do {
            if let object = order.specification.request.object {
                guard let target = settings.target(of: object) else {
                    throw ServiceError.unknownBucket(index: index, name: object.bucket, place: .request)
                }
                order.url = target.url
                order.specification.request.url = target.url.text
            }
            return try (order.url ?? ParsedURL(order.specification.request.url)).origin
        } catch let error as BadURL {
            throw ServiceError.invalidURL(index: index, detail: error.explanation)
        }
    }

    /// Gives a task its body, unless the body is copied, and the identity of the body's source.
    ///
    /// The bytes of a file are no part of that identity: a repeated order creates no second task, although its file has
    /// changed or is gone.
    private func take(_ body: TaskOrder.Body?, index: Int, for task: inout NewTask) throws {
        switch body {
        case nil: break
        case .stored(let publicId):
            task.body = .stored(publicId)
            task.fingerprint = Array(publicId.utf8)
        case .bytes(let bytes, let mediaType):
            task.body = .bytes(bytes, mediaType: mediaType, publicId: Identifier.make(prefix: "body_"))
            let digest = Digest.of(bytes)
            task.fingerprint = digest + Array("/\(mediaType ?? "")".utf8)
            task.formerFingerprint = digest
        case .file(let root, let path): task.fingerprint = Array("file/\(root)/\(path)".utf8)
        case .object(let object):
            guard settings.buckets[object.bucket] != nil else {
                throw ServiceError.unknownBucket(index: index, name: object.bucket, place: .body)
            }
            task.specification.bodyObject = object
        case .content(let number): task.fingerprint = Array("task/\(number)".utf8)
        }
    }

    /// Copies the body of a new task, if it is a file or a content.
    private func fetchBody(
        _ body: TaskOrder.Body?, index: Int, file read: ReadFile?, for task: NewTask, in session: SessionRecord
    ) async throws -> PreparedTask {
        var task = task
        var file: StagedFile?
        var held: HeldBytes?
        switch body {
        case nil, .stored, .bytes, .object: break
        case .file(let root, let path):
            held = try hold(read, root: root, path: path, index: index, for: &task)
            if held == nil, let contents = settings.contents {
                try await ship(root: root, path: path, index: index, app: session.app, to: contents, for: &task)
            } else if held == nil {
                file = try await copy(root: root, path: path, index: index, app: session.app, for: &task)
            }
        case .content(let number):
            file = try await copyContent(of: number, in: session, index: index, for: &task)
        }
        return PreparedTask(task, file, held)
    }

    /// The result of reading a file that the database may store; nil for a file that is too large.
    private typealias ReadFile = Result<[UInt8]?, SystemError>

    /// Files that are read in one step.
    private static let filesAtOnce = 64

    /// Reads the orders' files that are small enough for the database, by the orders' indices.
    private func readFiles(
        of orders: ArraySlice<TaskOrder>, but repeated: Set<Int>, app: AppID
    ) async throws -> [Int: ReadFile] {
        let places = orders.indices.compactMap { index -> (index: Int, root: String, path: String)? in
            guard !repeated.contains(index), case .file(let name, let path) = orders[index].body,
                let root = settings.filesRoots[name]
            else { return nil }
            return (index, root, path)
        }
        guard !places.isEmpty else { return [:] }
        let read = try await folder.of(app.rawValue).disk.readBeneath(
            places.map { ($0.root, $0.path) }, upTo: ServiceSettings.inlineLimit)
        return Dictionary(zip(places.map(\.index), read)) { first, _ in first }
    }

    /// Makes the bytes of a file the task's body. Nil if the file is too large, or too many bytes are held.
    private func hold(
        _ file: ReadFile?, root name: String, path: String, index: Int, for task: inout NewTask
    ) throws -> HeldBytes? {
        let read: [UInt8]?
        do throws(SystemError) { read = try file?.get() ?? nil } catch { throw unreadable(error, index) }
        guard let bytes = read, let held = HeldBytes(bytes.count, of: heldBytes) else { return nil }
        task.body = .bytes(bytes, mediaType: nil, publicId: Identifier.make(prefix: "body_"))
        task.formerFingerprint = Self.formerFingerprint(name, path, Digest.of(bytes))
        return held
    }

    /// The fingerprint that earlier versions stored for a file: with the digest of its bytes.
    private static func formerFingerprint(_ root: String, _ path: String, _ digest: [UInt8]) -> [UInt8] {
        Array("\(root)/\(path)/".utf8) + digest
    }

    private func root(_ name: String, _ index: Int) throws -> String {
        if let root = settings.filesRoots[name] { return root }
        throw ServiceError.fileUnavailable(index: index, detail: "There is no root named \(name).")
    }

    /// The client's fault in a named file; the error itself if the machine is at fault.
    private func unreadable(_ error: SystemError, _ index: Int) -> any Error {
        error.isOfMachine
            ? error
            : ServiceError.fileUnavailable(
                index: index, detail: "The file cannot be read below its root: \(error.description).")
    }

    private func copy(
        root name: String, path: String, index: Int, app: AppID, for task: inout NewTask
    ) async throws -> StagedFile {
        let root = try root(name, index)
        let publicId = Identifier.make(prefix: "body_")
        let folder = folder.of(app.rawValue)
        let file = folder.stage(folder.body(publicId))
        do {
            let source = try await folder.disk.openBeneath(root: root, path: path)
            // The current state of the file; reflinked if the filesystem supports it.
            let (length, digests) = try await file.copy(source, [.sha256], within: room)
            let digest = digests[.sha256] ?? []
            task.body = .file(file.path, length: length, digest: digest.hexadecimal, publicId: publicId)
            task.formerFingerprint = Self.formerFingerprint(name, path, digest)
        } catch {
            if error.isFull { throw ServiceError.insufficientStorage }
            throw unreadable(error, index)
        }
        return file
    }

    /// Uploads a file to the bucket of contents. If no task is created, it is removed from there after a while.
    private func ship(
        root name: String, path: String, index: Int, app: AppID, to contents: ContentsBucket, for task: inout NewTask
    ) async throws {
        let root = try root(name, index)
        let (publicId, disk) = (Identifier.make(prefix: "body_"), folder.of(app.rawValue).disk)
        do {
            let source = try await disk.openBeneath(root: root, path: path)
            var digests = RunningDigests([.sha256])
            let object = try await contents.put(
                source, as: contents.newKey(ofBody: publicId), for: app, store, disk
            ) { digests.update($0) }
            let digest = digests.values[.sha256] ?? []
            task.body = .objects([object], digest: digest.hexadecimal, mediaType: nil, publicId: publicId)
            task.formerFingerprint = Self.formerFingerprint(name, path, digest)
        } catch let error as SystemError {
            throw unreadable(error, index)
        } catch let error as ContentsFault {
            let fault = error.fault
            log.warning("a body could not be stored", ("code", fault.code), ("message", fault.message))
            throw ServiceError.contentsUnavailable
        }
    }

    /// - Returns: The copy, if the content is not in the database.
    private func copyContent(
        of number: Int64, in session: SessionRecord, index: Int, for task: inout NewTask
    ) async throws -> StagedFile? {
        let (source, content): (TaskRecord, ContentLocation)
        do {
            source = try await store.tasks.read(number, in: session.id)
            content = try await store.files.content(of: source.id)
        } catch DomainError.notFound {
            throw ServiceError.contentUnavailable(index: index)
        }
        guard source.specification.kind == .download, let storage = content.storage else {
            throw ServiceError.contentUnavailable(index: index)
        }
        let publicId = Identifier.make(prefix: "body_")
        switch storage {
        case .bytes(let bytes):
            task.body = .bytes(bytes, mediaType: source.result?.response?.mimeType, publicId: publicId)
            return nil
        case .file(let path):
            let folder = folder.of(session.app.rawValue)
            let file = folder.stage(folder.body(publicId))
            do {
                try await file.copy(folder.open(path), within: room)
            } catch {
                if error.isFull { throw ServiceError.insufficientStorage }
                // Claimed or expired meanwhile.
                if error.errno == ENOENT { throw ServiceError.contentUnavailable(index: index) }
                throw error
            }
            task.body = .file(
                file.path, length: content.record.length, digest: content.record.digest.value, publicId: publicId)
            return file
        case .objects(let objects):
            // The task names the same object, which stays as long as any row names it.
            task.body = .objects(
                objects, digest: content.record.digest.value, mediaType: source.result?.response?.mimeType,
                publicId: publicId)
            return nil
        }
    }
}

extension TaskOrder.Body {
    /// Whether the bytes are copied from a source that may change before the task is created.
    fileprivate var isCopied: Bool {
        switch self {
        case .file, .content: true
        case .stored, .bytes, .object: false
        }
    }
}
