import Base
import Buckets
import Core
import Files
import Store
import TransferEngine
import Transfers

/// The unfinished contents in files of this node that have readers at other nodes.
final class ArrivalCopies: Sendable {
    private struct Entry {
        /// The bytes for which readers waited when any did last.
        var offsets: [Int64]
        /// When another node reported readers last (monotonic ms).
        var readAt: Int64
        var isBegun = false
        var copy: ArrivingCopy?
    }

    /// Milliseconds for which a copy without readers is kept, for clients that send one request after the other.
    private static let stay: Int64 = 30_000

    private let entries = Locked<[TaskID: Entry]>([:])
    let bell: Doorbell

    init(clock: Clock) { bell = Doorbell(clock: clock) }

    /// Notes the readers at other nodes.
    ///
    /// - Parameters:
    ///   - offsets: The bytes for which they wait, by task.
    ///   - hasFile: Whether this node can read the content from a file.
    /// - Returns: The tasks with other offsets than before.
    func note(_ offsets: [TaskID: [Int64]], at now: Int64, hasFile: (TaskID) -> Bool) -> [TaskID] {
        entries.withLock { entries in
            var changed: [TaskID] = []
            for (task, offsets) in offsets where entries[task] != nil || hasFile(task) {
                var entry = entries[task] ?? Entry(offsets: [0], readAt: now)
                entry.readAt = now
                if !offsets.isEmpty, offsets != entry.offsets {
                    entry.offsets = offsets
                    changed.append(task)
                }
                if !entry.isBegun { bell.ring() }
                entries[task] = entry
            }
            return changed
        }
    }

    /// The tasks whose copies are to begin, and have begun with this call.
    func begin() -> [TaskID] {
        entries.withLock { entries in
            let tasks = entries.filter { !$0.value.isBegun }.keys.sorted { $0.rawValue < $1.rawValue }
            for task in tasks { entries[task]?.isBegun = true }
            return tasks
        }
    }

    /// The bytes that readers need; `nil` if there are no more readers.
    func offsets(of task: TaskID, at now: Int64) -> [Int64]? {
        entries.withLock { entries in
            entries[task].flatMap { now - $0.readAt <= Self.stay ? $0.offsets : nil }
        }
    }

    func publish(_ copy: ArrivingCopy) { entries.withLock { $0[TaskID(copy.task)]?.copy = copy } }

    func end(_ task: TaskID) { entries.withLock { $0[task] = nil } }

    func isCopied(_ task: TaskID) -> Bool { entries.withLock { $0[task] != nil } }

    /// The copies that other nodes can read.
    var published: [ArrivingCopy] {
        entries.withLock { $0.values.compactMap(\.copy).sorted { $0.task < $1.task } }
    }
}

/// Copies of unfinished contents in files of this node, for readers at other nodes.
extension Service {
    /// Milliseconds after which a copy that waits for bytes checks whether it still has readers.
    private static let patience: Int64 = 5000
    /// The wait before a copy that failed, or could not begin, begins again.
    private static let pauseAfterFailure = Duration.seconds(5)
    /// Bytes that are read from a file at once.
    private static let pieceLength: Int64 = 1 << 20

    /// Copies the contents that are read at other nodes until it is cancelled.
    func copyArrivals() async {
        guard let contents = settings.contents, isShared else { return }
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                for task in arrivalCopies.begin() { group.addTask { await self.copy(task, contents) } }
                await arrivalCopies.bell.wait(until: nil)
            }
        }
    }

    private func copy(_ id: TaskID, _ contents: ContentsBucket) async {
        defer { arrivalCopies.end(id) }
        do {
            let task = try await store.tasks.read(id)
            let reader = arrivalReader(of: task)
            if !task.specification.movesContent, let content = reader.content(of: task),
                let place = try await reader.open(content)
            {
                let copy = ArrivingCopy(
                    of: id, version: content.version, total: content.total, key: contents.newKey(of: id),
                    reader.response)
                let source = Source(app: task.app.rawValue, reader: reader, place: place)
                return try await write(copy, of: source, contents)
            }
        } catch is ArrivalReader.Cut {
            // The readers are cut off too, or find the complete content.
            return
        } catch is CancellationError {
            return
        } catch DomainError.notFound {
            return
        } catch {
            log.warning(
                "an unfinished content cannot be copied for readers at other nodes", ("task", "\(id.rawValue)"),
                ("error", (error as? BucketFault)?.message ?? "\(error)"))
        }
        try? await Task.sleep(for: Self.pauseAfterFailure)
    }

    /// The file with a content.
    private struct Source {
        let app: Int64
        let reader: ArrivalReader
        let place: ArrivalReader.Place
    }

    /// Writes the blocks that readers need until none has readers. A row precedes the objects, so that they are removed
    /// even if this node dies.
    private func write(_ copy: ArrivingCopy, of source: Source, _ contents: ContentsBucket) async throws {
        let (files, bucket) = (store.files, Store.Files.contentsBucket)
        let row = try await files.beginUpload(
            of: TaskID(0), bucket: bucket, key: copy.key, at: clock.now, until: clock.now + contents.bodyLease)
        contents.writers.keep(row: row)
        var fault: (any Error)?
        do {
            _ = try await files.note(
                upload: Store.Files.partObjects, row: row, bucket: bucket, key: copy.key, at: clock.now)
            try await writeBlocks(copy, of: source, contents)
        } catch { fault = error }
        contents.writers.forget(row: row)
        // If this fails, the objects are removed at the end of the row's lease, which is not renewed any more.
        try? await files.abandonUpload(row: row, of: copy.key, at: clock.now)
        if let fault { throw fault }
    }

    private func writeBlocks(_ copy: ArrivingCopy, of source: Source, _ contents: ContentsBucket) async throws {
        var copy = copy
        let reader = source.reader
        while let offsets = arrivalCopies.offsets(of: TaskID(copy.task), at: clock.monotonic()) {
            let next = try copy.next(for: offsets) { (offset) throws(ArrivalReader.Cut) in
                try reader.end(from: offset, of: copy.version)
            }
            if let next {
                try await write(next, of: copy, source, contents)
                copy.add(next)
                arrivalCopies.publish(copy)
                continue
            }
            for start in copy.missing(for: offsets) { inbox.tell(.wanted(TaskID(copy.task), start)) }
            let mayEnd = await reader.wait(for: nil, until: clock.monotonic() + Self.patience)
            if mayEnd, try await reader.ending(of: copy.version) != nil { return }
        }
    }

    private func write(
        _ block: Range<Int64>, of copy: ArrivingCopy, _ source: Source, _ contents: ContentsBucket
    ) async throws {
        guard let grant = await contents.partMemory.grant(Int64(block.count), of: source.app) else {
            throw CancellationError()
        }
        defer { withExtendedLifetime(grant) {} }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(block.count)
        while bytes.count < block.count {
            let start = block.lowerBound + Int64(bytes.count)
            let end = min(start + Self.pieceLength, block.upperBound)
            let piece = try await source.reader.read(source.place, start..<end, of: copy.version)
            // The task has left the file.
            guard !piece.isEmpty else { throw ArrivalReader.Cut() }
            bytes += piece
        }
        let content = try await folder.of(source.app).disk.run(.long) { [bytes] () throws(SystemError) in
            SentBytes(bytes, isWhole: true)
        }
        try await contents.client.putBlock(copy.key(of: block), content, ObjectTerms(mark: copy.key))
    }
}
