package import Base
import Buckets
import Core
import Files
package import Store
import TransferEngine
package import Transfers

/// Errors of the service that occur before the store is queried.
package enum ServiceError: Error, Hashable, Sendable {
    /// No root of that name is configured, or no such file exists below it.
    case fileUnavailable(index: Int, detail: String)
    /// The destination's root is not configured.
    case unknownRoot(index: Int, name: String)
    /// The bucket is not configured.
    case unknownBucket(index: Int, name: String, place: BucketPlace)
    /// The task whose content is to be sent has none.
    case contentUnavailable(index: Int)
    case resumeDataInvalid(index: Int)
    /// Not a URL for a transfer. The index is that of the order, nil if there is only one.
    case invalidURL(index: Int?, detail: String)
    /// Below the floor of free bytes.
    case insufficientStorage
    /// The database's server is out of reach.
    case storeUnavailable
    /// The bucket of contents is out of reach, or the service was started without it.
    case contentsUnavailable
    /// The destination of a set cannot be written.
    case destinationUnavailable
    /// So many large bodies are being received that there is no memory for another one.
    case overloaded
    case shuttingDown
    case bodyTooLong(limit: Int64)
    /// The digest that the client sent is not the one of the bytes.
    case digestMismatch
    /// The client sent another offset than the draft's.
    case uploadOffsetMismatch(offset: Int64)
    /// Two files of a version have one path, or the first one would be a folder of the second one.
    case collidingPaths(String, String)
}

/// The member of an order that names a bucket.
package enum BucketPlace: Hashable, Sendable { case request, body, destination }

