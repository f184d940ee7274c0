import Base
import Core
import Files
import Store
import TransferEngine

/// Takes tasks from the queue, has them transferred, and stores how that ended.
///
/// One loop: what the engine reported since the last turn is judged and stored in one commit, which takes the next tasks
/// from the queue as well. What arrives while a commit is written waits for the next turn, so that commits grow with
/// the load instead of its latency.
package actor Scheduler {
    let store: Store
    let engine: TransferEngine
    let settings: ServiceSettings
    let folder: DataFolder
    let live: LiveTransfers
    let clock: Clock
    let log: Log
    let outlet: Outlet
    /// What the loop decides from; the writer's thread and who asks why a task waits look at it too.
    nonisolated let agenda: Locked<Agenda>
    let conditions: CurrentConditions
    let meters: TransferMeters
    let cookies: CookieJars
    let inbox: Inbox<Message>

    var transfers: [TaskID: Transfer] = [:]
    var tasksOfExchanges: [ExchangeID: TaskID] = [:]
    var settlements: [Settlement] = []
    /// Sessions of transfers that ended since the last commit began.
    var settledSessions: Set<SessionID> = []
    /// A commit may have taken tasks of which the scheduler was not told.
    var hasLostTasks = false
    /// How far content is on disk, where no commit has recorded it yet.
    var unrecorded: [ExchangeID: Int64] = [:]
    /// Tasks whose settlements are being stored.
    var storing: Set<TaskID> = []
    /// Commits that were begun, and those whose tasks were begun as well.
    var commits = (begun: 0, done: 0)
    var sessions: [SessionID: KnownSession] = [:]
    var webhooks: [AppID: Bool] = [:]
    var appsWithCredentials: [AppID: Bool] = [:]
    var nextExchange: UInt64 = 1
    var uploadVersions = UploadVersions()
    /// Cancelled uploads whose last exchange has not ended yet.
    var abandonedUploads: Set<TaskID> = []
    /// Cancelled uploads whose servers have still to be told.
    var untold: ArraySlice<TaskID> = []
    /// Downloads in segments that may get more connections.
    var widening: Set<TaskID> = []
    /// Downloads in segments of which more is on disk than was stored.
    var advancing: Set<TaskID> = []
    /// Nodes that transfer, and share a session's bandwidth.
    var transferringNodes = 1
    /// Others may change cookies of a session.
    var hasOtherNodes = false
    /// Tasks may wait for room on the disk.
    var mayWaitForDisk = true
    /// Rung after each turn of the loop, for those who wait for what it does.
    private var turnBells: [ObjectIdentifier: Doorbell] = [:]

    /// What the scheduler remembers of a session that has transfers, and what they all look at.
    final class KnownSession: Sendable {
        let configuration: SessionConfiguration
        let revision: Int64
        let app: String
        let identifier: String

        init(configuration: SessionConfiguration, revision: Int64 = 0, app: String, identifier: String) {
            self.configuration = configuration
            self.revision = revision
            self.app = app
            self.identifier = identifier
        }
    }

    /// What others tell the scheduler.
    enum Message: Sendable {
        case report(ExchangeReport)
        case settled(Settlement)
        /// What came of reading a content in order.
        case read(TaskID, ContentReader, Result<Range<Int64>?, SystemError>)
        /// What came of writing into a bucket.
        case wrote(TaskID, ExchangeID, ObjectWriter.News)
        /// The parts of a content are all in its bucket since before a crash.
        case completeObject(TaskID)
        /// A body has to be fetched from its bucket.
        case fetchBody(TaskID)
        case stop([TaskID])
        case abandonUpload(TaskID)
        case queued
        /// The disk was measured.
        case measured
        case wake(Timestamp)
        case sessionChanged(SessionID)
        case appChanged(AppID)
        /// Other nodes changed what is remembered here.
        case othersCommitted
        /// So many nodes transfer, and whether there are others at all.
        case nodes(transferring: Int, hasOthers: Bool)
        case drain
    }

    init(
        store: Store, engine: TransferEngine, folder: DataFolder, settings: ServiceSettings, outlet: Outlet,
        conditions: CurrentConditions, cookies: CookieJars, clock: Clock, log: Log
    ) {
        self.store = store
        self.engine = engine
        self.settings = settings
        self.folder = folder
        live = outlet.transfers
        self.outlet = outlet
        self.conditions = conditions
        self.clock = clock
        self.log = log
        meters = outlet.meters
        self.cookies = cookies
        inbox = outlet.inbox
        agenda = Locked(
            Agenda(
                maximumTransfers: settings.maximumTransfers,
                maximumTransfersPerHost: settings.maximumTransfersPerHost,
                takesTasks: settings.roles.contains(.transfer), isShared: store.node != nil,
                slotPatience: settings.slotPatience))
    }

    /// Runs until it is cancelled.
    package func run() async throws {
        try await withThrowingDiscardingTaskGroup { group in
            while !Task.isCancelled {
                for message in inbox.take() { await take(message, &group) }
                storeAdvances(&group)
                await expire()
                await lookAround()
                await startDeletions()
                if hasWork { await advance() }
                await claimPlaces()
                widenAll()
                for bell in turnBells.values { bell.ring() }
                await wait()
            }
        }
    }

    func wait() async {
        await askDueTime()
        guard hasNothingToDo else { return }
        let next = [agenda.withLock { $0.next }, conditions.nextChange].compactMap { $0 }.min()
        let delay = next.map { max(0, min(($0 - clock.now).milliseconds, 60_000)) } ?? 60_000
        _ = await inbox.bell.wait(until: clock.monotonic() + delay)
    }

    /// Looks whether conditions changed, and whether a wait for them or for an origin is over.
    func lookAround() async {
        let now = clock.now
        if conditions.changed(at: now) {
            lookAgain()
            applyConditions()
        }
        if let task = agenda.withLock({ $0.endWaits(at: now) }) { clear(task) }
    }

    var hasNothingToDo: Bool { inbox.isEmpty && !hasWork && !agenda.withLock { $0.claimsPlaces } }

    /// Whether a commit is due: something to store, something to take, or a moment that has come.
    var hasWork: Bool {
        let (room, now) = (room, clock.now)
        return !settlements.isEmpty || hasLostTasks || cookies.haveChanged
            || agenda.withLock { $0.hasWork(room, at: now) }
    }

    /// What the disk takes, and the bucket of contents where there is one.
    var room: Agenda.Room {
        guard settings.contents?.access.isOpen ?? true else { return .nothing }
        return engine.room.hasSome ? .anything : engine.room.isAboveFloor ? .oneTransfer : .nothing
    }

    func lookAgain() { agenda.withLock { $0.lookAgain() } }

    func take(_ message: Message, _ group: inout ThrowingDiscardingTaskGroup<any Error>) async {
        switch message {
        case .report(let report): await take(report, &group)
        case .settled(let settlement): settled(settlement, &group)
        case .read(let task, let reader, let result): await read(task, reader, result, &group)
        case .wrote(let task, let exchange, let news): await wrote(task, exchange, news, &group)
        case .completeObject(let task): completeObject(task, &group)
        case .fetchBody(let task): fetchBody(of: task, &group)
        case .stop(let tasks): for task in tasks { stop(task, reason: .decided) }
        case .abandonUpload(let task): abandonUpload(task)
        case .queued:
            lookAgain()
            // A waiting task may have to make room.
            if mayWaitForDisk, !engine.room.hasSome { engine.room.bell.ring() }
        case .measured: await shareRoom()
        case .wake(let time): agenda.withLock { $0.wake(at: time) }
        case .sessionChanged(let session):
            await applyBandwidth(to: session)
            if hasOtherNodes { await cookies.refresh(session, store) }
        case .appChanged(let app):
            webhooks[app] = nil
            appsWithCredentials[app] = nil
        case .othersCommitted:
            webhooks = [:]
            appsWithCredentials = [:]
            agenda.withLock {
                $0.dueTimeMayHaveChanged()
                $0.places?.askAgain()
            }
            await removeUselessFiles()
        case .nodes(let count, let hasOthers):
            (transferringNodes, hasOtherNodes) = (count, hasOthers)
            for session in Set(transfers.values.map(\.task.session)) { shareBandwidth(of: session) }
        case .drain:
            agenda.withLock { $0.drain() }
            for task in transfers.keys { stop(task, reason: .interrupted) }
        }
    }

    /// The transfers under way, with their sessions.
    var underWay: [TaskID: SessionID] { transfers.mapValues(\.task.session) }

    /// Whether a task's transfer, or what it left to store, is still under way, or may have begun with a commit.
    func isTransferring(_ task: TaskID, since commit: Int = 0) -> Bool {
        commits.done < commit || transfers[task] != nil || storing.contains(task)
            || settlements.contains { $0.task == task }
    }

    /// Waits until the engine has let go of a task's partial file and what it held is stored, for ten seconds at most.
    func waitUntilStopped(_ task: TaskID) async {
        let commit = commits.begun
        await wait(until: clock.monotonic() + 10_000) { !$0.isTransferring(task, since: commit) }
    }

    /// Waits until a condition holds after a turn of the loop, at the latest until the monotonic `deadline` (ms).
    func wait(until deadline: Int64, for condition: @Sendable (isolated Scheduler) -> Bool) async {
        let bell = Doorbell(clock: clock)
        turnBells[ObjectIdentifier(bell)] = bell
        defer { turnBells[ObjectIdentifier(bell)] = nil }
        while !condition(self), await bell.wait(until: deadline) {}
    }

    /// Whether nothing is under way and everything is stored.
    package var isIdle: Bool {
        transfers.isEmpty && settlements.isEmpty && !hasLostTasks && commits.done == commits.begun
            && !cookies.haveChanged
            && inbox.isEmpty
    }
}
