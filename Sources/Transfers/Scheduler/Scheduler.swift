package import Base
import Buckets
package import Core
package import Files
package import Store
package import TransferEngine

/// Takes tasks from the queue, has them transferred, and stores how that ended.
///
/// One loop: messages are taken and handed to the machines of the transfers, one commit stores what follows and takes the
/// next tasks from the queue, and the effects are carried out. What arrives while a commit is written waits for the next
/// turn, so that commits grow with the load instead of its latency.
package actor Scheduler {
    let store: Store
    let engine: TransferEngine
    let settings: ServiceSettings
    let folder: DataFolder
    let clock: Clock
    let log: Log
    let outlet: Outlet
    /// What the loop decides from; the writer's thread and who asks why a task waits look at it too.
    package nonisolated let agenda: Locked<Agenda>
    let conditions: CurrentConditions

    var transfers: [TaskID: Transfer] = [:]
    var handles: [TaskID: Handles] = [:]
    var exchanges = Exchanges()
    var batch = Batch()
    var commits = Commits()
    var cache: Cache
    var uploads = Uploads()
    var turn = Turn()
    var neighbours = Neighbours()

    /// What a transfer under way holds besides its machine.
    struct Handles {
        /// Shared by all who write to its partial file.
        let sync = SharedSync()
        /// Rung when the task was decided about elsewhere, so that its object is not made any more.
        let decided = Doorbell()
        /// Reads its content once more.
        var reader: ContentReader?
        /// Writes its content into a bucket.
        var writer: ObjectWriter?
        /// Fetches its body.
        var fetching: (client: BucketClient, exchange: ExchangeID)?
    }

    /// The exchanges under way.
    struct Exchanges {
        struct Running {
            let task: TaskID
            let url: ParsedURL
            /// The session's cookies that it was given; nil where the session wants none.
            let cookies: [String]?
        }

        private(set) var next = ExchangeID(rawValue: 1)
        var running: [ExchangeID: Running] = [:]

        /// The next exchange. No other gets its number.
        mutating func take() -> ExchangeID {
            defer { next = ExchangeID(rawValue: next.rawValue + 1) }
            return next
        }
    }

    /// What the next commit stores.
    struct Batch {
        var settlements: [Settlement] = []
        /// Sessions of transfers that ended.
        var sessions: Set<SessionID> = []
        /// Transfers of which more is on disk, or in a bucket, than was stored.
        var advancing: Set<TaskID> = []
        /// How far content is, where no commit has recorded it yet.
        var unrecorded: [ExchangeID: Int64] = [:]
        /// Tasks may wait for room on the disk.
        var mayWaitForDisk = true
    }

    struct Commits {
        /// Commits that were begun, and those whose tasks were begun as well.
        var (begun, done) = (0, 0)
        /// Tasks whose settlements are being stored.
        var storing: Set<TaskID> = []
        /// A commit may have taken tasks of which the scheduler was not told.
        var hasLostTasks = false
    }

    /// What is remembered of resumable uploads.
    struct Uploads {
        var versions = UploadVersions()
        /// Cancelled uploads whose last exchange has not ended yet.
        var abandoned: Set<TaskID> = []
        /// Cancelled uploads whose servers have still to be told.
        var untold: ArraySlice<TaskID> = []
    }

    /// What a turn of the loop leaves to do.
    struct Turn {
        /// Downloads in segments that may get more connections.
        var widening: Set<TaskID> = []
        /// Work on disk threads and with buckets, which tells the inbox when it is done.
        var errands: [@Sendable () async -> Void] = []
        /// Rung after each turn, for those who wait for what it does.
        var bells: [ObjectIdentifier: Doorbell] = [:]
    }

    struct Neighbours {
        /// Nodes that transfer, and share a session's bandwidth.
        var transferring = 1
        /// Others may change cookies of a session.
        var haveStore = false
    }

    /// An event for a transfer's machine.
    package struct Incident: Sendable {
        let event: Transfer.Event

        init(_ event: Transfer.Event) { self.event = event }
    }

    /// What others tell the scheduler.
    package enum Message: Sendable {
        case report(ExchangeReport)
        case settled(Settlement)
        /// An event of a transfer that no exchange reports.
        case event(TaskID, Incident)
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

    var live: LiveTransfers { outlet.transfers }
    nonisolated var inbox: Inbox<Message> { outlet.inbox }
    nonisolated var meters: TransferMeters { outlet.meters }

    package init(
        store: Store, engine: TransferEngine, folder: DataFolder, settings: ServiceSettings, outlet: Outlet,
        conditions: CurrentConditions, cookies: CookieJars, clock: Clock, log: Log
    ) {
        self.store = store
        self.engine = engine
        self.settings = settings
        self.folder = folder
        self.outlet = outlet
        self.conditions = conditions
        self.clock = clock
        self.log = log
        cache = Cache(cookies: cookies)
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
                for message in inbox.take() { await take(message) }
                storeAdvances()
                runErrands(&group)
                await expire()
                await lookAround()
                await startDeletions()
                if hasWork { await advance() }
                await claimPlaces()
                await widenAll()
                runErrands(&group)
                for bell in turn.bells.values { bell.ring() }
                await wait()
            }
        }
    }

    private func runErrands(_ group: inout ThrowingDiscardingTaskGroup<any Error>) {
        for errand in turn.errands { group.addTask { await errand() } }
        turn.errands = []
    }

    private func wait() async {
        await askDueTime()
        guard hasNothingToDo else { return }
        let next = [agenda.withLock { $0.next }, conditions.nextChange].compactMap { $0 }.min()
        let delay = next.map { max(0, min(($0 - clock.now).milliseconds, 60_000)) } ?? 60_000
        _ = await inbox.bell.wait(until: clock.monotonic() + delay)
    }

    /// Looks whether conditions changed, and whether a wait for them or for an origin is over.
    private func lookAround() async {
        let now = clock.now
        if conditions.changed(at: now) {
            lookAgain()
            await applyConditions()
        }
        if let task = agenda.withLock({ $0.endWaits(at: now) }) { clear(task) }
    }

    var hasNothingToDo: Bool {
        inbox.isEmpty && !hasWork && batch.advancing.isEmpty && !agenda.withLock { $0.claimsPlaces }
    }

    /// Whether a commit is due: something to store, something to take, or a moment that has come.
    private var hasWork: Bool {
        let (room, now) = (room, clock.now)
        return !batch.settlements.isEmpty || commits.hasLostTasks || cache.cookies.haveChanged
            || agenda.withLock { $0.hasWork(room, at: now) }
    }

    /// What the disk takes, and the bucket of contents where there is one.
    var room: Agenda.Room {
        guard settings.contents?.access.isOpen ?? true else { return .nothing }
        return engine.room.hasSome ? .anything : engine.room.isAboveFloor ? .oneTransfer : .nothing
    }

    func lookAgain() { agenda.withLock { $0.lookAgain() } }

    private func take(_ message: Message) async {
        switch message {
        case .report(let report): await take(report)
        case .settled(let settlement): settled(settlement)
        case .event(let task, let incident): await feed(incident.event, to: task)
        case .stop(let tasks): for task in tasks { await stop(task, .decided) }
        case .abandonUpload(let task): abandonUpload(task)
        case .queued:
            lookAgain()
            // A waiting task may have to make room.
            if batch.mayWaitForDisk, !engine.room.hasSome { engine.room.bell.ring() }
        case .measured: await shareRoom()
        case .wake(let time): agenda.withLock { $0.wake(at: time) }
        case .sessionChanged(let session):
            await applyBandwidth(to: session)
            if neighbours.haveStore { await cache.cookies.refresh(session, store) }
        case .appChanged(let app): cache.apps[app] = nil
        case .othersCommitted:
            cache.apps = [:]
            agenda.withLock {
                $0.dueTimeMayHaveChanged()
                $0.places?.askAgain()
            }
            await removeUselessFiles()
        case .nodes(let count, let hasOthers):
            neighbours = Neighbours(transferring: count, haveStore: hasOthers)
            for session in Set(transfers.values.map(\.task.session)) { shareBandwidth(of: session) }
        case .drain:
            agenda.withLock { $0.drain() }
            for task in transfers.keys { await stop(task, .interrupted) }
        }
    }

    private func take(_ report: ExchangeReport) async {
        switch report {
        case .informational(let exchange, let head): await feed(.informational(exchange, head), of: exchange)
        case .head(let exchange, let head, let judgement):
            await feed(.head(exchange, head, judgement), of: exchange)
        case .durable(let exchange, let offset, let digest):
            await feed(.durable(exchange, offset, digest), of: exchange)
        case .part(let exchange, let part): await feed(.part(exchange, part), of: exchange)
        case .ended(let exchange, let result): await end(exchange, result)
        }
    }

    // MARK: Seen from outside

    /// The transfers under way, with their sessions.
    package var underWay: [TaskID: SessionID] { transfers.mapValues(\.task.session) }

    /// Whether a task's transfer, or what it left to store, is still under way, or may have begun with a commit.
    package func isTransferring(_ task: TaskID, since commit: Int = 0) -> Bool {
        commits.done < commit || transfers[task] != nil || commits.storing.contains(task)
            || batch.settlements.contains { $0.task == task }
    }

    /// Waits until the engine has let go of a task's partial file and what it held is stored, for ten seconds at most.
    package func waitUntilStopped(_ task: TaskID) async {
        let commit = commits.begun
        await wait(until: clock.monotonic() + 10_000) { !$0.isTransferring(task, since: commit) }
    }

    /// Waits until a condition holds after a turn of the loop, at the latest until the monotonic `deadline` (ms).
    package func wait(until deadline: Int64, for condition: @Sendable (isolated Scheduler) -> Bool) async {
        let bell = Doorbell(clock: clock)
        turn.bells[ObjectIdentifier(bell)] = bell
        defer { turn.bells[ObjectIdentifier(bell)] = nil }
        while !condition(self), await bell.wait(until: deadline) {}
    }

    /// Whether nothing is under way and everything is stored.
    package var isIdle: Bool {
        transfers.isEmpty && batch.settlements.isEmpty && !commits.hasLostTasks && commits.done == commits.begun
            && !cache.cookies.haveChanged && inbox.isEmpty
    }
}
