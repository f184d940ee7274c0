package import Base
import CSQLite
import Glibc

extension Database {
    /// Opens the database in a file, makes it (readable by its owner alone) when it is not there, and brings its schema
    /// up to the last migration.
    ///
    /// - Parameters:
    ///   - readers: Threads that read, for each party.
    ///   - migrations: By ascending version.
    ///   - longestRead: How long a closure that reads may run. A longer one would keep the log from being reused.
    ///   - check: Whether to look for damage first (`PRAGMA quick_check`), which reads the whole file.
    ///   - onCommit: Called on the writing thread after each commit that wrote something.
    ///   - onFatalError: Called on the writing thread after a commit that is neither done nor undone. It must end
    ///     the process without answering anybody; the next start finds out.
    /// - Throws: ``SQLError/Code/unknownSchema`` for a database of a newer program or of one too old, `SQLITE_CORRUPT` for a
    ///   damaged one, `SQLITE_CANTOPEN`, `SQLITE_BUSY`.
    package static func open(
        path: String, readers: Int = 2, longestRead: Duration = .seconds(5), migrations: [Migration],
        check: Bool = false, log: Log, onCommit: @escaping @Sendable (Commit) -> Void = { _ in },
        onFatalError: @escaping @Sendable (SQLError) -> Never
    ) throws(SQLError) -> Database {
        try createPrivately(path)
        let connection = try SQLiteConnection(path: path, role: .writer)
        try migrations.check(connection.schemaVersion())
        let mode = try connection.value("PRAGMA journal_mode = WAL") { $0.text(0) }
        guard mode == "wal" else {
            throw SQLError(code: SQLITE_CANTOPEN, message: "\(path): no write-ahead log on this file system")
        }
        if check { try connection.check() }
        try connection.migrate(migrations)

        let writes = Mailbox<Job>()
        let state = WriterState()
        let writer = try SQLiteWriter(
            connection, state: state, log: log, onCommit: onCommit, onFatalError: onFatalError)
        func makeReaders(_ name: String) throws(SQLError) -> Readers {
            try Readers(name, count: readers, longestRead: longestRead) { () throws(SQLError) in
                let connection = try SQLiteConnection(path: path, role: .reader)
                try connection.execute("PRAGMA query_only = ON")
                return connection
            }
        }
        return Database(
            path: path, writes: writes, readers: (try makeReaders("sqlite-requests"), try makeReaders("sqlite-loops")),
            writer: try thread("sqlite-write") { writer.work(on: writes) }, state: state)
    }

    /// Creates the file before SQLite does, which would let others read it. SQLite gives the log the same mode.
    private static func createPrivately(_ path: String) throws(SQLError) {
        let file = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            throw SQLError(code: SQLITE_CANTOPEN, message: "\(path): \(String(cString: strerror(errno)))")
        }
        Glibc.close(file)
    }
}

extension SQLiteConnection {
    /// Looks for damage in the whole file.
    func check() throws(SQLError) {
        let finding = try value("PRAGMA quick_check(1)") { $0.text(0) }
        guard finding == "ok" else {
            throw SQLError(code: SQLITE_CORRUPT, message: "the database is damaged: \(finding ?? "no answer")")
        }
    }
}
