import Base
import Buckets
import Core
import Files
import Store
import TransferEngine

/// What is stored of transfers, and what is taken from the queue.
extension Scheduler {
    func expire() async {
        let now = clock.now
        guard agenda.withLock({ $0.takeDue(at: now) }) else { return }
        do {
            outlet.handle(try await store.expireTasks(at: clock.now, limit: Store.commandGroup))
            outlet.handle(try await store.expireQuestions(at: clock.now, limit: Store.commandGroup))
        } catch {
            if Store.Obstacle(error) != .away {
                log.error("tasks that timed out could not be stored", ("error", "\(error)"))
            }
            try? await Task.sleep(for: .seconds(1))
        }
    }

    /// One commit: settles what ended, takes what may start.
    func advance() async {
        if hasLostTasks { await takeBackLost() }
        let batch = settlements
        settlements = []
        let sessions = settledSessions.union(batch.lazy.compactMap { self.transfers[$0.task]?.task.session })
        settledSessions = []
        let offsets = unrecorded
        unrecorded = [:]
        storing = Set(batch.lazy.map(\.task))
        commits.begun += 1
        defer {
            storing = []
            commits.done = commits.begun
        }
        let jars = cookies.takeChanged()
        let (snapshot, room) = (conditions.snapshot, room)
        let cursor = agenda.withLock { agenda in
            agenda.commitBegins()
            return agenda.beginRound(snapshot, room)
        }
        var claimed: [ClaimedTask] = []
        var unreadable: [TaskID] = []
        var round: Agenda.Round?
        do {
            if let cursor {
                let taken = try await store.advance(
                    settling: batch, of: sessions, cookies: jars, after: cursor, through: sieve, at: snapshot.now,
                    pick: { [agenda] queue in agenda.withLock { $0.pick(queue) } })
                (claimed, unreadable) = (taken.claimed ?? [], taken.unreadable)
                hasLostTasks = hasLostTasks || taken.claimed == nil
                round = agenda.withLock {
                    $0.endRound(at: taken.cursor, isWhole: taken.isWhole, claimed: claimed.map(\.id))
                }
                outlet.handle(taken.aftermath)
            } else {
                outlet.handle(try await store.settle(batch, of: sessions, cookies: jars, at: snapshot.now))
            }
        } catch {
            cookies.putBack(jars)
            if Store.Obstacle(error) != .away { log.error("transfers could not be stored", ("error", "\(error)")) }
            await storeOneByOne(batch)
            // What is stored later is not waited for on a full disk alone.
            if Store.Obstacle(error) != nil {
                unrecorded.merge(offsets) { later, _ in later }
            } else {
                tell(recorded: offsets)
            }
            return
        }
        tell(recorded: offsets)
        if batch.contains(where: \.waitsForDisk) {
            mayWaitForDisk = true
            engine.room.bell.ring()
        }
        if let round {
            if round.needsSolitude { makeRoom() }
            for task in claimed { await begin(task, in: round) }
            if round.isLast { preempt() }
        }
        for task in unreadable {
            await logger(of: task).error("a task cannot be read; was the master key replaced?")
            settlements.append(.failed(task, TaskError(.unknown, "What was stored of the task cannot be read.")))
        }
    }

    /// Puts back what was taken and is not known here. Nothing is taken meanwhile.
    private func takeBackLost() async {
        let known = Set(transfers.keys).union(settlements.lazy.map(\.task))
        do {
            outlet.handle(try await store.takeBack(but: known, at: clock.now))
            hasLostTasks = false
        } catch {
            if Store.Obstacle(error) != .away { log.error("tasks could not be put back", ("error", "\(error)")) }
            try? await Task.sleep(for: .seconds(1))
        }
    }

    /// What the writer asks while it reads the queue.
    private var sieve: QueueSieve {
        QueueSieve(
            declared: { [agenda, conditions] declared in
                conditions.set(declared.conditions, declared.refreshStatus)
                agenda.withLock { $0.declared(declared.conditions) }
            },
            room: { [agenda] origin, app in agenda.withLock { $0.room(at: origin, for: app) } },
            mayStart: { [agenda] lane in agenda.withLock { $0.mayStart(lane) } })
    }

    private func begin(_ task: ClaimedTask, in round: Agenda.Round) async {
        if let lane = round.lanes[task.lane] { await begin(task, lane) }
        guard transfers[task.id] == nil else { return }
        let now = clock.now
        agenda.withLock { $0.solo.ended(task.id, at: now) }
    }

    /// Stops all transfers, resumable and uncharged, for a task that has to run alone.
    private func makeRoom() {
        for (id, transfer) in transfers where transfer.stopReason == nil { stop(id, reason: .interrupted) }
    }

