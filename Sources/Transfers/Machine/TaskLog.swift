package import Base
package import Core
import Store

/// Log lines about a task, which name it as its app does.
extension Log {
    /// A log whose lines are about one task.
    func of(_ task: TaskName) -> Log {
        let log = with(("app", task.app), ("session", task.session), ("task", task.number))
        guard let clientTaskId = task.clientTaskId else { return log }
        return log.with("clientTaskId", clientTaskId)
    }

    package func created(_ task: TaskName, _ kind: TaskKind) {
        of(task).info("task created", ("kind", kind.rawValue))
    }

    func started(_ task: TaskName, attempt: Int, offset: Int64) {
        of(task).info("task started", ("attempt", attempt), ("offset", offset))
    }

    func willRetry(_ task: TaskName, _ reason: AttemptRecord?, at time: Timestamp) {
        of(task).info(
            "task will be retried", ("error", reason?.error?.summary ?? ""), ("status", reason?.statusCode ?? 0),
            ("nextAt", time.rfc3339))
    }

    func completed(_ task: CompletedTask) {
        of(task.name).info(
            "task completed", ("outcome", task.outcome.rawValue), ("status", task.statusCode ?? 0),
            ("error", task.error?.summary ?? ""))
    }
}

extension TaskError {
    /// The code's name, with the underlying error if there is one.
    fileprivate var summary: String {
        guard let underlying else { return "\(code)" }
        return "\(code) (\(underlying.domain) \(underlying.code))"
    }
}