/// Commands and queries of the API, and the loops behind them.
///
/// A command validates, stores in one commit, and passes the aftermath of the commit to ``Outlet``.
package final class Service: Sendable {
    package let store: Store
    let engine: TransferEngine
    let settings: ServiceSettings
    let folder: DataFolder
    let scheduler: Scheduler
    let room: DiskRoom
    let cookies: CookieJars
    let sealer: Sealer
    let log: Log
    package let clock: Clock
    package let outlet: Outlet
    package let conditions: CurrentConditions
    private let probe = StoreProbe()
    private let storeMeters: StoreMeters
    let startedAt: Timestamp
    let draining = Locked(false)
    package let nodes: Nodes
    /// Drafts of bodies with an append in flight.
    let appending = Locked<Set<String>>([])
    /// Bytes of files that are kept in memory until the commits of their tasks.
    let heldBytes = Locked(0)
    /// Rings when the store may have cancellations that no call carries out.
    let unfinishedCancellations: Doorbell
    let damagedContents = DamagedContents()
    let setReaders = SetReaders()
    let arrivalCopies: ArrivalCopies
    /// The files of versions in flight that are at the destination already, by path.
    let placedFiles = Locked<[SetVersionID: [String: ContentDigest]]>([:])

    var inbox: Inbox<Scheduler.Message> { outlet.inbox }
    var relauncher: RelaunchTimes { outlet.relauncher }
    package var hub: EventHub { outlet.hub }
    package var attendance: Attendance { outlet.attendance }
    package var live: LiveTransfers { outlet.transfers }

    /// - Parameter transferThreads: The number of event loops for transfers.
    package init(
        settings: ServiceSettings, store location: Store.Location, sealer: Sealer, transferThreads: Int, clock: Clock,
        log: Log,
        metrics: Metrics, onFatalError: @escaping @Sendable (any Error) -> Never
    ) throws {
        self.settings = settings
        self.sealer = sealer
        self.clock = clock
        startedAt = clock.now
        self.log = log
        let attendance = Attendance(clock: clock, isShared: location.isShared)
        cookies = CookieJars(isShared: location.isShared)
        arrivalCopies = ArrivalCopies(clock: clock)
        unfinishedCancellations = Doorbell(clock: clock)
        let storeMeters = StoreMeters(metrics)
        self.storeMeters = storeMeters
        let inbox = Inbox<Scheduler.Message>(clock: clock)
        let room = DiskRoom(floor: settings.freeDiskFloor, clock: clock)
        engine = try TransferEngine(
            threads: transferThreads, log: log, clock: clock, room: room,
            partMemory: settings.contents?.partMemory ?? PartMemory()
        ) { inbox.tell(.report($0)) }
        self.room = room
        folder = DataFolder(path: settings.dataFolder, disk: engine.disk)
        conditions = CurrentConditions(clock: clock)
        let live = LiveTransfers(engine: engine, clock: clock)
        store = try Store(
            location, profile: NodeProfile(settings, startedAt: startedAt), sealer: sealer,
            policies: Store.Policies(
                contentRetention: settings.contentRetention,
                unacknowledgedRetention: settings.unacknowledgedRetention, cacheCapacity: settings.cacheCapacity,
                attempt: { live.attempt($0) }, presence: { attendance.presence(of: $0) }),
            log: log, onCommit: { storeMeters.count($0) }, onFatalError: onFatalError)
        nodes = Nodes(isShared: store.node != nil, clock: clock, metrics)
        outlet = Outlet(
            inbox: inbox, attendance: attendance, transfers: live, meters: TransferMeters(metrics), clock: clock,
            log: log)
        scheduler = Scheduler(
            store: store, engine: engine, folder: folder, settings: settings, outlet: outlet, conditions: conditions,
            cookies: cookies, clock: clock, log: log)
        metrics.gauge("urlsessiond_transfers_running", "Transfers in flight.") { Double(live.count) }
        let conditions = conditions
        metrics.gauge(
            "urlsessiond_load", "Load of the machine: the time that work waits, in relation to the time that it runs."
        ) {
            conditions.load ?? .nan
        }
        metrics.gauge("urlsessiond_free_bytes", "Free bytes of the data folder.") { Double(room.freeBytes) }
        let floor = Double(settings.freeDiskFloor)
        metrics.gauge("urlsessiond_free_bytes_floor", "Free bytes below which nothing more is stored.") { floor }
        metrics.gauge("urlsessiond_build_info", "1, for the version.", label: ("version", [settings.version])).set(
            1, settings.version)
        ProcessMeters.register(metrics, startedAt: clock.now.milliseconds)
    }

    /// Updates the metrics of the store. A metric that cannot be read keeps its value.
    package func measureStore() async {
        guard let figures = try? await store.upkeep.figures() else { return }
        storeMeters.show(figures, at: clock.now)
    }

    /// Recovers from a crash and creates the folders, before any request is served.
    ///
    /// - Parameter acceptsNewMasterKey: Whether to start if the store's secrets were sealed with another key: they are
    ///   lost then.
    /// - Returns: Whether they were lost.
    /// - Throws: ``WrongMasterKey``.
    @discardableResult
    package func prepare(acceptsNewMasterKey: Bool = false) async throws -> Bool {
        let lostSecrets = try await checkMasterKey(acceptsNew: acceptsNewMasterKey)
        try await folder.prepare()
        if settings.contents == nil, try await store.files.namesObjects() {
            log.error("contents or bodies in a bucket cannot be read: --contents is not set")
        }
        try await loadConditions()
        try await scheduler.finishInterruptedMoves()
        let hasCrashed = try await folder.size(DataFolder.crashMark) != nil
        let (recovered, aftermath) = try await store.tasks.recoverInterrupted(at: clock.now, afterCrash: hasCrashed) {
            [folder] task, progress in
            guard let length = folder.recoverPartial(task.rawValue) else { return nil }
            guard let segments = progress.kept.segments, segments.isSound else {
                return length - (progress.kept.point?.offset ?? 0)
            }
            return min(ServiceSettings.maximumUnrecorded, folder.written(outside: segments.ranges, of: task.rawValue))
        }
        if hasCrashed {
            // Counted, and durably: removed before a task is in flight that the crash marker does not cover.
            try await folder.removeCrashMark()
            log.error(
                "the previous process crashed", ("suspects", recovered.suspects), ("failed", recovered.failed))
        }
        outlet.handle(aftermath)
        try await repeatStep { try await store.nodes.recoverStrays(at: clock.now) }
        for file in recovered.useless { try await folder.remove(file, durably: true) }
        outlet.handle(try await store.apps.cancelForbiddenTasks(at: clock.now))
        inbox.tell(.paused(try await store.tasks.pauses(at: clock.now)))
        try await folder.disk.measure(room, folder.path)
        if recovered.interrupted > 0 {
            log.info("interrupted transfers were requeued", ("tasks", recovered.interrupted))
        }
        return lostSecrets
    }

    /// Runs scheduler, relauncher, janitor and the other loops until it is cancelled, or one of them fails.
    package func run() async throws {
        try await Store.loop {
            try await withThrowingDiscardingTaskGroup { group in
                group.addTask { try await self.scheduler.run() }
                group.addTask { try await self.watchLaunchTimes() }
                group.addTask { await self.watchStalls() }
                group.addTask { await self.continueCancellations() }
                group.addTask { try await self.keepHouse() }
                group.addTask { await self.watchDisk() }
                group.addTask { await self.abortUploads() }
                group.addTask { await self.watchContents() }
                group.addTask { await self.keepBodies() }
                group.addTask { await self.settings.contents?.fetcher.run() }
                group.addTask { await self.sweepContents() }
                group.addTask { await self.workOnSets() }
                if self.isShared {
                    group.addTask { await self.watchNodes() }
                    group.addTask { await self.copyArrivals() }
                }
            }
        }
    }

    /// Repeats a step of the store until nothing is left for it.
    func repeatStep(_ step: () async throws -> (hasMore: Bool, aftermath: Aftermath)) async throws {
        while true {
            let (hasMore, aftermath) = try await step()
            outlet.handle(aftermath)
            if !hasMore { return }
        }
    }

    /// Threads on which the reads of requests run without a switch of threads.
    package func readers(of owner: Int64) -> any TaskExecutor { store.readers(of: owner) }

    /// Whether new work is refused because the service shuts down.
    package var isDraining: Bool { draining.withLock { $0 } }

    /// Stops claiming, interrupts transfers with their bytes synced, and waits until their state is stored.
    package func drain(within limit: Duration) async {
        draining.withLock { $0 = true }
        inbox.tell(.drain)
        let deadline = clock.monotonic() + limit.milliseconds
        await scheduler.wait(until: deadline) { $0.isIdle }
        await engine.shutdown(within: .milliseconds(max(100, deadline - clock.monotonic())))
    }

    /// Closes the store; no query may follow.
    package func close() { store.close() }

    // MARK: Health

    /// Why the service is not ready, or nil: the store must accept writes, the disk have free space, the bucket of
    /// contents accept this node, and nothing be draining.
    package func unreadiness() async -> Unreadiness? {
        if isDraining { return Unreadiness(error: .shuttingDown, detail: "The service is shutting down.") }
        if nodes.isDraining { return Unreadiness(error: .shuttingDown, detail: "This node was drained.") }
        if !room.isAboveFloor {
            return Unreadiness(error: .insufficientStorage, detail: "There are fewer free bytes than the floor.")
        }
        if let fault = settings.contents?.access.refusal {
            return Unreadiness(
                error: .contentsUnavailable, detail: "The bucket of contents refuses this node: \(fault.code).")
        }
        let (store, now) = (store, clock.now)
        return await probe.reason(at: clock.monotonic()) {
            do {
                try await store.probe(at: now)
                return nil
            } catch {
                return switch Store.Obstacle(error) {
                case .away, .busy:
                    Unreadiness(error: .storeUnavailable, detail: "The database cannot be reached, or took too long.")
                case .noRoom:
                    Unreadiness(
                        error: .insufficientStorage, detail: "The database does not accept writes: the disk is full.")
                case nil: Unreadiness(error: .insufficientStorage, detail: "The database does not accept writes.")
                }
            }
        }
    }

    package func requireRoom() throws {
        if isDraining { throw ServiceError.shuttingDown }
        if !room.isAboveFloor { throw ServiceError.insufficientStorage }
    }
}
