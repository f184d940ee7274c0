import CSQLite

/// What a database answered instead of success.
package struct SQLError: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// An extended result code. Source: https://www.sqlite.org/rescode.html
        case sqlite(Int32)
        /// An SQLSTATE. Source: https://www.postgresql.org/docs/15/errcodes-appendix.html
        case postgresql(String)
        /// The server is out of reach, or was lost: nothing of the transaction was kept.
        case unreachable
        /// The transaction is kept, but the answers to what was asked last were lost with the connection.
        case answersLost
        /// A reading closure ran longer than it may.
        case interrupted
        /// A newer program made the tables, or one too old.
        case unknownSchema
        /// Another node was given what this one has.
        case superseded
        /// The database was closed by this program.
        case closed
    }

    package let code: Code
    package let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// There is no room: nothing of the transaction was kept, and the connection is sound (`SQLITE_FULL`; class 53).
    package var isFull: Bool {
        switch code {
        case .sqlite(let code): code & 0xFF == SQLITE_FULL
        case .postgresql(let state): state == "53100" || state == "53200"
        default: false
        }
    }

    /// A uniqueness, CHECK, NOT NULL or type rule of the schema said no (`SQLITE_CONSTRAINT`; class 23).
    package var isConstraint: Bool {
        switch code {
        case .sqlite(let code): code & 0xFF == SQLITE_CONSTRAINT
        case .postgresql(let state): state.hasPrefix("23")
        default: false
        }
    }

    /// Others hold what was wanted longer than we wait (`SQLITE_BUSY`; deadlock, serialisation, too many connections).
    package var isBusy: Bool {
        switch code {
        case .sqlite(let code): code & 0xFF == SQLITE_BUSY
        case .postgresql(let state): ["40001", "40P01", "53300", "55P03"].contains(state)
        default: false
        }
    }

    /// Others held a lock for longer than the transaction waits.
    var isLockTimeout: Bool { code == .postgresql("55P03") }

    package var isInterrupted: Bool { code == .interrupted }

    /// Nothing was done, and the same may well succeed later.
    package var isPassing: Bool { isFull || isBusy || code == .unreachable }

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
