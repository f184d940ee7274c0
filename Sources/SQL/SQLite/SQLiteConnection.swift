import Base
import CSQLite
import Glibc

/// One connection to a database file. The corresponding C functions are `sqlite3_open_v2` and `sqlite3_close`.
final class SQLiteConnection: Connection {
    enum Role {
        /// Writes and checkpoints.
        case writer
        /// Opened read-only; closes without a checkpoint.
        case reader
    }

    /// The maximum wait for another process's lock, in milliseconds.
    static let busyTimeout: Int32 = 5000

    let handle: OpaquePointer
    /// The last failure, for a caller whose transaction SQLite has ended.
    var lastFailure: SQLError?
    /// Pages in the write-ahead log after the last commit that wrote.
    private(set) var logPages = 0
    var work = 0
    /// The number of commits with writes since the connection was opened.
    private(set) var writingCommits = 0
    /// When the current statement is interrupted, by the monotonic clock in milliseconds.
    var deadline: Int64?
    private var statements: [Key: SQLiteStatement] = [:]

    /// Identifies a prepared statement.
    private struct Key: Hashable {
        /// The address of the literal.
        let start: UnsafePointer<UInt8>
        let isDescending: Bool
    }

    /// Memory statistics are unused, and counting takes a lock shared by all threads at each allocation.
    private static let countsNoMemory: Void = { _ = sqlite3_config_memory_statistics(0) }()

    init(path: String, role: Role) throws(SQLError) {
        Self.countsNoMemory
        // Each connection stays on one thread, so it needs no mutex of its own.
        let access = role == .writer ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY
        var handle: OpaquePointer?
        let code = sqlite3_open_v2(path, &handle, access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil)
        guard let handle else { throw SQLError(code: code, message: "no memory for a connection") }
        guard code == SQLITE_OK else {
            let message = String(cString: sqlite3_errmsg(handle))
            sqlite3_close(handle)
            throw SQLError(code: code, message: "\(path): \(message)")
        }
        self.handle = handle
        super.init()
        try configure(role)
    }

    deinit {
        statements.removeAll()
        let code = sqlite3_close(handle)
        precondition(code == SQLITE_OK, "sqlite3_close: \(code)")
    }

    // MARK: Statements

    override func run(
        _ sql: StaticString, _ values: [(any SQLBindable)?], descending: Bool,
        _ body: (Row) throws(SQLError) -> Bool
    ) throws(SQLError) {
        try statement(sql, descending: descending).run(values, on: self, body)
    }

    override func enqueue(_ sql: StaticString, _ values: [(any SQLBindable)?]) throws(SQLError) {
        try run(sql, values, descending: false) { _ throws(SQLError) in true }
    }

    override func changes(of sql: StaticString, _ values: [(any SQLBindable)?]) throws(SQLError) -> Int {
        try enqueue(sql, values)
        return Int(sqlite3_changes64(handle))
    }

    override func number(of sql: StaticString, _ values: [(any SQLBindable)?]) throws(SQLError) -> Int64 {
        try enqueue(sql, values)
        return sqlite3_last_insert_rowid(handle)
    }

    /// The prepared statement for this literal. A new one if the kept statement is running further up the stack.
    private func statement(_ sql: StaticString, descending: Bool) throws(SQLError) -> SQLiteStatement {
        let key = Key(start: sql.utf8Start, isDescending: descending)
        let kept = statements[key]
        if let kept, !kept.isRunning { return kept }
        let statement = try SQLiteStatement(sql.text(descending: descending), on: self)
        if kept == nil { statements[key] = statement }
        return statement
    }

    // MARK: Transactions

    /// Whether no transaction is open. SQLite ends one by itself after `SQLITE_FULL` and I/O errors.
    var isAutocommit: Bool { sqlite3_get_autocommit(handle) != 0 }

    /// Copies the log into the database file, as far as readers allow.
    ///
    /// - Returns: Whether all of it was copied.
    func checkpoint(_ mode: Int32) throws(SQLError) -> Bool {
        var inLog: Int32 = 0
        var copied: Int32 = 0
        let code = sqlite3_wal_checkpoint_v2(handle, nil, mode, &inLog, &copied)
        if code & 0xFF == SQLITE_BUSY { return false }
        guard code == SQLITE_OK else { throw failure(code) }
        return inLog == copied
    }

