import Base
import Core

/// Moves to destinations that are planned and have not begun.
///
/// The commit of a plan and the move cannot be one step. A task that is stopped between the two has its move called off
/// here, before the stop is answered: a task that was cancelled replaces no file.
final class MovesAhead: Sendable {
    private let tasks = Locked<Set<TaskID>>([])

    /// Expects the move of a task. Called before the plan is stored, so that no stop behind the plan is missed.
    func expect(_ task: TaskID) { tasks.withLock { _ = $0.insert(task) } }

    func isExpected(_ task: TaskID) -> Bool { tasks.withLock { $0.contains(task) } }

    func callOff(_ stopped: [TaskID]) { tasks.withLock { $0.subtract(stopped) } }

    /// Whether the move of a task may begin, after which it cannot be called off any more.
    func begin(_ task: TaskID) -> Bool { tasks.withLock { $0.remove(task) != nil } }
}
