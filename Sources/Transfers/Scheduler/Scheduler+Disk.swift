import Base
import Core
import Files
import Store
import TransferEngine

/// The tasks that resume when the disk is nearly full.
extension Scheduler {
    /// Maximum number of waiting tasks considered at a time.
    private static let diskWindow = 256

    /// Resumes, after each measurement, the tasks that fit on the disk, and makes room if no task fits.
    func shareRoom() async {
        if engine.room.hasSome { lookAgain() }
        guard batch.mayWaitForDisk, !agenda.withLock({ $0.isDraining }) else { return }
        do {
            let waiting = try await store.tasks.waitingForDisk(at: clock.now, limit: Self.diskWindow)
            batch.mayWaitForDisk = !waiting.isEmpty
            guard !waiting.isEmpty else { return }
            let room = engine.room.left
            let othersWait = room <= 0 ? try await store.tasks.hasQueued() : false
            switch DiskPlan.next(room: room, waiting: waiting, othersWait: othersWait) {
            case .wait: return
            case .goOn(let tasks): outlet.handle(try await store.tasks.endWaitForDisk(of: tasks, at: clock.now))
            case .empty(let task): try await empty(task)
            }
        } catch {
            if Store.Obstacle(error) == .away { return }
            log.error("tasks that wait for disk space could not be resumed", ("error", "\(error)"))
        }
    }

    /// Discards the bytes of a waiting task. The file is removed first: a transfer that does not find it restarts.
    private func empty(_ task: TaskID) async throws {
        guard flights[task] == nil else { return }
        try await folder.remove(folder.partial(task.rawValue), durably: true)
        outlet.handle(try await store.tasks.noteEmptied(task, at: clock.now))
        await logger(of: task).warning("the disk is full: a partial file was discarded, so that other transfers resume")
        engine.room.bell.ring()
    }
}
