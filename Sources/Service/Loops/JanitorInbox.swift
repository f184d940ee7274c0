import Base
import Core

/// Files and tasks for the janitor to look at.
final class JanitorInbox: Sendable {
    private let pending = Locked<(files: [String], tasks: [TaskID])>(([], []))
    let bell: Doorbell

    init(clock: Clock) { bell = Doorbell(clock: clock) }

    func remove(_ files: [String]) {
        pending.withLock { $0.files += files }
        bell.ring()
    }

    func look(at task: TaskID) {
        pending.withLock { $0.tasks.append(task) }
        bell.ring()
    }

    func take() -> (files: [String], tasks: [TaskID]) {
        pending.withLock { pending in
            let taken = pending
            pending = ([], [])
            return taken
        }
    }
}
