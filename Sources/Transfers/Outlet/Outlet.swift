package import Base
package import Core
package import Store
import TransferEngine

/// Runs the aftermath of commits: wakes readers, the scheduler, the launch sender and the janitor.
///
/// Connects the parts of the service. Its only state is the messages in flight.
package final class Outlet: Sendable {
    /// Messages that the scheduler has not read yet.
    package let inbox: Inbox<Scheduler.Message>
    package let hub: EventHub
    package let arrivals: Arrivals
    package let attendance: Attendance
    /// Rung when a launch is due.
    package let launches: Doorbell
    /// Rung when a step on a set is due.
    package let sets: Doorbell
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
        arrivals = Arrivals(clock: clock)
        launches = Doorbell(clock: clock)
        sets = Doorbell(clock: clock)
        relauncher = RelaunchTimes(clock: clock)
        stalls = StallClock(clock: clock)
        janitor = Inbox(clock: clock)
    }

    /// Runs the aftermath of a commit.
    package func handle(_ aftermath: Aftermath) {
        stop(aftermath.transfersToStop)
        for task in aftermath.abandonedUploads { inbox.tell(.abandonUpload(task)) }
        if !aftermath.deletedUploads.isEmpty { inbox.tell(.abandonDeleted(aftermath.deletedUploads)) }
        for task in aftermath.completedTasks {
            transfers.ended(task.id)
            hub.silence(task.id, in: task.session)
            meters.completed.add(1, task.outcome.rawValue)
            hub.tasks.signal(task.id)
            arrivals.completed(task.id)
            log.completed(task)
        }
        if aftermath.hasDeletedTasks {
            for task in hub.tasks.keys { hub.tasks.signal(task) }
        }
        for session in aftermath.sessions.keys { hub.sessions.signal(session) }
        for (session, time) in aftermath.launchChecks { relauncher.check(session, at: time) }
        if let time = aftermath.stallCheckAt { stalls.note(time) }
        if aftermath.hasQueuedTasks { inbox.tell(.queued) }
        if aftermath.hasDueLaunches { launches.ring() }
        if aftermath.hasDueSets { sets.ring() }
        if let time = aftermath.wakeAt { inbox.tell(.wake(time)) }
        if aftermath.unreadContents > 0 { meters.contentsDropped.add(Int64(aftermath.unreadContents)) }
        if !aftermath.filesToRemove.isEmpty { janitor.tell(.remove(aftermath.filesToRemove)) }
    }

    /// Stops transfers for a reason that is already stored.
    package func stop(_ tasks: [TaskID]) {
        guard !tasks.isEmpty else { return }
        inbox.tell(.stop(tasks))
    }

    func live(_ payload: LiveEvent.Payload, _ task: ClaimedTask) {
        guard hub.hasStreams(task.session) else { return }
        hub.publish(LiveEvent(payload, of: task.id, task.number, task.specification, at: clock.now), to: task.session)
    }

    /// Wakes the streams of a session, which have progress to sample from now on.
    func transferBegan(in session: SessionID) {
        if hub.hasStreams(session) { hub.sessions.signal(session) }
    }
}

/// Work for the janitor.
package enum JanitorErrand: Hashable, Sendable {
    /// Files that no commit refers to.
    case remove([String])
    /// A file to remove unless a commit refers to it.
    case removeIfOrphan(String)

    package var files: [String] {
        switch self {
        case .remove(let files): files
        case .removeIfOrphan(let file): [file]
        }
    }
}
