package import Base
import Core
import Files
package import Store
import TransferEngine

/// Carries out what commits leave to do: wakes readers, the scheduler, the launch sender and the janitor.
///
/// The one place where the parts of the service meet; it holds no state but what is on its way.
package final class Outlet: Sendable {
    /// What the scheduler has not read yet.
    let inbox: SchedulerInbox
    package let hub: EventHub
    package let attendance: Attendance
    /// Rung when a launch is due.
    package let launches: Doorbell
    let relauncher: RelaunchTimes
    let janitor: JanitorInbox
    private let live: LiveTransfers
    private let room: DiskRoom
    private let meters: TransferMeters
    private let clock: Clock
    private let log: Log

    init(
        inbox: SchedulerInbox, hub: EventHub, attendance: Attendance, relauncher: RelaunchTimes,
        janitor: JanitorInbox, live: LiveTransfers, room: DiskRoom, meters: TransferMeters, clock: Clock,
        log: Log
    ) {
        self.inbox = inbox
        self.hub = hub
        self.attendance = attendance
        self.relauncher = relauncher
        self.janitor = janitor
        self.live = live
        self.room = room
        self.meters = meters
        self.clock = clock
        self.log = log
        launches = Doorbell(clock: clock)
    }

    /// Does what a commit left to do.
    package func handle(_ aftermath: Aftermath) {
        if !aftermath.transfersToStop.isEmpty { inbox.tell(.stop(aftermath.transfersToStop)) }
        for task in aftermath.abandonedUploads { inbox.tell(.abandonUpload(task)) }
        for task in aftermath.completedTasks {
            live.ended(task.id)
            hub.silence(task.id, in: task.session)
            meters.completed.add(1, task.outcome.name)
            hub.tasks.signal(task.id)
            log.completed(task)
        }
        for session in aftermath.sessions.keys { hub.sessions.signal(session) }
        for (session, time) in aftermath.launchChecks { relauncher.check(session, at: time) }
        if aftermath.hasQueuedTasks { inbox.tell(.queued) }
        if aftermath.hasDueLaunches { launches.ring() }
        if let time = aftermath.wakeAt { inbox.tell(.wake(time)) }
        if aftermath.unreadContents > 0 { meters.contentsDropped.add(Int64(aftermath.unreadContents)) }
        if !aftermath.filesToRemove.isEmpty { janitor.remove(aftermath.filesToRemove) }
    }

    func live(_ payload: LiveEvent.Payload, _ task: ClaimedTask) {
        guard hub.hasStreams(task.session) else { return }
        hub.publish(
            LiveEvent(
                payload: payload, task: task.id, taskIdentifier: task.number,
                clientTaskId: task.specification.clientTaskId, group: task.specification.group,
                occurredAt: clock.now),
            to: task.session)
    }

    /// Wakes the streams of a session, which from now on have progress to sample.
    func transferBegan(in session: SessionID) {
        if hub.hasStreams(session) { hub.sessions.signal(session) }
    }

    func isAttached(_ session: SessionID) -> Bool { attendance.presence(of: session).isAttached }

    /// Whether the disk's floor is free.
    var isAboveFloor: Bool { room.isAboveFloor }

    /// Whether new content may be written and leaves the floor free.
    var hasRoom: Bool { room.left > 0 }

    /// Has the disk measured at once, and the scheduler told.
    func measureDisk() { room.bell.ring() }

    /// Has the janitor remove files that no commit tells of.
    func removeFiles(_ files: [String]) { if !files.isEmpty { janitor.remove(files) } }

    /// Has the janitor look whether a partial file still belongs to a task.
    func removePartialIfOrphan(_ task: TaskID) { janitor.look(at: task) }
}
