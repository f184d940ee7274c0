import Base
package import Core
package import Files
import Glibc
import Store
import Transfers

/// One reader of a download that may be unfinished.
///
/// The bytes come from the partial file, which its descriptor still has after the file got its final place or was
/// removed. So the reader needs this node to have the file.
package final class ArrivalReader: Sendable {
    /// The following bytes are not of the reader's version: another one has begun, or the task has not succeeded.
    package struct Cut: Error {
        package init() {}
    }

    /// Milliseconds after which a reader checks the task, because another node may have begun another version.
    private static let period: Int64 = 15_000

    private let service: Service
    private let task: TaskID
    private let folder: DataFolder
    private let arrival: Arrival
    private let watch: Broadcast<TaskID>.Watch

    fileprivate init(_ service: Service, _ task: TaskRecord) {
        self.service = service
        self.task = task.id
        folder = service.folder.of(task.app.rawValue)
        arrival = service.outlet.arrivals.arrival(of: task.id)
        watch = service.outlet.arrivals.changes.watch(task.id)
    }

    /// The readable bytes; `nil` if there are none before the task is completed.
    package var content: ArrivingContent? { arrival.content }

    /// The response that the bytes belong to, if this process has received its head.
    package var response: TaskResponse? { arrival.response }

    /// Ends the current wait.
    package func wake() { watch.wake() }

    /// Waits for more bytes, or for the end of the task, at the latest until the monotonic `deadline` (ms).
    ///
    /// - Parameter offset: The offset of the first byte that the reader needs: in a segmented download it is fetched next.
    /// - Returns: Whether the task may have ended.
    package func wait(for offset: Int64?, until deadline: Int64 = .max) async -> Bool {
        if let offset { service.inbox.tell(.wanted(task, offset)) }
        let hasNews = await watch.wait(until: min(deadline, service.clock.monotonic() + Self.period))
        return !hasNews || arrival.isOver
    }

    /// The partial file; `nil` if it is not here.
    package func open() async throws -> OpenFile? {
        do throws(SystemError) {
            return try await folder.open(folder.partial(task.rawValue))
        } catch {
            if error.errno == ENOENT { return nil }
            throw error
        }
    }

    /// Readable bytes of a version.
    ///
    /// - Throws: ``Cut``.
    package func read(_ file: OpenFile, _ range: Range<Int64>, of version: Int64) async throws -> [UInt8] {
        let bytes = try await folder.disk.read(file, range)
        // Checked after the read: a new version is announced before the first of its bytes is written.
        guard bytes.count == range.count, arrival.isOnly(version) else { throw Cut() }
        return bytes
    }

    /// The end of the readable bytes of a version from an offset on; the offset itself if there are none.
    ///
    /// - Throws: ``Cut``.
    package func end(from offset: Int64, of version: Int64) throws(Cut) -> Int64 {
        guard arrival.isOnly(version) else { throw Cut() }
        guard let content, content.version == version else { return offset }
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
            return nil
        }
        guard task.outcome == .succeeded, let result = task.result, result.progress.version == version,
            let length = result.contentLength
        else { throw Cut() }
        return (length, result.contentDigest)
    }
}

extension Service {
    package func arrivalReader(of task: TaskRecord) -> ArrivalReader { ArrivalReader(self, task) }
}
