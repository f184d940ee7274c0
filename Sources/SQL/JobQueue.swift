import Base
import Synchronization

/// The closures that wait for the writer, in the order of arrival.
final class JobQueue: Sendable {
    enum Delivery {
        case jobs([Job])
        /// No job arrived in time.
        case nothing
        /// Closed and empty.
        case closed
    }

    private struct State {
        var jobs: [Job] = []
        var isClosed = false

        /// The delivery for a thread now; `nil` if the thread has to wait.
        mutating func delivery(atMost limit: Int) -> Delivery? {
            guard !jobs.isEmpty else { return isClosed ? .closed : nil }
            if jobs.count <= limit { return .jobs(jobs.takeAll()) }
            defer { jobs.removeFirst(limit) }
            return .jobs(Array(jobs[..<limit]))
        }
    }

    private let state = Monitor(State())
    /// The number of jobs that the writer has run.
    let performed = Atomic(0)

    /// Adds a job, unless the queue is closed.
    ///
    /// - Returns: Whether the job will be received.
    func put(_ job: Job) -> Bool {
        let isTaken = state.withLock { state in
            if !state.isClosed { state.jobs.append(job) }
            return !state.isClosed
        }
        if isTaken { state.wakeOne() }
        return isTaken
    }

    /// The number of jobs not yet received.
    var count: Int { state.withLock { $0.jobs.count } }

    /// Receives at most `limit` jobs, and waits while there is none.
    ///
    /// - Parameter patience: The maximum wait; `nil` waits without limit.
    func take(atMost limit: Int, patience: Duration? = nil) -> Delivery {
        guard let patience else { return state.wait { $0.delivery(atMost: limit) } }
        return state.wait(atMost: patience) { $0.delivery(atMost: limit) } ?? .nothing
    }

    /// Rejects further jobs. The present jobs are still delivered.
    func close() {
        state.withLock { $0.isClosed = true }
        state.wakeAll()
    }
}
