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
    private var pauses = OriginPauses()
    /// When origins may be asked again, so that the loop wakes for the tasks that wait for them.
    private var pauseEnds: [Timestamp] = []
    let conditions: CurrentConditions
    private let meters: TransferMeters
    let cookies: CookieJars
    private let inbox: SchedulerInbox
    private nonisolated let fairness = Locked<FairShare>(FairShare())

    var transfers: [TaskID: Transfer] = [:]
    private var tasksOfExchanges: [ExchangeID: TaskID] = [:]
    var settlements: [Settlement] = []
    /// Tasks whose settlements are being stored.
    private var storing: Set<TaskID> = []
    /// Commits that were begun, and those whose tasks were begun as well.
    private var commits = (begun: 0, done: 0)
    private var lanes: [Int64: FairShare.Lane] = [:]
    var configurations: [SessionID: SessionConfiguration] = [:]
    private var webhooks: [AppID: Bool] = [:]
    private var appsWithCredentials: [AppID: Bool] = [:]
    private var nextExchange: UInt64 = 1
    var uploadVersions = UploadVersions()
    /// Cancelled uploads whose last exchange has not ended yet.
    var abandonedUploads: Set<TaskID> = []
    private var cursor: Int64 = 0
    private var mayHaveQueued = true
    private var dueAt: Timestamp?
    /// When a lane that waits for conditions may go on by itself.
    private var heldUntil: Timestamp?
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
            dueAt = try await store.nextDueTime()
            while !Task.isCancelled {
                for message in inbox.take() { await take(message, &group) }
                await expire()
                lookAround()
                if hasWork { await advance() }
                await wait()
            }
        }
    }

    private func wait() async {
        guard inbox.isEmpty, !hasWork else { return }
        let next = [dueAt, pauseEnds.min(), conditions.nextChange, heldUntil].compactMap { $0 }.min()
        let delay = next.map { max(0, min(($0 - clock.now).milliseconds, 60_000)) } ?? 60_000
        _ = await inbox.bell.wait(until: clock.monotonic() + delay)
    }

    /// Looks whether conditions changed, and whether a wait for them or for an origin is over.
    private func lookAround() {
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

    /// Whether a commit is due: something to store, something to take, or a moment that has come.
    private var hasWork: Bool { !settlements.isEmpty || cookies.haveChanged || wantsTasks || isDue }

    private var isDue: Bool { dueAt.map { $0 <= clock.now } ?? false }

    private var wantsTasks: Bool {
        mayHaveQueued && !isDraining && transfers.count < settings.maximumTransfers && outlet.hasRoom
    }

    private func take(_ message: Message, _ group: inout ThrowingDiscardingTaskGroup<any Error>) async {
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

    // MARK: Reports

    private func take(_ report: ExchangeReport, _ group: inout ThrowingDiscardingTaskGroup<any Error>) async {
        switch report {
        case .informational(let exchange, let head): noteInformational(exchange, head)
        case .head(let exchange, let head): noteHead(exchange, head)
        case .durable(let exchange, let offset): noteDurable(exchange, offset)
        case .ended(let exchange, let result): await end(exchange, result, &group)
        }
    }

    private func noteHead(_ exchange: ExchangeID, _ head: ResponseHead) {
        guard let id = tasksOfExchanges[exchange], var transfer = transfers[id] else { return }
        let verdict = transfer.verdict.withLock { $0 }
        switch verdict {
        case .append(let offset) where transfer.resuming != nil:
            let total = transfer.resuming?.totalLength
            tellResumption(of: &transfer, offset: offset, total: total, cause: "interrupted")
        case .append, .restartWithThisBody:
            if verdict == .restartWithThisBody {
                let cause = transfer.restartCause ?? "resourceChanged"
                tellResumption(of: &transfer, offset: 0, total: ContentLength.parse(head.fields).value, cause: cause)
                transfer.progress.resume?.bytesFetchedTwice += transfer.resuming?.offset ?? 0
            } else if let cause = transfer.restartCause {
                tellResumption(of: &transfer, offset: 0, total: ContentLength.parse(head.fields).value, cause: cause)
            }
            let fetchedTwice = transfer.progress.resume?.bytesFetchedTwice ?? 0
            transfer.progress.resume = ResumePoint.make(
                from: head, method: transfer.method, url: transfer.url.url, receivedAt: clock.now)
            transfer.progress.resume?.bytesFetchedTwice = fetchedTwice
            transfer.progress.durableOffset = 0
        default: break
        }
        transfer.restartCause = nil
        transfers[id] = transfer
    }

    private func tellResumption(of transfer: inout Transfer, offset: Int64, total: Int64?, cause: String) {
        transfer.progress.restartCause = nil
        let resumption = Resumption(fileOffset: offset, expectedTotalBytes: total, cause: cause)
        settlements.append(Settlement(task: transfer.task.id, .advanced(transfer.progress), resumption: resumption))
    }

    private func noteDurable(_ exchange: ExchangeID, _ offset: Int64) {
        guard let id = tasksOfExchanges[exchange], transfers[id]?.progress.resume != nil else { return }
        transfers[id]?.progress.resume?.offset = offset
        transfers[id]?.progress.durableOffset = offset
        if let progress = transfers[id]?.progress { settlements.append(Settlement(task: id, .advanced(progress))) }
    }

    private func end(
        _ exchange: ExchangeID, _ result: ExchangeResult, _ group: inout ThrowingDiscardingTaskGroup<any Error>
    ) async {
        guard let id = tasksOfExchanges.removeValue(forKey: exchange), let transfer = transfers[id] else { return }
        noteCookies(of: transfer, result)
        noteSilence(of: transfer, result)
        let canAsk = await canAsk(transfer)
        var judge = Judge(
            transfer, result, at: clock.now, jitter: Double.random(in: 0..<1), canAsk: canAsk)
        let judgement = judge.judge()
        meters.received.add(result.bytesReceived)
        meters.sent.add(result.bytesSent)
        func settle(_ verdict: Settlement.Verdict) {
            var settlement = Settlement(task: id, verdict)
            settlement.bytesReceived = result.bytesReceived
            settlement.bytesSent = result.bytesSent
            settlements.append(settlement)
            release(id)
        }
        if case .failed(.egressDenied) = result.outcome {
            log.warning(
                "transfer refused by the egress policy", ("task", transfer.task.number),
                ("host", transfer.url.host), ("detail", result.curlMessage))
        }
        // What has to stop, or was replaced meanwhile, takes no further step.
        let isOver = transfer.stopReason != nil || transfer.isOutdated
        switch judgement {
        case .follow where isOver: settle(.interrupted(judge.progress))
        case .follow(let hop): follow(hop, transfer, judge.progress)
        case .goOn(_, let progress) where isOver: settle(.interrupted(progress))
        case .goOn(let upload, let progress): goOn(transfer, upload, progress)
        case .again(let progress, _) where isOver: settle(.interrupted(progress))
        case .again(let progress, let cause): again(transfer, progress, cause: cause)
        case .finish where transfer.isOutdated: settle(.interrupted(transfer.progress))
        case .retry(let at, let waitsForConnectivity, let progress, let pause):
            if let pause { hold(transfer, for: pause) }
            outlet.live(
                .willRetry(
                    attempt: progress.attempts.attempts, error: progress.lastAttempt?.error, nextAt: at,
                    offset: progress.keptOffset),
                transfer.task)
            if waitsForConnectivity { outlet.live(.isWaitingForConnectivity, transfer.task) }
            meters.retries.add()
            settle(.retry(at: at, waitsForConnectivity: waitsForConnectivity, progress))
        case .interrupted(let progress):
            settle(.interrupted(progress))
        case .ask(let question, let progress):
            settle(
                .asked(
                    question, questionId: Identifier.make(prefix: "qstn_"),
                    deadline: clock.now + settings.questionDeadline, progress))
        case .finish(let outcome, let taskResult, let source):
            live.finalizing(id)
            finish(transfer, outcome, taskResult, source, result, &group)
        }
    }

    /// Leaves the origin alone for as long as it asked.
    private func hold(_ transfer: Transfer, for wait: Duration) {
        let now = clock.now
        pauses.note(transfer.url.origin(), app: transfer.task.app.rawValue, retryAfter: wait, at: now)
        pauseEnds += [now + wait, now + min(wait, OriginPauses.longestForOthers)]
    }

    /// Puts the content in its place, beside the loop where that takes a disk, and hands in the settlement.
    private func finish(
        _ transfer: Transfer, _ outcome: Outcome, _ taskResult: TaskResult, _ source: Judgement.ContentSource,
        _ result: ExchangeResult, _ group: inout ThrowingDiscardingTaskGroup<any Error>
    ) {
        let id = transfer.task.id
        let finisher = ContentFinisher(disk: engine.disk, folder: folder, settings: settings)
        func settlement(_ verdict: Settlement.Verdict, leavesPartialFile: Bool) -> Settlement {
            var settlement = Settlement(task: id, verdict)
            settlement.bytesReceived = result.bytesReceived
            settlement.bytesSent = result.bytesSent
            settlement.leavesPartialFile = leavesPartialFile
            return settlement
        }
        if let content = finisher.contentWithoutDisk(source, transfer.specification, outcome) {
            settlements.append(
                settlement(
                    .completed(outcome, taskResult, content.value),
                    leavesPartialFile: transfer.mayHaveFile || result.received.isFile))
            release(id)
            return
        }
        let (progress, now) = (transfer.progressOfWhole(source), clock.now)
        group.addTask { [self] in
            let verdict: Settlement.Verdict
            do {
                verdict = try await finisher.finish(transfer.task, outcome, taskResult, source)
            } catch {
                log.warning("content could not be stored", ("task", id.rawValue), ("error", "\(error)"))
                verdict = .retry(at: now + .seconds(5), waitsForConnectivity: false, progress)
            }
            var isMoved = false
            if case .completed(_, _, .some) = verdict { isMoved = true }
            inbox.tell(.settled(settlement(verdict, leavesPartialFile: !isMoved)))
        }
    }

    private func follow(_ hop: Judgement.Hop, _ transfer: Transfer, _ progress: TaskProgress) {
        var transfer = transfer
        transfer.progress = progress
        transfer.hops += 1
        transfer.headers = Redirect.fields(
            transfer.headers, dropBody: hop.dropsBody, dropHeaders: hop.dropsSecrets,
            sensitive: transfer.specification.request.sensitiveHeaders)
        if hop.dropsSecrets { transfer.credential = nil }
        transfer.url = hop.url
        transfer.method = hop.method
        if hop.dropsBody { transfer.sendsBody = false }
        prepareUpload(of: &transfer)
        if transfer.configuration.requiresSecureTransport, !hop.url.isSecure {
            return refuse(transfer, TaskError(.appTransportSecurityRequiresSecureConnection, failingURL: hop.url.url))
        }
        start(transfer)
    }

    private func again(_ transfer: Transfer, _ progress: TaskProgress, cause: String) {
        var transfer = transfer
        transfer.progress = progress
        transfer.resuming = nil
        transfer.restartCause = cause
        prepareUpload(of: &transfer)
        start(transfer)
    }

    // MARK: Starting

    func nextExchangeID() -> ExchangeID {
        defer { nextExchange += 1 }
        return ExchangeID(rawValue: nextExchange)
    }

    /// The task that an exchange under way is for.
    func task(of exchange: ExchangeID) -> TaskID? { tasksOfExchanges[exchange] }

    func start(_ transfer: Transfer) {
        var transfer = transfer
        let exchange = nextExchangeID()
        transfer.exchange = exchange
        transfer.verdict.withLock { $0 = nil }
        transfer.attemptStartedAt = clock.now
        transfer.cookies = cookiesToSend(with: transfer)
        let id = transfer.task.id
        transfers[id] = transfer
        tasksOfExchanges[exchange] = id
        live.began(
            id, session: transfer.task.session, exchange: exchange, offset: transfer.resuming?.offset ?? 0,
            sentBefore: transfer.uploadOffset)
        outlet.transferBegan(in: transfer.task.session)
        let isLimited = isLimited(transfer.task.session)
        engine.start(
            transfer.request(
                folder: folder, settings: settings, bandwidthLimit: isLimited ? bandwidthShare(of: transfer) : nil))
        if isLimited { shareBandwidth(of: transfer.task.session) }
    }

    private func refuse(_ transfer: Transfer, _ error: TaskError) {
        var result = TaskResult(progress: transfer.progress)
        result.progress.attempts.attempts += 1
        result.error = error
        var settlement = Settlement(task: transfer.task.id, .completed(.failed, result, nil))
        settlement.leavesPartialFile = transfer.mayHaveFile
        settlements.append(settlement)
        release(transfer.task.id)
    }

    func stop(_ id: TaskID, reason: Transfer.StopReason) {
        guard var transfer = transfers[id] else { return outlet.removePartialIfOrphan(id) }
        live.ended(id)
        transfer.stopReason = reason
        transfers[id] = transfer
        engine.stop(transfer.exchange)
    }

    /// Forgets a transfer that ended and frees its place.
    private func release(_ id: TaskID) {
        live.ended(id)
        guard let transfer = transfers.removeValue(forKey: id) else { return }
        if isLimited(transfer.task.session) { shareBandwidth(of: transfer.task.session) }
        cookies.letGo(transfer.task.session)
        lanes[transfer.lane]?.running -= 1
        if lanes[transfer.lane]?.running == 0 { lanes[transfer.lane] = nil }
        mayHaveQueued = true
        if abandonedUploads.remove(id) != nil { inbox.tell(.abandonUpload(id)) }
    }

    // MARK: The queue

    private func expire() async {
        guard isDue else { return }
        do {
            outlet.handle(try await store.expireTasks(at: clock.now, limit: 1000))
            outlet.handle(try await store.expireQuestions(at: clock.now, limit: 1000))
        } catch {
            log.error("tasks that timed out could not be stored", ("error", "\(error)"))
            try? await Task.sleep(for: .seconds(1))
        }
        mayHaveQueued = true
    }

    /// One commit: settles what ended, takes what may start.
    private func advance() async {
        let batch = settlements
        settlements = []
        storing = Set(batch.lazy.map(\.task))
        commits.begun += 1
        defer {
            storing = []
            commits.done = commits.begun
        }
        let jars = cookies.takeChanged()
        let runningLanes = lanes
        let free = wantsTasks ? settings.maximumTransfers - transfers.count : 0
        let hostLimit = settings.maximumTransfersPerHost
        let (pauses, now) = (pauses, clock.now)
        let verdict = conditions.snapshot
        let fairness = fairness
        let picked = Locked<[Int64: QueuedLane]>([:])
        let heldBack = Locked<Timestamp?>(nil)
        let result: (claimed: [ClaimedTask], unreadable: [TaskID], cursor: Int64, aftermath: Aftermath)
        do {
            result = try await store.advance(settling: batch, cookies: jars, after: cursor, at: now) { queued in
                guard free > 0 else { return [] }
                let open = queued.filter { lane in
                    let held = verdict.verdict(lane.conditions, patience: lane.patience)
                    if let until = held.until { heldBack.withLock { $0 = min($0 ?? until, until) } }
                    return held == .go && (pauses.isEmpty || !pauses.hold(lane, at: now))
                }
                picked.withLock { $0 = Dictionary(uniqueKeysWithValues: open.map { ($0.id, $0) }) }
                let table = open.map { FairShare.Lane($0, running: runningLanes[$0.id]?.running ?? 0) }
                let ids = Set(open.map(\.id))
                let others = runningLanes.filter { !ids.contains($0.key) }.map(\.value)
                let grants = fairness.withLock { $0.pick(table + others, freeSlots: free, hostLimit: hostLimit) }
                return grants.filter { $0.lane < open.count }.map { (open[$0.lane].id, $0.count) }
            }
        } catch {
            cookies.putBack(jars)
            log.error("transfers could not be stored", ("error", "\(error)"))
            return await storeOneByOne(batch)
        }
        if free > 0 {
            cursor = result.cursor
            if let until = heldBack.withLock({ $0 }) { heldUntil = min(heldUntil ?? until, until) }
            mayHaveQueued = cursor > 0 || result.claimed.count >= free
        }
        do {
            dueAt = try await store.nextDueTime()
        } catch {
            dueAt = clock.now + .seconds(1)
        }
        outlet.handle(result.aftermath)
        let lanes = picked.withLock { $0 }
        for task in result.claimed {
            guard let lane = lanes[task.lane] else { continue }
            await begin(task, lane)
        }
        for task in result.unreadable {
            log.error("a task cannot be read; was the master key replaced?", ("task", task.rawValue))
            var result = TaskResult(progress: TaskProgress())
            result.error = TaskError(.unknown, "What was stored of the task cannot be read.")
            settlements.append(Settlement(task: task, .completed(.failed, result, nil)))
        }
    }

    /// Nothing of a batch is stored. On a full disk it waits for room; else whatever spoils it is kept from the rest,
    /// and its task stays under way until the next start puts it back into the queue.
    private func storeOneByOne(_ batch: [Settlement]) async {
        for settlement in batch {
            do {
                let stored = try await store.advance(
                    settling: [settlement], cookies: [:], after: 0, at: clock.now, pick: { _ in [] })
                outlet.handle(stored.aftermath)
            } catch  where store.isFull {
                settlements.append(settlement)
            } catch {
                log.error(
                    "the end of a transfer could not be stored", ("task", settlement.task.rawValue),
                    ("error", "\(error)"))
            }
        }
        try? await Task.sleep(for: .seconds(1))
    }

    private func begin(_ task: ClaimedTask, _ lane: QueuedLane) async {
        if let last = transfers[task.id] {
            // It has not let go of the partial file yet. Its own end, still to come, puts the task back.
            transfers[task.id]?.isOutdated = last.specification.request != task.specification.request
            return
        }
        do {
            let configuration = try await configuration(of: task.session)
            var transfer = try Transfer(
                task, lane: lane.id, configuration: configuration, exchange: ExchangeID(rawValue: 0),
                version: settings.version, at: clock.now)
            try await cookies.hold(task.session, store)
            lanes[lane.id, default: FairShare.Lane(lane, running: 0)].running += 1
            transfers[task.id] = transfer
            if task.specification.confirmBeforeStart && !task.progress.isConfirmed {
                settlements.append(
                    Settlement(
                        task: task.id,
                        .asked(
                            Question(kind: .delayedRequest, request: task.specification.request),
                            questionId: Identifier.make(prefix: "qstn_"),
                            deadline: clock.now + settings.questionDeadline, task.progress)))
                return release(task.id)
            }
            if configuration.requiresSecureTransport, !transfer.url.isSecure {
                return refuse(
                    transfer, TaskError(.appTransportSecurityRequiresSecureConnection, failingURL: transfer.url.url))
            }
            if let file = transfer.progress.adoptedFile {
                // Missing where an attempt before a crash has taken it over already.
                try? await engine.disk.move(
                    folder.absolute(file), to: folder.absolute(folder.partial(task.id)), replace: true)
                transfer.progress.adoptedFile = nil
            }
            transfer.credential = try await credential(for: transfer)
            transfer.prepareUpload(uploadVersions.version(for: transfer.url.origin()))
            start(transfer)
        } catch is BadURL {
            var result = TaskResult(progress: task.progress)
            result.error = TaskError(.badURL, failingURL: task.specification.request.url)
            settlements.append(Settlement(task: task.id, .completed(.failed, result, nil)))
        } catch {
            log.error("task could not be started", ("task", task.number), ("error", "\(error)"))
            settlements.append(
                Settlement(
                    task: task.id, .retry(at: clock.now + .seconds(5), waitsForConnectivity: false, task.progress)))
            release(task.id)
        }
    }

    func configuration(of session: SessionID) async throws -> SessionConfiguration {
        if let known = configurations[session] { return known }
        let configuration = try await store.session(session).configuration
        if configurations.count >= 4096 { configurations.removeAll() }
        configurations[session] = configuration
        return configuration
    }

    // MARK: Who can answer

    private func canAsk(_ transfer: Transfer) async -> Bool {
        if outlet.isAttached(transfer.task.session) { return true }
        if let known = webhooks[transfer.task.app] { return known }
        let hasWebhook = (try? await store.app(transfer.task.app).webhook.url) != nil
        webhooks[transfer.task.app] = hasWebhook
        return hasWebhook
    }

    /// The credential that the last answer, or the store, gives this task.
    func credential(for transfer: Transfer) async throws -> Credential? {
        if let step = transfer.progress.authentication.last, step.disposition == .useCredential {
            return try await store.answerGiven(to: step.questionId)?.credential
        }
        let app = transfer.task.app
        if appsWithCredentials[app] == nil { appsWithCredentials[app] = try await store.hasCredentials(app) }
        guard appsWithCredentials[app] == true else { return nil }
        return try await store.credential(
            host: transfer.url.host, port: Int(transfer.url.port), app: transfer.task.app,
            session: transfer.task.session)
    }

    /// The number of the commit that is being written, or was written last.
    var lastCommit: Int { commits.begun }

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