    func setBusyTimeout(milliseconds: Int32) { sqlite3_busy_timeout(handle, milliseconds) }

    // MARK: Set-up

    private func configure(_ role: Role) throws(SQLError) {
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
            // For a new database. Contents of some kilobytes need fewer pages, and each page is written twice.
            try execute("PRAGMA page_size = 8192")
            // Also for a new database: free pages can be returned later, some at a time.
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
                let connection = Unmanaged<SQLiteConnection>.fromOpaque(context).takeUnretainedValue()
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
                let connection = Unmanaged<SQLiteConnection>.fromOpaque(context).takeUnretainedValue()
                guard let deadline = connection.deadline else { return 0 }
                return Clock.system.monotonic() > deadline ? 1 : 0
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// The error of the last call, which returned `code`.
    func failure(_ code: Int32) -> SQLError {
        // An exhausted quota counts as a full disk: nothing of the commit was completed.
        let isQuota = code == SQLITE_IOERR | (3 << 8) && sqlite3_system_errno(handle) == EDQUOT
        let error = SQLError(
            code: isQuota ? SQLITE_FULL : code, message: String(cString: sqlite3_errmsg(handle)))
        lastFailure = error
        return error
    }

    /// The numbers after the last one that the table has ever had. No other transaction can use them, because this one
    /// is the writer.
    override func newNumbers(_ count: Int, of table: String) throws(SQLError) -> [Int64] {
        let last = try lastNumber(of: table)
        return (0..<Int64(count)).map { last + 1 + $0 }
    }

    /// The last number that a table has assigned; 0 if there is none.
    func lastNumber(of table: String) throws(SQLError) -> Int64 {
        try value("SELECT seq FROM sqlite_sequence WHERE name = ?1", table) { $0.integer(0) } ?? 0
    }

    // MARK: Free pages

    /// The minimum number of free pages kept for new rows; a quarter of the file if that is more.
    private static let spareFreePages: Int64 = 1024
    /// The value of `PRAGMA auto_vacuum`.
    private static let isIncremental: Int64 = 2

    /// Returns 128 pages at a time. The next checkpoint truncates the file.
    ///
    /// A database created without `auto_vacuum` keeps its size and reuses its free pages.
    override func returnFreePages() throws(SQLError) -> Bool {
        guard try value("PRAGMA auto_vacuum", read: { $0.integer(0) }) == Self.isIncremental,
            let free = try value("PRAGMA freelist_count", read: { $0.integer(0) }),
            let all = try value("PRAGMA page_count", read: { $0.integer(0) }),
            free > max(Self.spareFreePages, all / 4)
        else { return false }
        try execute("PRAGMA incremental_vacuum(128)")
        return true
    }

    // MARK: Reading

    override func read<Result>(until deadline: Int64, _ body: (Connection) throws -> Result) throws -> Result {
        try execute("BEGIN")
        self.deadline = deadline
        defer {
            self.deadline = nil
            // Nothing was changed. A transaction left open fails the next BEGIN.
            if !isAutocommit { _ = try? execute("ROLLBACK") }
        }
        return try body(self)
    }
}

extension Connection {
    /// The number of SQLite virtual machine instructions executed: a measure of work independent of the machine.
    package var instructions: Int { (self as? SQLiteConnection)?.work ?? 0 }
}

extension SQLError {
    init(code: Int32, message: String) {
        self = code & 0xFF == SQLITE_INTERRUPT ? .interrupted : SQLError(.sqlite(code), message)
    }

    /// Whether a failed COMMIT with this error may still be found on the disk after a crash.
    ///
    /// A failed sync of the log leaves the frames in it: this process no longer reads them, the next one may. Measured
    /// with SQLite 3.40 and EIO in `fdatasync`. Full, busy and constraint errors occur before that.
    var leavesCommitUnknown: Bool { !isFull && !isBusy && !isConstraint }
}
