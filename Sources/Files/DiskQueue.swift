package import Base
import Glibc

/// Files, on threads that may wait for the disk. All methods may be called from anywhere.
///
/// Paths are taken as they are, except for the `beneath` methods, which stay below a root and follow no symbolic link.
/// Whole files are read and copied in steps, between which other work gets its turn.
package struct DiskQueue: Sendable {
    /// Ends its threads with the last queue that refers to it.
    private final class Threads: Sendable {
        let work: DiskWork

        init(_ count: Int) throws(SystemError) {
            work = DiskWork(threads: count)
            for index in 0..<count {
                let work = work
                try SystemThread.start("disk-\(index)") { work.run() }
            }
        }

        deinit { work.close() }
    }

    /// Bytes of a file that are read or copied in one step.
    static let stepLength = 4 << 20

    private let threads: Threads
    private var owner: Int64 = 0

    package init(threads: Int) throws(SystemError) { self.threads = try Threads(max(1, threads)) }

    /// The same threads for the work of one owner, the number of an app: owners take turns. 0 is the service's own.
    package func of(_ owner: Int64) -> DiskQueue {
        var queue = self
        queue.owner = owner
        return queue
    }

    /// Finishes what is queued and takes nothing more.
    package func close() { threads.work.close() }

    /// Runs `body`, which ends soon, on a disk thread. False after the queue was closed.
    package func post(_ body: @escaping @Sendable () -> Void) -> Bool {
        postSteps(.short) {
            body()
            return false
        }
    }

    /// Runs `step` on disk threads until it says that there is no more. False after the queue was closed.
    package func postSteps(_ length: DiskWorkLength, _ step: @escaping @Sendable () -> Bool) -> Bool {
        threads.work.add(step, length, for: owner)
    }

    /// Runs `body` on a disk thread and waits for it without blocking.
    package func run<Value: Sendable>(
        _ length: DiskWorkLength = .short, _ body: @escaping @Sendable () throws(SystemError) -> Value
    ) async throws(SystemError) -> Value {
        let result: Result<Value, SystemError> = await withCheckedContinuation { continuation in
            let isTaken = postSteps(length) {
                do throws(SystemError) {
                    continuation.resume(returning: .success(try body()))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
                return false
            }
            if !isTaken { continuation.resume(returning: .failure(SystemError("queue", errno: ESHUTDOWN))) }
        }
        return try result.get()
    }
}
