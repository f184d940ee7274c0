import CSQLite

/// The error of a database operation.
package struct SQLError: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// An extended result code. Source: https://www.sqlite.org/rescode.html
        case sqlite(Int32)
        /// An SQLSTATE. Source: https://www.postgresql.org/docs/15/errcodes-appendix.html
        case postgresql(String)
        /// The server is unreachable or was lost. The transaction is undone.
        case unreachable
        /// The transaction is committed, but the results of the last requests were lost with the connection.
        case answersLost
        /// A closure exceeded the time limit of reads.
        case interrupted
        /// The schema was made by a newer or too old program.
        case unknownSchema
        /// Another node has taken this node's place.
        case superseded
        /// The database was closed by this program.
        case closed
    }

    package let code: Code
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The disk or a quota is full: the transaction is undone, and the connection is usable (`SQLITE_FULL`; class 53).
    package var isFull: Bool {
        switch code {
        case .sqlite(let code): code & 0xFF == SQLITE_FULL
        case .postgresql(let state): state == "53100" || state == "53200"
        default: false
        }
    }

    /// A constraint of the schema was violated: uniqueness, CHECK, NOT NULL or type (`SQLITE_CONSTRAINT`; class 23).
    package var isConstraint: Bool {
        switch code {
        case .sqlite(let code): code & 0xFF == SQLITE_CONSTRAINT
        case .postgresql(let state): state.hasPrefix("23")
        default: false
        }
    }

    /// Locks were held for too long (`SQLITE_BUSY`; deadlock, serialisation, too many connections).
    package var isBusy: Bool {
        switch code {
        case .sqlite(let code): code & 0xFF == SQLITE_BUSY
        case .postgresql(let state): ["40001", "40P01", "53300", "55P03"].contains(state)
        default: false
        }
    }

    /// Another transaction held a lock for longer than the lock timeout.
    var isLockTimeout: Bool { code == .postgresql("55P03") }

    package var isInterrupted: Bool { code == .interrupted }

    package var description: String {
        switch code {
        case .sqlite(SQLITE_CANTOPEN): message  // Names the file.
        case .sqlite(let code): "SQLite \(code): \(message)"
        case .postgresql(let state): "PostgreSQL \(state): \(message)"
        case .unreachable: "the database is out of reach: \(message)"
        case .answersLost, .interrupted, .unknownSchema, .superseded, .closed: message
        }
    }

    static let closed = SQLError(.closed, "the database is closed")
    static let interrupted = SQLError(.interrupted, "a read took longer than it may")
}
