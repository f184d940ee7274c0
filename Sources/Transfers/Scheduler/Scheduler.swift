package import Base
import Buckets
package import Core
package import Files
package import Store
package import TransferEngine

/// Claims tasks from the queue, has them transferred, and stores their settlements.
///
/// One loop: messages are read and passed to the state machines of the transfers, one commit stores the results and
/// claims the next tasks, and the effects run. Messages that arrive during a commit wait for the next turn, so that
/// commits grow with the load instead of its latency.
package actor Scheduler {
    let store: Store
    let engine: TransferEngine
    let settings: ServiceSettings
    let folder: DataFolder
    let clock: Clock
    let log: Log
    let outlet: Outlet
    /// The state from which the loop decides. The writer's thread and the explanations of waiting tasks read it too.
    package nonisolated let agenda: Locked<Agenda>
    let conditions: CurrentConditions

    var flights: [TaskID: Flight] = [:]
    var exchanges = Exchanges()
    var batch = Batch()
    var commits = Commits()
    var cache: Cache
    var uploads = Uploads()
    var turn = Turn()
    var neighbours = Neighbours()

    /// A transfer in flight: its machine, and what the machine must not hold.
    ///
    /// A class, so that the machine is mutated in place: it is large, and a copy costs as much as an event.
    final class Flight {
        var transfer: Transfer
        /// Shared by all exchanges that write to the partial file.
        let sync = SharedSync()
        /// Rung when the store has decided about the task, so that its object is not completed.
        let decided = Doorbell()
        /// Reads the content once more.
        var reader: ContentReader?
        /// Writes the content into a bucket.
        var writer: ObjectWriter?
        /// Whether readers want the bytes that the writer writes.
        var isExposed = false
        /// Fetches the body.
        var fetching: (client: BucketClient, exchange: ExchangeID)?
        /// Shows the bytes of the partial file to readers.
        let arrival: Arrival

        init(_ transfer: Transfer, _ arrival: Arrival) {
            self.transfer = transfer
            self.arrival = arrival
        }
    }

    /// The exchanges in flight.
    struct Exchanges {
        struct Running {
            let task: TaskID
            let url: ParsedURL
            /// The session's cookies that the exchange was given; nil if the session accepts none.
            let cookies: [String]?
        }

        private(set) var next = ExchangeID(rawValue: 1)
        var running: [ExchangeID: Running] = [:]

        /// The next exchange. No other exchange gets its number.
        mutating func take() -> ExchangeID {
            defer { next = ExchangeID(rawValue: next.rawValue + 1) }
            return next
        }
    }

    /// The contents of the next commit.
    struct Batch {
        var settlements: [Settlement] = []
        var pauses: [OriginPause.Place: OriginPause] = [:]
        /// Sessions of transfers that ended.
        var sessions: Set<SessionID> = []
        /// Transfers whose progress, on disk or in a bucket, is ahead of the stored one.
        var advancing: Set<TaskID> = []
        /// Offsets of contents that no commit has recorded yet.
        var unrecorded: [ExchangeID: Int64] = [:]
        /// Tasks may wait for room on the disk.
        var mayWaitForDisk = true
    }

    struct Commits {
        /// Numbers of commits begun, and of those whose claimed tasks have begun too.
        var (begun, done) = (0, 0)
        /// Tasks whose settlements are being stored.
        var storing: Set<TaskID> = []
        /// A commit may have claimed tasks that were not reported to the scheduler.
        var hasLostTasks = false
    }

    /// The scheduler's memory of resumable uploads.
    struct Uploads {
        var versions = UploadVersions()
        /// Cancelled uploads whose last exchange has not ended yet.
        var abandoned: Set<TaskID> = []
        /// Cancelled uploads whose servers have not received the deletion yet.
        var untold: ArraySlice<TaskID> = []
        /// The same of deleted tasks, whose last exchanges may not have ended yet.
        var deleted: [AbandonedUpload] = []
    }

    /// Work that a turn of the loop leaves.
    struct Turn {
        /// Downloads in segments that may get more connections.
        var widening: Set<TaskID> = []
        /// Questions to the store about stored responses, and the names of their tasks.
        var questions: [(CacheQuestion, TaskName)] = []
        /// Work on disk threads and with buckets, which reports its end to the inbox.
        var errands: [@Sendable () async -> Void] = []
        /// Rung after each turn, for callers that wait for its effects.
        var bells: [ObjectIdentifier: Doorbell] = [:]
    }

    struct Neighbours {
        /// Nodes with transfers, which share a session's bandwidth.
        var transferring = 1
        /// Whether other nodes may change a session's cookies.
        var haveStore = false
    }

    /// An event for a transfer's machine.
    package struct Incident: Sendable {
        let event: Transfer.Event

        init(_ event: Transfer.Event) { self.event = event }
    }

    /// Messages to the scheduler.
    package enum Message: Sendable {
        case report(ExchangeReport)
        case settled(Settlement)
        /// An event of a transfer that no exchange reports.
        case event(TaskID, Incident)
        case stop([TaskID])
        /// A reader waits for the byte at an offset of a content; nil if the offset is unknown.
        case wanted(TaskID, Int64?)
        case abandonUpload(TaskID)
        case abandonDeleted([AbandonedUpload])
        case queued
        /// Pauses of origins, from before the start or from other nodes.
        case paused([OriginPause])
        /// The disk was measured.
        case measured
        case wake(Timestamp)
        case sessionChanged(SessionID)
        case appChanged(AppID)
        /// Other nodes changed rows that are cached here.
        case othersCommitted
        /// The number of nodes that transfer, and whether there are other nodes at all.
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
        askCache()
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

    /// Checks whether conditions changed, and whether a wait for them or an origin pause is over.
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

    /// Whether a commit is due: something to store or to claim, or a scheduled time that has passed.
    private var hasWork: Bool {
        let (room, now) = (room, clock.now)
        return !batch.settlements.isEmpty || !batch.pauses.isEmpty || commits.hasLostTasks || cache.cookies.haveChanged
            || agenda.withLock { $0.hasWork(room, at: now) }
    }

    /// The free space on the disk, and in the bucket of contents if there is one.
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
        case .wanted(let task, let offset):
            guard let transfer = flights[task]?.transfer else { return }
            let positions = transfer.segmented.map { self.positions($0) }
            await feed(.wanted(offset, positions: positions ?? [:]), to: task)
        case .abandonUpload(let task): abandonUpload(task)
        case .abandonDeleted(let deleted): abandon(deleted)
        case .paused(let pauses):
            let now = clock.now
            agenda.withLock { for pause in pauses { $0.take(pause, at: now) } }
        case .queued:
            lookAgain()
            // A waiting task may have to make room.
            if batch.mayWaitForDisk, !engine.room.hasSome { engine.room.bell.ring() }
        case .measured: await shareRoom()
        case .wake(let time): agenda.withLock { $0.wake(at: time) }
        case .sessionChanged(let session):
            await applyBandwidth(to: session)
            if neighbours.haveStore { await refreshCookies(of: session) }
        case .appChanged(let app): cache.apps[app] = nil
        case .othersCommitted:
            cache.apps = [:]
            batch.mayWaitForDisk = true
            agenda.withLock {
                $0.dueTimeMayHaveChanged()
                $0.places?.askAgain()
            }
            await removeUselessFiles()
        case .nodes(let count, let hasOthers):
            neighbours = Neighbours(transferring: count, haveStore: hasOthers)
            for session in Set(flights.values.map(\.transfer.task.session)) { shareBandwidth(of: session) }
        case .drain:
            agenda.withLock { $0.drain() }
            for task in flights.keys { await stop(task, .interrupted) }
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

    /// The transfers in flight, with their sessions.
    package var underWay: [TaskID: SessionID] { flights.mapValues(\.transfer.task.session) }

    /// Whether a task's transfer or its settlement is still in flight, or may have begun with a commit.
    package func isTransferring(_ task: TaskID, since commit: Int = 0) -> Bool {
        commits.done < commit || flights[task] != nil || commits.storing.contains(task)
            || batch.settlements.contains { $0.task == task }
    }

    /// Waits until the engine has released a task's partial file and its settlement is stored, for ten seconds at most.
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

    /// Whether nothing is in flight and everything is stored.
    package var isIdle: Bool {
        flights.isEmpty && batch.settlements.isEmpty && !commits.hasLostTasks && commits.done == commits.begun
            && !cache.cookies.haveChanged && inbox.isEmpty
    }
}
