import Base
import CSQLite
import Glibc

/// One connection to a database file, for the one thread that made or was given it.
///
/// SQL is a literal: it cannot be built at run time, so nothing can be injected, and the statements kept prepared
/// are as many as the source code has. The corresponding C functions are `sqlite3_open_v2` and `sqlite3_close`.
package final class Connection {
    enum Role {
        /// Writes and checkpoints.
        case writer
        /// Opened read-only; closes without a checkpoint.
        case reader
    }

    /// How long another process's lock is waited for.
    static let busyTimeout: Int32 = 5000

    let handle: OpaquePointer
    /// The last failure, for whoever finds the transaction gone.
    var lastFailure: SQLiteError?
    /// Pages in the write-ahead log after the last commit that wrote.
    private(set) var logPages = 0
    /// Instructions of SQLite's virtual machine that statements took: their work, whatever the machine's speed.
    package internal(set) var instructions = 0
    /// Commits that wrote, since the connection was opened.
    private(set) var writingCommits = 0
    /// When the statement that runs is to be interrupted, by the monotonic clock in milliseconds.
    var deadline: Int64?
    private var statements: [UnsafePointer<UInt8>: Statement] = [:]

    /// Nobody asks how much memory SQLite has; counting it takes a lock that all threads share, with each allocation.
    private static let countsNoMemory: Void = { _ = sqlite3_config_memory_statistics(0) }()

    init(path: String, role: Role) throws(SQLiteError) {
        Self.countsNoMemory
        // Each connection stays on one thread, so it needs no mutex of its own.
        let access = role == .writer ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY
        var handle: OpaquePointer?
        let code = sqlite3_open_v2(path, &handle, access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil)
        guard let handle else { throw SQLiteError(code: code, message: "no memory for a connection") }
        guard code == SQLITE_OK else {
            let message = String(cString: sqlite3_errmsg(handle))
            sqlite3_close(handle)
            throw SQLiteError(code: code, message: "\(path): \(message)")
        }
        self.handle = handle
        try configure(role)
    }

    deinit {
        statements.removeAll()
        let code = sqlite3_close(handle)
        precondition(code == SQLITE_OK, "sqlite3_close: \(code)")
    }

    // MARK: Statements

    /// Runs a statement to its end, and answers ``changes``.
    @discardableResult
    package func execute(_ sql: StaticString, _ values: (any SQLiteBindable)?...) throws(SQLiteError) -> Int {
        try run(sql, values) { _ throws(SQLiteError) in true }
        return changes
    }

    /// Runs a statement that inserts one row, and answers the number that the row was given.
    package func insert(_ sql: StaticString, _ values: (any SQLiteBindable)?...) throws(SQLiteError) -> Int64 {
        try run(sql, values) { _ throws(SQLiteError) in true }
        return sqlite3_last_insert_rowid(handle)
    }

    /// The first row of the answer as `read` sees it, or `nil` when there is none.
    @inlinable
    package func first<T>(
        _ sql: StaticString, _ values: (any SQLiteBindable)?..., read: (Row) throws -> T
    ) throws -> T? {
        var result: Result<T, any Error>?
        try run(sql, values) { row throws(SQLiteError) in
            result = Result { try read(row) }
            return false
        }
        return try result?.get()
    }

    /// Whether the answer has a row.
    package func exists(_ sql: StaticString, _ values: (any SQLiteBindable)?...) throws(SQLiteError) -> Bool {
        var exists = false
        try run(sql, values) { _ throws(SQLiteError) in
            exists = true
            return false
        }
        return exists
    }

    /// All rows of the answer as `read` sees them, or those before the first that `goesOn` is not true of.
    @inlinable
    package func all<T>(
        _ sql: StaticString, _ values: (any SQLiteBindable)?..., while goesOn: (Row) -> Bool = { _ in true },
        read: (Row) throws -> T
    ) throws -> [T] {
        var result: [T] = []
        var failure: (any Error)?
        try run(sql, values) { row throws(SQLiteError) in
            guard goesOn(row) else { return false }
            do {
                result.append(try read(row))
            } catch {
                failure = error
            }
            return failure == nil
        }
        if let failure { throw failure }
        return result
    }

    /// The one value of a pragma or of a look at the schema.
    func value<T>(_ sql: StaticString, read: (Row) -> T) throws(SQLiteError) -> T? {
        var value: T?
        try run(sql, []) { row throws(SQLiteError) in
            value = read(row)
            return false
        }
        return value
    }

    /// Shows each row to `body` until it returns `false`.
    package func forEach(
        _ sql: StaticString, _ values: (any SQLiteBindable)?..., body: (Row) throws(SQLiteError) -> Bool
    ) throws(SQLiteError) {
        try run(sql, values, body)
    }

    /// Rows the last INSERT, UPDATE or DELETE touched, without those of triggers.
    package var changes: Int { Int(sqlite3_changes64(handle)) }

    @usableFromInline
    func run(
        _ sql: StaticString, _ values: [(any SQLiteBindable)?], _ body: (Row) throws(SQLiteError) -> Bool
    ) throws(SQLiteError) {
        try statement(sql).run(values, on: self, body)
    }

    /// The statement kept for this literal, or one for this use when that one is running further up the stack.
    private func statement(_ sql: StaticString) throws(SQLiteError) -> Statement {
        let kept = statements[sql.utf8Start]
        if let kept, !kept.isRunning { return kept }
        let statement = try Statement(sql, on: self)
        if kept == nil { statements[sql.utf8Start] = statement }
        return statement
    }

    // MARK: Transactions

    /// Whether no transaction is open. SQLite ends one by itself after `SQLITE_FULL` and I/O errors.
    var isAutocommit: Bool { sqlite3_get_autocommit(handle) != 0 }

    /// Copies the log into the database file as far as no reader is in the way.
    ///
    /// - Returns: Whether all of it was copied.
    func checkpoint(_ mode: Int32) throws(SQLiteError) -> Bool {
        var inLog: Int32 = 0
        var copied: Int32 = 0
        let code = sqlite3_wal_checkpoint_v2(handle, nil, mode, &inLog, &copied)
        if code & 0xFF == SQLITE_BUSY { return false }
        guard code == SQLITE_OK else { throw failure(code) }
        return inLog == copied
    }

    func setBusyTimeout(milliseconds: Int32) { sqlite3_busy_timeout(handle, milliseconds) }

    // MARK: Set-up

    private func configure(_ role: Role) throws(SQLiteError) {
        set(SQLITE_DBCONFIG_DEFENSIVE, true)
        set(SQLITE_DBCONFIG_DQS_DML, false)
        set(SQLITE_DBCONFIG_DQS_DDL, false)
        setBusyTimeout(milliseconds: Self.busyTimeout)
        try execute("PRAGMA trusted_schema = OFF")
        try execute("PRAGMA cell_size_check = ON")
        try execute("PRAGMA temp_store = MEMORY")
        try execute("PRAGMA mmap_size = 0")
        switch role {
        case .reader:
            set(SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            try execute("PRAGMA cache_size = -4096")
            interruptAtDeadline()
        case .writer:
            // For a new database. Contents of some kilobytes take fewer pages then, and each is written twice.
            try execute("PRAGMA page_size = 8192")
            // For a new database, too: free pages can be given back later, some at a time.
            try execute("PRAGMA auto_vacuum = INCREMENTAL")
            try execute("PRAGMA cache_size = -16384")
            try execute("PRAGMA synchronous = FULL")
            try execute("PRAGMA wal_autocheckpoint = 0")
            try execute("PRAGMA journal_size_limit = 67108864")
            countLogPages()
        }
    }

    private func set(_ option: Int32, _ isOn: Bool) {
        let code = sqlite3_db_config_switch(handle, option, isOn ? 1 : 0)
        precondition(code == SQLITE_OK, "sqlite3_db_config \(option): \(code)")
    }

    private func countLogPages() {
        // Unretained: the connection outlives its handle.
        sqlite3_wal_hook(
            handle,
            { context, _, _, pages in
                guard let context else { return SQLITE_OK }
                let connection = Unmanaged<Connection>.fromOpaque(context).takeUnretainedValue()
                connection.logPages = Int(pages)
                connection.writingCommits += 1
                return SQLITE_OK
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    private func interruptAtDeadline() {
        // Unretained: the connection outlives its handle. 20,000 instructions take about a millisecond.
        sqlite3_progress_handler(
            handle, 20_000,
            { context in
                guard let context else { return 0 }
                let connection = Unmanaged<Connection>.fromOpaque(context).takeUnretainedValue()
                guard let deadline = connection.deadline else { return 0 }
                return Clock.system.monotonic() > deadline ? 1 : 0
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// The error of the call that just returned `code`.
    func failure(_ code: Int32) -> SQLiteError {
        // A quota that is used up is a full disk: nothing of the commit was completed.
        let isQuota = code == SQLITE_IOERR | (3 << 8) && sqlite3_system_errno(handle) == EDQUOT
        let error = SQLiteError(
            code: isQuota ? SQLITE_FULL : code, message: String(cString: sqlite3_errmsg(handle)))
        lastFailure = error
        return error
    }
}

@available(*, unavailable)
extension Connection: Sendable {}
