import Synchronization

/// The part of an engine that runs closures that write, on one thread.
protocol Writer {
    /// The idle time before ``rest()``; `nil` if there is nothing to do then.
    var patience: Duration? { get }

    /// Runs all jobs and resumes each caller after its writes are durable or undone.
    func perform(_ jobs: [Job])

    /// Performs work deferred until no closure waits.
    func rest()

    /// Called once, at the end.
    func end()
}

/// The maximum number of closures in one commit.
private let groupLimit = 512

extension Writer {
    /// Runs until the queue is closed and empty.
    func work(on queue: JobQueue) {
        while true {
            switch queue.take(atMost: groupLimit, patience: patience) {
            case .jobs(let jobs):
                queue.performed.add(jobs.count, ordering: .relaxed)
                perform(jobs)
            case .nothing: rest()
            case .closed: return end()
            }
        }
    }
}

/// The outcome of a commit.
package struct Commit: Sendable {
    /// The number of closures made durable.
    package let writes: Int
    /// The time from the first closure until all callers were resumed.
    package let duration: Duration
    /// The length of SQLite's write-ahead log after the commit.
    package var logBytes = 0
    /// The number of round trips to PostgreSQL.
    package var roundTrips = 0
}
