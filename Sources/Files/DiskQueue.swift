package import Base
import Glibc

/// File operations, on threads that may wait for the disk. May be called from any thread.
///
/// Paths are used unchanged, except that the `beneath` methods stay below a root and follow no symbolic link. Whole
/// files are read and copied in steps, between which other work gets its turn.
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

    /// The bytes of a file that are read or copied in one step.
    static let stepLength = 4 << 20

    private let threads: Threads
    private var owner: Int64 = 0

    package init(threads: Int) throws(SystemError) { self.threads = try Threads(max(1, threads)) }

    /// The same threads for the work of one owner, an app's number: owners take turns. 0 is the service itself.
    package func of(_ owner: Int64) -> DiskQueue {
        var queue = self
        queue.owner = owner
        return queue
    }

    /// Finishes the queued work and rejects further work.
    package func close() { threads.work.close() }

    /// Runs `step` on disk threads until it returns false. Returns false if the queue was closed.
    package func postSteps(_ length: DiskWorkLength, _ step: @escaping @Sendable () -> Bool) -> Bool {
        threads.work.add(step, length, for: owner)
    }

    /// Runs `body` on a disk thread, then `then` with the result. After the queue was closed, `then` is called at once
    /// with `ESHUTDOWN`.
    package func run<Value: Sendable>(
        _ length: DiskWorkLength = .short, _ body: @escaping @Sendable () throws(SystemError) -> Value,
        then: @escaping @Sendable (Result<Value, SystemError>) -> Void
    ) {
        let isTaken = postSteps(length) {
            then(Result { () throws(SystemError) in try body() })
            return false
        }
        if !isTaken { then(.failure(SystemError("queue", errno: ESHUTDOWN))) }
    }

    /// Runs `body` on a disk thread and waits for it without blocking.
    package func run<Value: Sendable>(
        _ length: DiskWorkLength = .short, _ body: @escaping @Sendable () throws(SystemError) -> Value
    ) async throws(SystemError) -> Value {
        try await result(length, body).get()
    }

    /// Like ``run(_:_:)``, for a caller that continues meanwhile (`async let`).
    func result<Value: Sendable>(
        _ length: DiskWorkLength, _ body: @escaping @Sendable () throws(SystemError) -> Value
    ) async -> Result<Value, SystemError> {
        await withCheckedContinuation { continuation in
            run(length, body) { continuation.resume(returning: $0) }
        }
    }
}
