import Base
import Glibc

/// Who reads. Each has threads of its own, so that neither waits for the other.
package enum ReadingParty: Sendable {
    /// Requests of clients: any number, and some are slow.
    case requests
    /// The service's own loops: transfers, launches and cleaning.
    case loops
}

/// One database: a thread that writes, and a few that read.
///
/// A closure that writes is durable when `write` returns. Closures are synchronous on purpose: nothing can suspend
/// inside a transaction. They may be kept waiting, and run again where what they did was undone: they change nothing but
/// the database.
package final class Database: Sendable {
    /// The file; nil where a server has the database.
    let path: String?
    private let writes: Mailbox<Job>
    private let readers: (requests: Readers, loops: Readers)
    private let writer: Locked<SystemThread?>
    private let state: WriterState

    /// For whom the current task reads; what it starts reads for the same.
    @TaskLocal package static var readingParty = ReadingParty.requests

    init(
        path: String?, writes: Mailbox<Job>, readers: (requests: Readers, loops: Readers), writer: SystemThread,
        state: WriterState
    ) {
        self.path = path
        self.writes = writes
        self.readers = readers
        self.writer = Locked(writer)
        self.state = state
    }

    deinit { close() }

    /// A thread of our own, so that a slow disk or network never blocks one of Swift's pool.
    static func thread(_ name: String, _ body: sending @escaping () -> Void) throws(SQLError) -> SystemThread {
        do {
            return try SystemThread(name, body)
        } catch {
            throw SQLError(.unreachable, error.description)
        }
    }

    /// Runs `body` in a write transaction: durable when this returns, undone when `body` throws.
    ///
    /// Other callers' closures may share the commit; an error of theirs does not touch this one, but when there is
    /// no room (`SQLError.isPassing`) all that shared it fail.
    @discardableResult
    package func write<T: Sendable>(_ body: @escaping @Sendable (Connection) throws -> T) async throws -> T {
        try await writeThenRead { connection in
            let result = try body(connection)
            return { result }
        }
    }

    /// Runs `body` and makes what it wrote durable, as above.
    ///
    /// - Parameter body: Answers what gives the result. That is called after the commit, so that what was asked last
    ///   (``Connection/ask(_:_:read:)``) is answered with it.
    package func writeThenRead<T: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> () throws -> T
    ) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            let job = Job(body, for: continuation)
            if !writes.put(job) { job.fail(SQLError.closed) }
        }
    }

    /// Runs `body` in a read transaction: all it reads is of one moment. Interrupted when it takes
    /// longer than reads may (`SQLError.isInterrupted`).
    package func read<T: Sendable>(_ body: @escaping @Sendable (Connection) throws -> T) async throws -> T {
        try await readers(for: Self.readingParty).read(body)
    }

    /// The threads that read for a party. A task that prefers them as its executor reads without a change of thread.
    package func readers(for party: ReadingParty) -> Readers {
        switch party {
        case .requests: readers.requests
        case .loops: readers.loops
        }
    }

    /// Closures that wait for the writing thread to take them.
    package var waitingWrites: Int { writes.count }

    /// Closures that have had their turn on the writing thread.
    package var performedWrites: Int { state.performedWrites }

    /// Writes all that was asked for, closes the database, and waits for that.
    ///
    /// Later calls are refused. Idempotent.
    package func close() {
        guard let writer = writer.withLock({ $0.take() }) else { return }
        // Readers first: none is in the way of the last checkpoint.
        readers.requests.close()
        readers.loops.close()
        writes.close()
        writer.join()
    }
}