    /// Interrupts transfers, resumable and uncharged, for apps that have waited too long for their share of the slots.
    private func preempt() {
        let now = clock.now
        let candidates = transfers.values.filter { $0.stopReason == nil }.map { transfer in
            Preemption.Candidate(
                task: transfer.task.id.rawValue, app: transfer.task.app.rawValue, isResumable: transfer.canGoOnLater,
                startedAt: transfer.attemptStartedAt)
        }
        for task in agenda.withLock({ $0.victims(among: candidates, at: now) }) {
            guard let transfer = transfers[TaskID(task)] else { continue }
            log.of(transfer.name).info("a transfer makes room for those of other apps")
            stop(transfer.task.id, reason: .interrupted)
        }
    }

    func askDueTime() async {
        let (isIdle, now) = (hasNothingToDo, clock.monotonic())
        guard agenda.withLock({ $0.asksDueTime(isIdle: isIdle, monotonic: now) }) else { return }
        let next: Timestamp?
        do { next = try await store.nextDueTime() } catch { next = clock.now + .seconds(1) }
        agenda.withLock { $0.note(due: next) }
    }

    /// Lets exchanges go on that wait until it is stored how far they are.
    private func tell(recorded offsets: [ExchangeID: Int64]) {
        for (exchange, offset) in offsets { engine.recorded(exchange, upTo: offset) }
    }

    /// Nothing of a batch is stored. On a full disk it waits for room; else whatever spoils it is kept from the rest,
    /// and its task fails, so that it does not seem to be under way for ever.
    private func storeOneByOne(_ batch: [Settlement]) async {
        for settlement in batch {
            do {
                try await store(settlement)
            } catch  where Store.Obstacle(error) != nil {
                settlements.append(settlement)
            } catch {
                await logger(of: settlement.task).error(
                    "the end of a transfer could not be stored", ("error", "\(error)"))
                let failure = TaskError(.unknown, "What became of the task could not be stored.")
                try? await store(.failed(settlement.task, failure, of: settlement.request))
                outlet.janitor.tell(.remove(settlement.files))
            }
        }
        try? await Task.sleep(for: .seconds(1))
    }

    /// A log whose lines name a task of which only the row is known; the row where even that cannot be read.
    func logger(of task: TaskID) async -> Log {
        guard let name = try? await store.name(of: task) else { return log.with("row", task.rawValue) }
        return log.of(name)
    }

    private func store(_ settlement: Settlement) async throws {
        outlet.handle(try await store.settle([settlement], at: clock.now))
    }

    func begin(_ task: ClaimedTask, _ lane: QueuedLane) async {
        if let last = transfers[task.id] {
            // It has not let go of the partial file yet. Its own end, still to come, puts the task back.
            transfers[task.id]?.isOutdated = last.specification.request != task.specification.request
            return
        }
        do {
            let task = try await store.withBody(task)
            let session = try await known(task.session, revision: lane.revision)
            let configuration = session.configuration
            try checkBuckets(of: task.specification)
            var transfer = try Transfer(
                task, to: target(of: task), in: session, version: settings.version, node: store.node,
                hasContentsBucket: settings.contents != nil, at: clock.now)
            if let other = task.progress.node, other != store.node {
                // What it left here before it went there is of another time.
                try await folder.remove(folder.partial(task.id.rawValue))
                try await store.discardFiles(of: task.id, task.progress, at: clock.now)
            }
            try await cookies.hold(task.session, store)
            agenda.withLock { $0.began(in: lane) }
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
                    transfer, TaskError(.appTransportSecurityRequiresSecureConnection, failingURL: transfer.url.text))
            }
            if let file = transfer.progress.adoptedFile {
                // Missing where an attempt before a crash has taken it over already.
                try? await folder.move(file, to: folder.partial(task.id.rawValue))
                transfer.progress.adoptedFile = nil
            }
            if transfer.progress.multipart?.whole != nil {
                transfers[task.id] = transfer
                return inbox.tell(.completeObject(task.id))
            }
            if task.specification.bodyObject != nil, task.body == nil {
                transfers[task.id] = transfer
                return inbox.tell(.fetchBody(task.id))
            }
            try await restoreSegments(of: &transfer)
            transfer.prepareUpload(uploadVersions.version(for: transfer.url.origin))
            log.started(
                transfer.name, attempt: transfer.progress.attempts.attempts + 1,
                offset: transfer.resuming?.offset ?? transfer.uploadOffset)
            await startAuthorized(transfer)
        } catch is BadURL {
            let error = TaskError(.badURL, failingURL: task.specification.request.url)
            settlements.append(.failed(task.id, error, task.progress, of: task.specification.request))
        } catch DomainError.notFound {
            // It was ended meanwhile, or its session deleted: nothing is stored of what happens here.
            settlements.append(Settlement(task: task.id, .interrupted(task.progress)))
            release(task.id)
        } catch {
            await logger(of: task.id).error("task could not be started", ("error", "\(error)"))
            settlements.append(
                Settlement(
                    task: task.id,
                    .after(
                        (error as? BucketFault).map(LocalFault.bucket) ?? .start(error),
                        TaskResult(progress: task.progress), of: task,
                        sessions[task.session]?.configuration.retryPolicy ?? .robust, jitter: Double.random(in: 0..<1),
                        at: clock.now),
                    of: task.specification.request, leavesPartialFile: true))
            release(task.id)
        }
    }
}
