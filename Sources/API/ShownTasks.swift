import Base
import Core
import Wire

/// The client's view of a completed task.
struct ShownTask: Sendable {
    let stamp: TaskStamp
    let text: JSONText
}

/// A cache of completed tasks as rendered for clients, of all apps together: each is rendered once for many readers.
///
/// The row remains authoritative. Its stamp is read each time, and a text for another stamp is never found again. There
/// are two generations: a requested task moves to the young one, and when that is full, the old one is dropped.
/// Therefore every step is short, and nothing has to be sorted.
final class ShownTasks: Sendable {
    private struct Generations {
        var young: [TaskStamp: ShownTask] = [:]
        var old: [TaskStamp: ShownTask] = [:]
        var youngBytes = 0
    }

    /// The approximate bytes of a task besides its text.
    private static let overhead = 160

    private let generations = Locked(Generations())
    /// Maximum number of bytes of each generation.
    private let room: Int

    init(maximumBytes: Int = 8 << 20) { room = maximumBytes / 2 }

    func task(_ stamp: TaskStamp) -> ShownTask? {
        let (task, isOld) = generations.withLock { generations in
            if let task = generations.young[stamp] { return (Optional(task), false) }
            return (generations.old[stamp], true)
        }
        if let task, isOld { keep(task) }
        return task
    }

    func keep(_ task: ShownTask) {
        let bytes = task.text.bytes.count + Self.overhead
        guard bytes <= room else { return }
        let dropped = generations.withLock { generations -> [TaskStamp: ShownTask] in
            guard generations.young[task.stamp] == nil else { return [:] }
            var dropped: [TaskStamp: ShownTask] = [:]
            if generations.youngBytes + bytes > room {
                dropped = generations.old
                generations = Generations(old: generations.young)
            }
            generations.young[task.stamp] = task
            generations.youngBytes += bytes
            return dropped
        }
        withExtendedLifetime(dropped) {}  // Freed here, outside the lock.
    }

    /// Bytes of all cached tasks.
    var bytes: Int {
        generations.withLock { generations in
            [generations.young, generations.old].flatMap(\.values).reduce(0) {
                $0 + $1.text.bytes.count + Self.overhead
            }
        }
    }
}
