import Base
import CSQLite

/// A thread with a read-only connection. It never writes and never checkpoints.
final class Reader {
    private let connection: Connection
    private let mailbox: Mailbox<Job>

    /// Milliseconds a closure may run. A longer one would keep the log from being reused.
    private static let timeLimit: Int64 = 5000

    init(_ connection: Connection, mailbox: Mailbox<Job>) throws(SQLiteError) {
        self.connection = connection
        self.mailbox = mailbox
        try connection.execute("PRAGMA query_only = ON")
    }

    /// Works until the mailbox is closed and empty.
    func run() {
        while case .items(let jobs) = mailbox.take(atMost: 1) {
            for job in jobs { perform(job) }
        }
    }

    /// Runs one closure in one read transaction: it sees one snapshot.
    private func perform(_ job: Job) {
        do throws(SQLiteError) {
            try connection.execute("BEGIN")
            connection.deadline = Clock.system.monotonic() + Self.timeLimit
            let outcome = job.run(connection)
            connection.deadline = nil
            if !connection.isAutocommit { try connection.execute("ROLLBACK") }
            outcome.answer()
        } catch {
            job.fail(error)
        }
    }
}
