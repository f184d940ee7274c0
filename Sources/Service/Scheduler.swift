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
    var pauses = OriginPauses()
    /// When origins may be asked again, so that the loop wakes for the tasks that wait for them.
    var pauseEnds: [Timestamp] = []
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
    var configurations: [SessionID: SessionConfiguration] = [:]
    var webhooks: [AppID: Bool] = [:]
    var appsWithCredentials: [AppID: Bool] = [:]
    var nextExchange: UInt64 = 1
    var uploadVersions = UploadVersions()
    /// Cancelled uploads whose last exchange has not ended yet.
    var abandonedUploads: Set<TaskID> = []
    var cursor: Int64 = 0
    var mayHaveQueued = true
    /// A commit came since ``dueAt`` was read.
    var dueTimeIsStale = true
    /// When ``dueAt`` was read (monotonic ms).
    var dueTimeAskedAt: Int64 = 0
    var dueAt: Timestamp?
    /// Something became due, which the next commit moves into the queue.
    var hasDue = false
    /// When a lane that waits for conditions may go on by itself.
    var heldUntil: Timestamp?
    private(set) var isDraining = false

    /// What others tell the scheduler.
    enum Message: Sendable {
        case report(ExchangeReport)
        case settled(Settlement)
        case stop([TaskID])
        case abandonUpload(TaskID)
        case queued
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
                if hasWork { await advance() }
                await wait()
            }
        }
    }

    func wait() async {
        await askDueTime()
        guard hasNothingToDo else { return }
        let next = [dueAt, pauseEnds.min(), conditions.nextChange, heldUntil].compactMap { $0 }.min()
        let delay = next.map { max(0, min(($0 - clock.now).milliseconds, 60_000)) } ?? 60_000
        _ = await inbox.bell.wait(until: clock.monotonic() + delay)
    }

    /// Looks whether conditions changed, and whether a wait for them or for an origin is over.
    func lookAround() {
        let now = clock.now
        if conditions.changed(at: now) {
            mayHaveQueued = true
            applyConditions()
        }
        if let heldUntil, heldUntil <= now {
            mayHaveQueued = true
            self.heldUntil = nil
        }
        if pauseEnds.contains(where: { $0 <= now }) {
            mayHaveQueued = true
            pauseEnds.removeAll { $0 <= now }
            pauses.prune(at: now)
        }
    }

    var hasNothingToDo: Bool { inbox.isEmpty && !hasWork }

    /// Whether a commit is due: something to store, something to take, or a moment that has come.
    var hasWork: Bool { !settlements.isEmpty || cookies.haveChanged || wantsTasks || hasDue || isDue }

    var isDue: Bool { dueAt.map { $0 <= clock.now } ?? false }

    var wantsTasks: Bool {
        mayHaveQueued && !isDraining && transfers.count < settings.maximumTransfers && outlet.hasRoom
    }

    func take(_ message: Message, _ group: inout ThrowingDiscardingTaskGroup<any Error>) async {
        switch message {
        case .report(let report): await take(report, &group)
        case .settled(let settlement):
            settlements.append(settlement)
            release(settlement.task)
        case .stop(let tasks): for task in tasks { stop(task, reason: .decided) }
        case .abandonUpload(let task): await abandonUpload(task)
        case .queued: mayHaveQueued = true
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
