package import Base
package import Core
package import Store
import TransferEngine

/// Carries out what commits leave to do: wakes readers, the scheduler, the launch sender and the janitor.
///
/// The one place where the parts of the service meet; it holds no state but what is on its way.
package final class Outlet: Sendable {
    /// What the scheduler has not read yet.
    package let inbox: Inbox<Scheduler.Message>
    package let hub: EventHub
    package let attendance: Attendance
    /// Rung when a launch is due.
    package let launches: Doorbell
    package let relauncher: RelaunchTimes
    package let stalls: StallClock
    package let janitor: Inbox<JanitorErrand>
    package let transfers: LiveTransfers
    let meters: TransferMeters
    private let clock: Clock
    private let log: Log

    package init(
        inbox: Inbox<Scheduler.Message>, attendance: Attendance, transfers: LiveTransfers, meters: TransferMeters,
        clock: Clock, log: Log
    ) {
        self.inbox = inbox
        self.attendance = attendance
        self.transfers = transfers
        self.meters = meters
        self.clock = clock
        self.log = log
        hub = EventHub(clock: clock)
        launches = Doorbell(clock: clock)
        relauncher = RelaunchTimes(clock: clock)
        stalls = StallClock(clock: clock)
        janitor = Inbox(clock: clock)
    }

    /// Does what a commit left to do.
    package func handle(_ aftermath: Aftermath) {
        stop(aftermath.transfersToStop)
        for task in aftermath.abandonedUploads { inbox.tell(.abandonUpload(task)) }
        for task in aftermath.completedTasks {
            transfers.ended(task.id)
            hub.silence(task.id, in: task.session)
            meters.completed.add(1, task.outcome.rawValue)
            hub.tasks.signal(task.id)
            log.completed(task)
        }
        for session in aftermath.sessions.keys { hub.sessions.signal(session) }
        for (session, time) in aftermath.launchChecks { relauncher.check(session, at: time) }
        if let time = aftermath.stallCheckAt { stalls.note(time) }
        if aftermath.hasQueuedTasks { inbox.tell(.queued) }
        if aftermath.hasDueLaunches { launches.ring() }
        if let time = aftermath.wakeAt { inbox.tell(.wake(time)) }
        if aftermath.unreadContents > 0 { meters.contentsDropped.add(Int64(aftermath.unreadContents)) }
        if !aftermath.filesToRemove.isEmpty { janitor.tell(.remove(aftermath.filesToRemove)) }
    }

    /// Stops transfers, for a reason that is stored.
    package func stop(_ tasks: [TaskID]) {
        guard !tasks.isEmpty else { return }
        inbox.tell(.stop(tasks))
    }

    func live(_ payload: LiveEvent.Payload, _ task: ClaimedTask) {
        guard hub.hasStreams(task.session) else { return }
        hub.publish(LiveEvent(payload, of: task.id, task.number, task.specification, at: clock.now), to: task.session)
    }

    /// Wakes the streams of a session, which from now on have progress to sample.
    func transferBegan(in session: SessionID) {
        if hub.hasStreams(session) { hub.sessions.signal(session) }
    }
}

/// What the janitor is asked for.
package enum JanitorErrand: Hashable, Sendable {
    /// Files that no commit tells of.
    case remove([String])
    /// A file, unless it still belongs to something.
    case removeIfOrphan(String)

    package var files: [String] {
        switch self {
        case .remove(let files): files
        case .removeIfOrphan(let file): [file]
        }
    }
}
