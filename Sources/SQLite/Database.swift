package import Base
import CSQLite
import Glibc

/// Who reads. Each has threads of its own, so that neither waits for the other.
package enum ReadingParty: Sendable {
    /// Requests of clients: any number, and some are slow.
    case requests
    /// The service's own loops: transfers, launches and cleaning.
    case loops
}

/// One SQLite file: a thread that writes, and a few that read.
///
/// A closure that writes is durable when `write` returns. Closures are synchronous on purpose: nothing can suspend
/// inside a transaction. They may be kept waiting, never run twice.
package final class Database: Sendable {
    let path: String
    private let writes: Mailbox<Job>
    private let readers: (requests: Readers, loops: Readers)
    private let writer: Locked<SystemThread?>
    private let state: WriterState

    /// For whom the current task reads; what it starts reads for the same.
    @TaskLocal package static var readingParty = ReadingParty.requests

    private init(
        path: String, writes: Mailbox<Job>, readers: (requests: Readers, loops: Readers), writer: SystemThread,
        state: WriterState
    ) {
        self.path = path
        self.writes = writes
        self.readers = readers
        self.writer = Locked(writer)
        self.state = state
    }

    deinit { close() }

    /// Opens the database, makes it (readable by its owner alone) when it is not there, and brings its schema up to
    /// the last migration.
    ///
    /// - Parameters:
    ///   - readers: Threads that read, for each party.
    ///   - migrations: By ascending version.
    ///   - longestRead: How long a closure that reads may run. A longer one would keep the log from being reused.
    ///   - check: Whether to look for damage first (`PRAGMA quick_check`), which reads the whole file.
    ///   - onCommit: Called on the writing thread after each commit that wrote something.
    ///   - onFatalError: Called on the writing thread after a commit that is neither done nor undone. It must end
    ///     the process without answering anybody; the next start finds out.
    /// - Throws: `SQLITE_SCHEMA` for a database of a newer program or of one too old, `SQLITE_CORRUPT` for a damaged one,
    ///   `SQLITE_CANTOPEN`, `SQLITE_BUSY`.
    package static func open(
        path: String, readers: Int = 2, longestRead: Duration = .seconds(5), migrations: [Migration],
        check: Bool = false, log: Log, onCommit: @escaping @Sendable (Commit) -> Void = { _ in },
        onFatalError: @escaping @Sendable (SQLiteError) -> Never
    ) throws(SQLiteError) -> Database {
        try createPrivately(path)
        let connection = try Connection(path: path, role: .writer)
        try connection.refuseUnknownSchema(migrations)
        let mode = try connection.value("PRAGMA journal_mode = WAL") { $0.text(0) }
        guard mode == "wal" else {
            throw SQLiteError(code: SQLITE_CANTOPEN, message: "\(path): no write-ahead log on this file system")
        }
        if check { try connection.check() }
        try connection.migrate(migrations)

        let writes = Mailbox<Job>()
        let state = WriterState()
        let writer = try Writer(
            connection, mailbox: writes, state: state, log: log, onCommit: onCommit, onFatalError: onFatalError)
        func makeReaders(_ name: String) throws(SQLiteError) -> Readers {
            try Readers(name, path: path, count: readers, longestRead: longestRead)
        }
        return Database(
            path: path, writes: writes, readers: (try makeReaders("sqlite-requests"), try makeReaders("sqlite-loops")),
            writer: try thread("sqlite-write") { writer.run() }, state: state)
    }

    /// A thread of our own, so that a slow disk never blocks one of Swift's pool.
    static func thread(_ name: String, _ body: sending @escaping () -> Void) throws(SQLiteError) -> SystemThread {
        do {
            return try SystemThread(name, body)
        } catch {
            throw SQLiteError(code: SQLITE_NOMEM, message: error.description)
        }
    }

    /// Runs `body` in a write transaction: durable when this returns, undone when `body` throws.
    ///
    /// Other callers' closures may share the commit; an error of theirs does not touch this one, but when there is
    /// no room (`SQLiteError.isFull`) all that shared it fail.
    @discardableResult
    package func write<T: Sendable>(_ body: @escaping @Sendable (Connection) throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            let job = Job(body, for: continuation)
            if !writes.put(job) { job.fail(SQLiteError.closed) }
        }
    }

    /// Runs `body` in a read transaction: all it reads is of one moment. Interrupted when it takes
    /// longer than reads may (`SQLiteError.isInterrupted`).
    package func read<T: Sendable>(_ body: @escaping @Sendable (Connection) throws -> T) async throws -> T {
        try await readers(for: Self.readingParty).read(body)
    }

    /// The threads that read for somebody. What prefers them as its executor reads without a change of thread.
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

    /// Whether the last writes found no room, and none has found any since.
    package var isFull: Bool { state.isFull }

    /// Writes all that was asked for, copies the log into the file, closes it, and waits for that.
    ///
    /// Whoever asks for more afterwards is refused. Idempotent.
    package func close() {
        guard let writer = writer.withLock({ $0.take() }) else { return }
        // Readers first: none is in the way of the last checkpoint.
        readers.requests.close()
        readers.loops.close()
        writes.close()
        writer.join()
    }

    /// Creates the file before SQLite does, which would let others read it. SQLite gives the log the same mode.
    private static func createPrivately(_ path: String) throws(SQLiteError) {
        let file = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            throw SQLiteError(code: SQLITE_CANTOPEN, message: "\(path): \(String(cString: strerror(errno)))")
        }
        Glibc.close(file)
    }
}

extension Connection {
    /// Looks for damage in the whole file.
    func check() throws(SQLiteError) {
        let finding = try value("PRAGMA quick_check(1)") { $0.text(0) }
        guard finding == "ok" else {
            throw SQLiteError(code: SQLITE_CORRUPT, message: "the database is damaged: \(finding ?? "no answer")")
        }
    }
}
