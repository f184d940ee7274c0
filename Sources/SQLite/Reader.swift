import Base
import CSQLite

/// A thread with a read-only connection. It never writes and never checkpoints.
final class Reader {
    private let connection: Connection
    private let mailbox: Mailbox<Job>
    /// In milliseconds.
    private let longestRead: Int64

    init(_ connection: Connection, mailbox: Mailbox<Job>, longestRead: Duration) throws(SQLiteError) {
        self.connection = connection
        self.mailbox = mailbox
        self.longestRead = Int64(longestRead / .milliseconds(1))
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
            connection.deadline = Clock.system.monotonic() + longestRead
            let outcome = job.run(connection)
            connection.deadline = nil
            if !connection.isAutocommit { try connection.execute("ROLLBACK") }
            outcome.answer()
        } catch {
            job.fail(error)
        }
    }
}
