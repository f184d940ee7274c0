import CSQLite

/// What SQLite answered instead of success.
package struct SQLiteError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The extended result code. Source: https://www.sqlite.org/rescode.html
    package let code: Int32
    package let message: String

    /// The result code without what the extended one adds: its low eight bits.
    package var primaryCode: Int32 { code & 0xFF }

    /// There is no room: nothing of the transaction was kept, and the connection is sound (`SQLITE_FULL`).
    package var isFull: Bool { primaryCode == SQLITE_FULL }

    /// A uniqueness, CHECK, NOT NULL or type rule of the schema said no (`SQLITE_CONSTRAINT`).
    package var isConstraint: Bool { primaryCode == SQLITE_CONSTRAINT }

    /// Another process holds the database longer than we wait (`SQLITE_BUSY`).
    package var isBusy: Bool { primaryCode == SQLITE_BUSY }

    /// A reading closure ran longer than it may (`SQLITE_INTERRUPT`).
    package var isInterrupted: Bool { primaryCode == SQLITE_INTERRUPT }

    package var description: String { "SQLite \(code): \(message)" }

    /// Whether a COMMIT that ended so may, or may not, be found on the disk after a crash.
    ///
    /// A failed sync of the log leaves the frames in it: this process no longer sees them, the next one may.
    /// Measured with SQLite 3.40 and EIO in `fdatasync`. Full, busy and constraint answers come before that.
    var leavesCommitUnknown: Bool { !isFull && !isBusy && !isConstraint }

    static let closed = SQLiteError(code: SQLITE_MISUSE, message: "the database is closed")
}
