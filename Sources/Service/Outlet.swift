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

/// Messages for the scheduler, from any thread.
package final class SchedulerInbox: Sendable {
    private let messages = Locked<[Scheduler.Message]>([])
    let bell: Doorbell

    init(clock: Clock) { bell = Doorbell(clock: clock) }

    func tell(_ message: Scheduler.Message) {
        messages.withLock { $0.append(message) }
        bell.ring()
    }

    func take() -> [Scheduler.Message] {
        messages.withLock { messages in
            let taken = messages
            messages = []
            return taken
        }
    }

    var isEmpty: Bool { messages.withLock { $0.isEmpty } }
}

/// When which session's launch rule is asked again.
final class RelaunchTimes: Sendable {
    private struct Appointment: Comparable {
        var time: Timestamp
        var session: SessionID

        static func < (left: Self, right: Self) -> Bool { left.time < right.time }
    }

    private struct State {
        var times: [SessionID: Timestamp] = [:]
        /// Appointments that were moved stay, and mean nothing when their time has come.
        var queue = Heap<Appointment>()
    }

    private let state = Locked(State())
    let bell: Doorbell

    init(clock: Clock) { bell = Doorbell(clock: clock) }

    /// The earliest of several times counts: the rule is asked as things stand then, and tells when to ask again. A later
    /// one may have been found before a client left.
    func check(_ session: SessionID, at time: Timestamp) {
        let isEarlier = state.withLock { state in
            if let known = state.times[session], known <= time { return false }
            state.times[session] = time
            state.queue.insert(Appointment(time: time, session: session))
            return true
        }
        if isEarlier { bell.ring() }
    }

    /// Sessions whose time has come, up to `limit`, and the next time. Costs what it takes, however many wait.
    func takeDue(at now: Timestamp, limit: Int) -> (due: [SessionID], next: Timestamp?) {
        state.withLock { state in
            var due: [SessionID] = []
            while due.count < limit, let first = state.queue.least, first.time <= now {
                _ = state.queue.popLeast()
                guard state.times[first.session] == first.time else { continue }
                state.times[first.session] = nil
                due.append(first.session)
            }
            return (due, state.queue.least?.time)
        }
    }
}

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

/// What is counted about transfers.
package struct TransferMeters: Sendable {
    let completed: Metrics.Counter
    let retries: Metrics.Counter
    let received: Metrics.Counter
    let sent: Metrics.Counter
    let contentsDropped: Metrics.Counter

    init(_ metrics: Metrics) {
        completed = metrics.counter(
            "urlsessiond_tasks_completed_total", "Tasks that ended, by outcome.",
            label: ("outcome", Outcome.allCases.map(\.name)))
        retries = metrics.counter("urlsessiond_task_retries_total", "Attempts that are followed by another.")
        received = metrics.counter("urlsessiond_received_bytes_total", "Body bytes received from origins.")
        sent = metrics.counter("urlsessiond_sent_bytes_total", "Body bytes sent to origins.")
        contentsDropped = metrics.counter(
            "urlsessiond_contents_dropped_total", "Contents that expired before anybody acknowledged them.")
    }
}
