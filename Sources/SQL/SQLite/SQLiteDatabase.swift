package import Base
import CSQLite
import Glibc

extension Database {
    /// Opens the database in a file and migrates its schema. Creates a missing file, readable by its owner alone.
    ///
    /// - Parameters:
    ///   - readers: The number of threads for each kind of reader.
    ///   - migrations: By ascending version.
    ///   - longestRead: The time limit of a closure that reads. A longer read keeps the log from being reused.
    ///   - onCommit: Called on the writing thread after each commit that wrote something.
    ///   - onFatalError: Called on the writing thread after a commit in doubt. It must end the process without resuming
    ///     any caller; the next start determines the outcome.
    /// - Throws: ``SQLError/Code/unknownSchema`` for a database of a newer or too old program, `SQLITE_CORRUPT` for a
    ///   damaged one, `SQLITE_CANTOPEN`, `SQLITE_BUSY`.
    package static func open(
        path: String, readers: Int = 2, longestRead: Duration = .seconds(5), migrations: [Migration], log: Log,
        onCommit: @escaping @Sendable (Commit) -> Void = { _ in },
        onFatalError: @escaping @Sendable (SQLError) -> Never
    ) throws(SQLError) -> Database {
        try createPrivately(path)
        let connection = try SQLiteConnection(path: path, role: .writer)
        try migrations.check(connection.schemaVersion())
        let mode = try connection.value("PRAGMA journal_mode = WAL") { $0.text(0) }
        guard mode == "wal" else {
            throw SQLError(code: SQLITE_CANTOPEN, message: "\(path): no write-ahead log on this file system")
        }
        try connection.migrate(migrations)

        let writes = JobQueue()
        let writer = try SQLiteWriter(connection, log: log, onCommit: onCommit, onFatalError: onFatalError)
        func makeReaders(_ name: String) throws(SQLError) -> Readers {
            try Readers(name, count: readers, longestRead: longestRead) { () throws(SQLError) in
                let connection = try SQLiteConnection(path: path, role: .reader)
                try connection.execute("PRAGMA query_only = ON")
                return connection
            }
        }
        return Database(
            writes: writes, readers: (try makeReaders("sqlite-requests"), try makeReaders("sqlite-loops")),
            writer: try thread("sqlite-write") { writer.work(on: writes) })
    }

    /// Creates the file with mode 0600, unlike SQLite, which copies the mode to the log.
    private static func createPrivately(_ path: String) throws(SQLError) {
        let file = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            throw SQLError(code: SQLITE_CANTOPEN, message: "\(path): \(String(cString: strerror(errno)))")
        }
        Glibc.close(file)
    }
}
