import Base
import Core
import Store
import TransferEngine

/// What is stored of transfers, and what is taken from the queue.
extension Scheduler {
    func expire() async {
        guard isDue else { return }
        dueAt = nil
        dueTimeIsStale = true
        hasDue = true
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
    func advance() async {
        let batch = settlements
        settlements = []
        hasDue = false
        let offsets = unrecorded
        unrecorded = [:]
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
        let (pauses, now) = (self.pauses, clock.now)
        let verdict = conditions.snapshot
        let fairness = self.fairness
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
            await storeOneByOne(batch)
            // What is stored later is not waited for on a full disk alone.
            if store.isFull {
                unrecorded.merge(offsets) { later, _ in later }
            } else {
                tell(recorded: offsets)
            }
            return
        }
        tell(recorded: offsets)
        if free > 0 {
            cursor = result.cursor
            if let until = heldBack.withLock({ $0 }) { heldUntil = min(heldUntil ?? until, until) }
            mayHaveQueued = cursor > 0 || result.claimed.count >= free
        }
        outlet.handle(result.aftermath)
        let lanes = picked.withLock { $0 }
        for task in result.claimed {
            guard let lane = lanes[task.lane] else { continue }
            await begin(task, lane)
        }
        for task in result.unreadable {
            log.error("a task cannot be read; was the master key replaced?", ("task", task.rawValue))
            settlements.append(.failed(task, "What was stored of the task cannot be read."))
        }
        dueTimeIsStale = true
    }

    /// When nothing is to be done, and now and then while much is: not with every commit while many follow each other.
    func askDueTime() async {
        guard dueTimeIsStale else { return }
        let monotonic = clock.monotonic()
        guard hasNothingToDo || monotonic >= dueTimeAskedAt + 50 else { return }
        dueTimeIsStale = false
        dueTimeAskedAt = monotonic
        do {
            dueAt = try await store.nextDueTime()
        } catch {
            dueAt = clock.now + .seconds(1)
        }
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
            } catch  where store.isFull {
                settlements.append(settlement)
            } catch {
                log.error(
                    "the end of a transfer could not be stored", ("task", settlement.task.rawValue),
                    ("error", "\(error)"))
                try? await store(.failed(settlement.task, "What became of the task could not be stored."))
            }
        }
        try? await Task.sleep(for: .seconds(1))
    }

    private func store(_ settlement: Settlement) async throws {
        let stored = try await store.advance(
            settling: [settlement], cookies: [:], after: 0, at: clock.now, pick: { _ in [] })
        outlet.handle(stored.aftermath)
    }

    func begin(_ task: ClaimedTask, _ lane: QueuedLane) async {
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
            try await authorize(&transfer)
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
}
