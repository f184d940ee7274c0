import Synchronization

/// What an engine does with closures that write, on one thread.
protocol Writer {
    var state: WriterState { get }

    /// For how long it may be without work before it rests; nil where there is nothing to do then.
    var patience: Duration? { get }

    /// Runs all jobs and answers each, once what it did is durable or undone.
    func perform(_ jobs: [Job])

    /// Does the work that is put off until no closure waits.
    func rest()

    /// The last that it does.
    func end()
}

/// Closures in one commit at most.
private let groupLimit = 512

extension Writer {
    /// Works until the mailbox is closed and empty.
    func work(on mailbox: Mailbox<Job>) {
        while true {
            switch mailbox.take(atMost: groupLimit, patience: patience) {
            case .items(let jobs):
                state.count(jobs.count)
                perform(jobs)
            case .nothing: rest()
            case .closed: return end()
            }
        }
    }
}

/// What a commit came to.
package struct Commit: Sendable {
    /// Closures that it made durable.
    package let writes: Int
    /// From the first closure until all were answered.
    package let duration: Duration
    /// Length of the write-ahead log of a file after it.
    package var logBytes = 0
    /// Times that a server was waited for.
    package var roundTrips = 0
}

/// What everybody may ask about the writer.
final class WriterState: Sendable {
    private let performed = Atomic(0)

    /// Closures that have had their turn.
    var performedWrites: Int { performed.load(ordering: .relaxed) }

    func count(_ jobs: Int) { performed.add(jobs, ordering: .relaxed) }
}
