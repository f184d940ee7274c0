import Base
import Synchronization

/// The kind of caller that reads. Each kind has its own threads, so that neither waits for the other.
package enum ReadingParty: Sendable {
    /// Requests of clients: any number, some of them slow.
    case requests
    /// The service's own loops: transfers, launches and the janitor.
    case loops
}

/// One database: a thread that writes, and several that read.
///
/// A closure that writes is durable when `write` returns. Closures are synchronous on purpose, so that none suspends
/// inside a transaction. A closure may be delayed, and may run again after its effects were undone. It has no effect
/// outside the database.
package final class Database: Sendable {
    private let writes: JobQueue
    private let readers: (requests: Readers, loops: Readers)
    private let writer: Locked<SystemThread?>

    /// The kind of caller that the current task reads for. Child tasks inherit the value.
    @TaskLocal package static var readingParty = ReadingParty.requests

    init(writes: JobQueue, readers: (requests: Readers, loops: Readers), writer: SystemThread) {
        self.writes = writes
        self.readers = readers
        self.writer = Locked(writer)
    }

    deinit { close() }

    /// Starts a dedicated thread, so that a slow disk or network never blocks a thread of Swift's pool.
    static func thread(_ name: String, _ body: sending @escaping () -> Void) throws(SQLError) -> SystemThread {
        do {
            return try SystemThread(name, body)
        } catch {
            throw SQLError(.unreachable, error.description)
        }
    }

    /// Runs `body` in a write transaction: durable when this returns, undone if `body` throws.
    ///
    /// Closures of other callers may share the commit. Their errors do not affect this closure, but an error of the
    /// commit, such as a full disk, fails all of them.
    @discardableResult
    package func write<T: Sendable>(_ body: @escaping @Sendable (Connection) throws -> T) async throws -> T {
        try await writeThenRead { connection in
            let result = try body(connection)
            return { result }
        }
    }

    /// Runs `body` and makes its writes durable, like ``write(_:)``.
    ///
    /// - Parameter body: Returns a closure that yields the result. It is called after the commit, so that the last
    ///   requests (``Connection/ask(_:_:read:)``) share the round trip of the commit.
    package func writeThenRead<T: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> () throws -> T
    ) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            let job = Job(body, for: continuation)
            if !writes.put(job) { job.fail(SQLError.closed) }
        }
    }

    /// Runs `body` in a read transaction with one snapshot. A read beyond the time limit is interrupted
    /// (`SQLError.isInterrupted`).
    package func read<T: Sendable>(_ body: @escaping @Sendable (Connection) throws -> T) async throws -> T {
        try await readers(for: Self.readingParty).read(body)
    }

    /// The threads that read for a kind of caller. A task that has them as its executor reads without a thread switch.
    package func readers(for party: ReadingParty) -> Readers {
        switch party {
        case .requests: readers.requests
        case .loops: readers.loops
        }
    }

    /// The number of closures not yet received by the writer.
    package var waitingWrites: Int { writes.count }

    /// The number of closures that the writer has run.
    package var performedWrites: Int { writes.performed.load(ordering: .relaxed) }

    /// Performs all submitted writes, closes the database, and waits for the end of both.
    ///
    /// Rejects later calls. Idempotent.
    package func close() {
        guard let writer = writer.withLock({ $0.take() }) else { return }
        // Readers first, so that none blocks the last checkpoint.
        readers.requests.close()
        readers.loops.close()
        writes.close()
        writer.join()
    }
}
