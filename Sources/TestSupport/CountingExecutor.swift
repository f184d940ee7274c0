import Base
import Dispatch

/// Runs jobs on the global queue and counts them: the periods between suspensions of the Swift tasks that prefer it.
package final class CountingExecutor: TaskExecutor {
    private let jobs = Locked(0)

    package init() {}

    package var count: Int { jobs.withLock { $0 } }

    package func enqueue(_ job: consuming ExecutorJob) {
        jobs.withLock { $0 += 1 }
        let job = UnownedJob(job)
        DispatchQueue.global().async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
