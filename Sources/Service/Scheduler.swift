import Base
import Core
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
    nonisolated let pauses = Locked(OriginPauses())
    /// When origins may be asked again, so that the loop wakes for the tasks that wait for them.
    var pauseEnds = PauseEnds()
    let conditions: CurrentConditions
    let meters: TransferMeters
    let cookies: CookieJars
    let inbox: SchedulerInbox
    nonisolated let fairness = Locked<FairShare>(FairShare())

    var transfers: [TaskID: Transfer] = [:]
    var tasksOfExchanges: [ExchangeID: TaskID] = [:]
    var settlements: [Settlement] = []
    /// How far content is on disk that no commit has told yet.
    var unrecorded: [ExchangeID: Int64] = [:]
    /// Tasks whose settlements are being stored.
    var storing: Set<TaskID> = []
    /// Commits that were begun, and those whose tasks were begun as well.
    var commits = (begun: 0, done: 0)
    var lanes: [Int64: FairShare.Lane] = [:]
    var sessions: [SessionID: KnownSession] = [:]
    var webhooks: [AppID: Bool] = [:]
    var appsWithCredentials: [AppID: Bool] = [:]
    var nextExchange: UInt64 = 1
    var uploadVersions = UploadVersions()
    /// Cancelled uploads whose last exchange has not ended yet.
    var abandonedUploads: Set<TaskID> = []
    /// Those whose servers are to be told, and the exchanges that tell them.
    var untold: ArraySlice<TaskID> = []
    var deletions: [ExchangeID: FairShare.Lane] = [:]
    /// Who runs alone, and when somebody may.
    nonisolated let solo = Locked(SoloTurns())
    var cursor = QueueCursor()
    var mayHaveQueued = true
    /// Something changed since the look at the queue began.
    var mustLookAgain = false
    /// A commit came since ``dueAt`` was read.
    var dueTimeIsStale = true
    /// When ``dueAt`` was read (monotonic ms).
    var dueTimeAskedAt: Int64 = 0
    var dueAt: Timestamp?
    /// Something became due, which the next commit moves into the queue.
    var hasDue = false
    /// When a lane that waits for conditions may go on by itself.
    var heldUntil: Timestamp?
    /// Tasks may wait for room on the disk.
    var mayWaitForDisk = true
    private(set) var isDraining = false

    /// What the scheduler remembers of a session that has transfers.
    struct KnownSession {
        var configuration: SessionConfiguration
        let app: String
        let identifier: String
    }

    /// What others tell the scheduler.
    enum Message: Sendable {
        case report(ExchangeReport)
        case settled(Settlement)
        case stop([TaskID])
        case abandonUpload(TaskID)
        case queued
        /// The disk was measured.
        case measured
        case wake(Timestamp)
        case sessionChanged(SessionID)
        case appChanged(AppID)
        case drain
    }

    init(
        store: Store, engine: TransferEngine, settings: ServiceSettings, live: LiveTransfers, outlet: Outlet,
        conditions: CurrentConditions, cookies: CookieJars, meters: TransferMeters, clock: Clock, log: Log
    ) {
        self.store = store
        self.engine = engine
        self.settings = settings
        folder = DataFolder(path: settings.dataFolder)
        self.live = live
        self.outlet = outlet
        self.conditions = conditions
        self.clock = clock
        self.log = log
        self.meters = meters
        self.cookies = cookies
        inbox = outlet.inbox
    }

    /// Runs until it is cancelled.
    package func run() async throws {
        try await withThrowingDiscardingTaskGroup { group in
            while !Task.isCancelled {
                for message in inbox.take() { await take(message, &group) }
                await expire()
                lookAround()
                await startDeletions()
                if hasWork { await advance() }
                await wait()
            }
        }
    }

    func wait() async {
        await askDueTime()
        guard hasNothingToDo else { return }
        let trialEnd = solo.withLock { $0.isTaken ? $0.next : nil }
        let next = [dueAt, pauseEnds.next, conditions.nextChange, heldUntil, trialEnd].compactMap { $0 }.min()
        let delay = next.map { max(0, min(($0 - clock.now).milliseconds, 60_000)) } ?? 60_000
        _ = await inbox.bell.wait(until: clock.monotonic() + delay)
    }

    /// Looks whether conditions changed, and whether a wait for them or for an origin is over.
    func lookAround() {
        let now = clock.now
        if conditions.changed(at: now) {
            lookAgain()
            applyConditions()
        }
        if let heldUntil, heldUntil <= now {
            lookAgain()
            self.heldUntil = nil
        }
        if let task = solo.withLock({ $0.endTrial(at: now) }) {
            lookAgain()
            clear(task)
        }
        if pauseEnds.removePast(at: now) {
            lookAgain()
            pauses.withLock { $0.prune(at: now) }
        }
    }

    var hasNothingToDo: Bool { inbox.isEmpty && !hasWork }

    /// Whether a commit is due: something to store, something to take, or a moment that has come.
    var hasWork: Bool { !settlements.isEmpty || cookies.haveChanged || wantsTasks || hasDue || isDue }

    var isDue: Bool { dueAt.map { $0 <= clock.now } ?? false }

    var wantsTasks: Bool {
        mayHaveQueued && !isDraining && !isSolo && freeSlots > 0
    }

    /// How many more transfers may begin. Without room for content one at a time: it may need none, and what keeps bytes
    /// from before cannot make room for others unless it is known to wait for some.
    var freeSlots: Int {
        if outlet.hasRoom { return settings.maximumTransfers - transfers.count - deletions.count }
        return outlet.isAboveFloor && transfers.isEmpty ? 1 : 0
    }

    /// Whether a task runs that nothing may run beside.
    var isSolo: Bool { solo.withLock { $0.isTaken } }

    /// Has the whole queue looked at, once more where that is being done.
    func lookAgain() { (mayHaveQueued, mustLookAgain) = (true, true) }

    func take(_ message: Message, _ group: inout ThrowingDiscardingTaskGroup<any Error>) async {
        switch message {
        case .report(let report): await take(report, &group)
        case .settled(let settlement): settled(settlement, &group)
        case .stop(let tasks): for task in tasks { stop(task, reason: .decided) }
        case .abandonUpload(let task): abandonUpload(task)
        case .queued:
            lookAgain()
            // Somebody may have to make room.
            if mayWaitForDisk, !outlet.hasRoom { outlet.measureDisk() }
        case .measured: await shareRoom()
        case .wake(let time): dueAt = min(dueAt ?? time, time)
        case .sessionChanged(let session): await applyBandwidth(to: session)
        case .appChanged(let app):
            webhooks[app] = nil
            appsWithCredentials[app] = nil
        case .drain:
            isDraining = true
            for task in transfers.keys { stop(task, reason: .interrupted) }
        }
    }

    /// Whether a task's transfer, or what it left to store, is still under way, or may have begun with a commit.
    func isTransferring(_ task: TaskID, since commit: Int = 0) -> Bool {
        commits.done < commit || transfers[task] != nil || storing.contains(task)
            || settlements.contains { $0.task == task }
    }

    /// Whether nothing is under way and everything is stored.
    package var isIdle: Bool {
        transfers.isEmpty && settlements.isEmpty && commits.done == commits.begun && !cookies.haveChanged
            && inbox.isEmpty
    }
}
