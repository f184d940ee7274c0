import Base
package import Core
package import Files
import Glibc
import Store
import Transfers

/// One reader of a download that may be unfinished.
///
/// The bytes come from the partial file of the task, or of the task whose transfer it waits for. The reader's descriptor
/// still has the file after it got its final place, passed to another task or was removed. So the reader needs this node
/// to have the file.
///
/// A content that is written into the bucket of contents is read from objects, at any node, and so is a copy of a file at
/// another node (``ArrivalCopies``). These have the same bytes as long as they exist, and the content's object has them
/// afterwards.
package final class ArrivalReader: Sendable {
    /// The place of a reader's bytes.
    package enum Place: Sendable {
        case file(OpenFile)
        case objects
    }

    /// The following bytes are not of the reader's version: another one has begun, or the task has not succeeded.
    package struct Cut: Error {
        package init() {}
    }

    /// A task whose transfer writes the reader's file.
    private struct Source: Sendable {
        let task: TaskID
        let arrival: Arrival
        let watch: Broadcast<TaskID>.Watch
    }

    private struct State: Sendable {
        /// The tasks that have written the open file, the present one last. Never empty.
        var sources: [Source]
        /// Whether the reader's task has succeeded with the bytes.
        var isComplete = false
        /// The objects of the complete content.
        var whole: [StoredObject]?
        /// Whether the objects of an unfinished content were removed.
        var isLost = false

        var source: Source { sources[sources.count - 1] }
    }

    /// Milliseconds after which a reader checks the task, because another node may have begun another version.
    private static let period: Int64 = 15_000

    private let service: Service
    private let task: TaskID
    private let folder: DataFolder
    private let watch: Broadcast<TaskID>.Watch
    private let state: Locked<State>

    fileprivate init(_ service: Service, _ task: TaskRecord) {
        self.service = service
        self.task = task.id
        folder = service.folder.of(task.app.rawValue)
        watch = service.outlet.arrivals.changes.watch(task.id)
        let own = Source(task: task.id, arrival: service.outlet.arrivals.arrival(of: task.id), watch: watch)
        state = Locked(State(sources: [own]))
    }

    private var source: Source { state.withLock { $0.source } }

    /// Turns to the task whose transfer brings the bytes: the reader's own, or the one that it waits for.
    private func turn(to task: TaskRecord) {
        let id = task.leader?.task ?? task.id
        guard id != source.task else { return }
        let watch = id == task.id ? watch : service.outlet.arrivals.changes.watch(id, waking: watch)
        let next = Source(task: id, arrival: service.outlet.arrivals.arrival(of: id), watch: watch)
        state.withLock { $0.sources.append(next) }
    }

    /// The readable bytes; `nil` if there are none before the task is completed.
    ///
    /// - Parameter task: The present record of the reader's task.
    package func content(of task: TaskRecord) -> ArrivingContent? {
        turn(to: task)
        let begun = task.progress?.version ?? 0
        // Another node may have begun another version. Bytes of another task need a number that this one has not used.
        return source.arrival.content.flatMap {
            $0.version > begun || $0.version == begun && source.task == self.task ? $0 : nil
        }
    }

    /// The response that the bytes belong to, if this process has received its head.
    package var response: TaskResponse? { source.arrival.response }

    /// Ends the current wait.
    package func wake() { watch.wake() }

    /// Waits for more bytes, or for the end of the task, at the latest until the monotonic `deadline` (ms).
    ///
    /// - Parameter offset: The offset of the first byte that the reader needs: in a segmented download it is fetched next.
    /// - Returns: Whether the task may have ended, or may get its bytes from another task.
    package func wait(for offset: Int64?, until deadline: Int64 = .max) async -> Bool {
        let source = source
        service.inbox.tell(.wanted(source.task, offset))
        if let offset { source.arrival.beginWait(for: offset) }
        defer { if let offset { source.arrival.endWait(for: offset) } }
        let hasNews = await watch.wait(until: min(deadline, service.clock.monotonic() + Self.period))
        return !hasNews || source.arrival.isLeft || source.arrival.isFollowing
    }

    /// The place of a content's bytes; `nil` for a partial file that is not here.
    package func open(_ content: ArrivingContent) async throws -> Place? {
        guard content.objects.isEmpty else { return .objects }
        let source = state.withLock { state in
            state.sources = [state.source]
            return state.source
        }
        do throws(SystemError) {
            return .file(try await folder.open(folder.partial(source.task.rawValue)))
        } catch {
            if error.errno == ENOENT { return nil }
            throw error
        }
    }

    /// Readable bytes of a version; empty if their task has left the file meanwhile.
    ///
    /// - Throws: ``Cut``.
    package func read(_ place: Place, _ range: Range<Int64>, of version: Int64) async throws -> [UInt8] {
        let bytes: [UInt8]
        switch place {
        case .file(let file): bytes = try await folder.disk.read(file, range)
        case .objects:
            guard let found = try await read(range, of: version) else { return [] }
            bytes = found
        }
        // Checked after the read: a new version is announced before the first of its bytes is written.
        guard try isReadable(version) else { return [] }
        guard bytes.count == range.count else { throw Cut() }
        return bytes
    }

    /// Bytes of objects; `nil` if the objects were removed, so that only the complete content has the bytes.
    ///
    /// - Throws: ``Cut`` if the complete content was removed.
    private func read(_ range: Range<Int64>, of version: Int64) async throws -> [UInt8]? {
        let state = state.withLock { $0 }
        guard !state.isComplete else {
            guard let whole = state.whole, let bytes = try await service.bytes(range, of: whole) else { throw Cut() }
            return bytes
        }
        guard let content = state.source.arrival.content, content.version == version else { return nil }
        let bytes = try await service.bytes(range, of: content.objects)
        if bytes == nil { self.state.withLock { $0.isLost = true } }
        return bytes
    }

    /// Whether the file or the objects have the bytes of a version: until its task leaves the file, and after the reader's
    /// task has succeeded with them. The next task that continues the file may begin another version.
    ///
    /// - Throws: ``Cut``.
    private func isReadable(_ version: Int64) throws(Cut) -> Bool {
        let state = state.withLock { $0 }
        guard state.sources.allSatisfy({ $0.arrival.isOnly(version) }) else { throw Cut() }
        return state.isComplete || !state.source.arrival.isLeft && !state.isLost
    }

    /// The end of the readable bytes of a version from an offset on; the offset itself if there are none.
    ///
    /// - Throws: ``Cut``.
    package func end(from offset: Int64, of version: Int64) throws(Cut) -> Int64 {
        guard try isReadable(version), let content = source.arrival.content, content.version >= version else {
            return offset
        }
        guard content.version == version else { throw Cut() }
        return content.end(from: offset) ?? offset
    }

    /// The length and digest of the content, if the task has succeeded with a version; `nil` if it is not completed.
    ///
    /// - Throws: ``Cut``.
    package func ending(of version: Int64) async throws -> (length: Int64, digest: ContentDigest?)? {
        let task = try await service.store.tasks.read(task)
        guard task.state == .completed else {
            // The version of a content that cannot be resumed is not stored yet.
            guard task.progress?.version ?? 0 <= version else { throw Cut() }
            turn(to: task)
            return nil
        }
        guard task.outcome == .succeeded, let result = task.result, result.progress.version == version,
            let length = result.contentLength
        else { throw Cut() }
        var whole: [StoredObject]?
        if service.settings.contents != nil {
            do {
                if case .bucket(let objects) = try await service.content(of: task).source { whole = objects }
            } catch is DomainError {
                // The content was removed.
            } catch {
                service.log.warning(
                    "the objects of a content cannot be found for a reader",
                    ("session", task.sessionIdentifier), ("task", task.number), ("error", "\(error)"))
            }
        }
        state.withLock { [whole] in ($0.isComplete, $0.whole) = (true, whole) }
        return (length, result.contentDigest)
    }
}

extension Service {
    package func arrivalReader(of task: TaskRecord) -> ArrivalReader { ArrivalReader(self, task) }
}
