import Base
import Buckets
import Core
import Files
import Store
import TransferEngine

/// Storing of transfers, and claims from the queue.
extension Scheduler {
    func expire() async {
        let now = clock.now
        guard agenda.withLock({ $0.takeDue(at: now) }) else { return }
        do {
            outlet.handle(try await store.tasks.expire(at: clock.now, limit: Store.Tasks.commandGroup))
            outlet.handle(try await store.questions.expire(at: clock.now, limit: Store.Tasks.commandGroup))
        } catch {
            if Store.Obstacle(error) != .away {
                log.error("tasks that timed out could not be stored", ("error", "\(error)"))
            }
            try? await Task.sleep(for: .seconds(1))
        }
    }

    /// One commit: stores settlements, and claims tasks that may start.
    func advance() async {
        if commits.hasLostTasks { await takeBackLost() }
        let ended = batch
        let waitsForDisk = ended.settlements.contains(where: \.waitsForDisk)
        // Even if the commit fails: the settlements are stored one by one then.
        batch = Batch(advancing: batch.advancing, mayWaitForDisk: batch.mayWaitForDisk || waitsForDisk)
        let sessions = ended.sessions.union(
            ended.settlements.lazy.compactMap { self.flights[$0.task]?.transfer.task.session })
        commits.storing = Set(ended.settlements.lazy.map(\.task))
        commits.begun += 1
        defer {
            commits.storing = []
            commits.done = commits.begun
        }
        guard let (round, claimed, unreadable) = await commit(ended, of: sessions) else { return }
        tell(recorded: ended.unrecorded)
        for settlement in ended.settlements { show(settlement) }
        if waitsForDisk { engine.room.bell.ring() }
        if let round {
            if round.needsSolitude { await makeRoom() }
            for task in claimed { await begin(task, in: round) }
            if round.isLast { await preempt() }
        }
        for task in unreadable {
            await logger(of: task).error("a task cannot be read; was the master key replaced?")
            batch.settlements.append(.failed(task, TaskError(.unknown, "The stored task cannot be read.")))
        }
    }

    /// Runs the commit.
    ///
    /// - Returns: The claimed tasks; nil if the commit failed and its settlements were stored one by one.
    private func commit(
        _ ended: Batch, of sessions: Set<SessionID>
    ) async -> (round: Agenda.Round?, claimed: [ClaimedTask], unreadable: [TaskID])? {
        let jars = cache.cookies.takeChanged()
        let (snapshot, room) = (conditions.snapshot, room)
        let cursor = agenda.withLock { agenda in
            agenda.commitBegins()
            return agenda.beginRound(snapshot, room)
        }
        do {
            guard let cursor else {
                outlet.handle(
                    try await store.tasks.settle(
                        ended.settlements, of: sessions, cookies: jars, pauses: Array(ended.pauses.values),
                        at: snapshot.now))
                return (nil, [], [])
            }
            let taken = try await store.tasks.advance(
                settling: ended.settlements, of: sessions, cookies: jars, pauses: Array(ended.pauses.values),
                after: cursor, through: sieve, at: snapshot.now, isKnown: cache.knows,
                pick: { [agenda] queue in agenda.withLock { $0.pick(queue) } })
            let claimed = taken.tasks ?? []
            commits.hasLostTasks = commits.hasLostTasks || taken.tasks == nil
            for session in taken.sessions { remember(session) }
            let round = agenda.withLock {
                $0.endRound(at: taken.cursor, isWhole: taken.isWhole, claimed: claimed.map(\.id))
            }
            outlet.handle(taken.aftermath)
            return (round, claimed, taken.unreadable)
        } catch {
            cache.cookies.putBack(jars)
            if Store.Obstacle(error) != .away { log.error("transfers could not be stored", ("error", "\(error)")) }
            await storeOneByOne(ended.settlements)
            // Only a full disk delays the exchanges until their offsets are stored.
            if Store.Obstacle(error) != nil {
                batch.unrecorded.merge(ended.unrecorded) { later, _ in later }
                batch.pauses.merge(ended.pauses) { later, _ in later }
            } else {
                tell(recorded: ended.unrecorded)
            }
            return nil
        }
    }

    /// Requeues claimed tasks that the scheduler does not know. Nothing is claimed meanwhile.
    private func takeBackLost() async {
        let known = Set(flights.keys).union(batch.settlements.lazy.map(\.task))
        do {
            outlet.handle(try await store.tasks.takeBack(but: known, at: clock.now))
            commits.hasLostTasks = false
        } catch {
            if Store.Obstacle(error) != .away { log.error("tasks could not be requeued", ("error", "\(error)")) }
            try? await Task.sleep(for: .seconds(1))
        }
    }

    /// The callbacks of the writer while it reads the queue.
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
        guard flights[task.id] == nil else { return }
        let now = clock.now
        agenda.withLock { $0.solo.ended(task.id, at: now) }
    }

    /// Interrupts all transfers, without a charged attempt, for a task that has to run alone.
    private func makeRoom() async {
        for (id, flight) in flights where flight.transfer.stop == nil { await stop(id, .interrupted) }
    }

    /// Interrupts transfers, without a charged attempt, for apps that have waited too long for their share of slots.
    private func preempt() async {
        let now = clock.now
        for task in agenda.withLock({ $0.victims(among: candidates, at: now) }) {
            guard let transfer = flights[TaskID(task)]?.transfer else { continue }
            log.of(transfer.name).info("a transfer was preempted for another app")
            await stop(transfer.id, .interrupted)
        }
    }

    private var candidates: [Preemption.Candidate] {
        flights.values.compactMap { flight in
            guard flight.transfer.stop == nil else { return nil }
            return Preemption.Candidate(
                task: flight.transfer.id.rawValue, app: flight.transfer.task.app.rawValue,
                isResumable: flight.transfer.canGoOnLater, startedAt: flight.transfer.attempt.startedAt)
        }
    }

    func askDueTime() async {
        let (isIdle, now) = (hasNothingToDo, clock.monotonic())
        guard agenda.withLock({ $0.asksDueTime(isIdle: isIdle, monotonic: now) }) else { return }
        let next: Timestamp?
        do { next = try await store.tasks.nextDueTime() } catch { next = clock.now + .seconds(1) }
        agenda.withLock { $0.note(due: next) }
    }

    /// Lets exchanges continue that wait until their offsets are stored.
    private func tell(recorded offsets: [ExchangeID: Int64]) {
        for (exchange, offset) in offsets { engine.recorded(exchange, upTo: offset) }
    }

    /// Shows the bytes that a commit has recorded to readers.
    private func show(_ settlement: Settlement) {
        switch settlement.verdict {
        case .advanced(let progress), .interrupted(let progress), .retry(_, _, let progress):
            if let content = ArrivingContent(progress) { outlet.arrivals.note(content, of: settlement.task) }
        default: break
        }
    }

    /// Stores the settlements of a failed batch one by one. On a full disk they wait for room. Otherwise the task of a
    /// bad settlement fails, at the latest with a later batch, so that it does not seem in flight for ever, and the rest
    /// is stored.
    private func storeOneByOne(_ settlements: [Settlement]) async {
        for settlement in settlements {
            do {
                try await store(settlement)
            } catch  where Store.Obstacle(error) != nil {
                batch.settlements.append(settlement)
            } catch {
                await logger(of: settlement.task).error(
                    "a settlement could not be stored", ("error", "\(error)"))
                let failure = TaskError(.unknown, "The task's outcome could not be stored.")
                let failed = Settlement.failed(settlement.task, failure, of: settlement.request)
                do { try await store(failed) } catch { batch.settlements.append(failed) }
                outlet.janitor.tell(.remove(settlement.files))
            }
        }
        try? await Task.sleep(for: .seconds(1))
    }

    /// A log whose lines name a task of which only the row is known, or its row if the name cannot be read.
    func logger(of task: TaskID) async -> Log {
        guard let name = try? await store.tasks.name(of: task) else { return log.with("row", task.rawValue) }
        return log.of(name)
    }

    private func store(_ settlement: Settlement) async throws {
        outlet.handle(try await store.tasks.settle([settlement], at: clock.now))
    }

    private func begin(_ task: ClaimedTask, _ lane: QueuedLane) async {
        if let last = flights[task.id]?.transfer {
            // The partial file is still in use. The end of the earlier transfer, still to come, requeues the task.
            let isOutdated = last.specification.request != task.specification.request
            flights[task.id]?.transfer.stop = isOutdated ? .outdated : last.stop == .outdated ? .decided : last.stop
            return
        }
        do {
            let task = try await store.tasks.withBody(task)
            let session = try await known(task.session, revision: lane.revision)
            try checkBuckets(of: task.specification)
            let transfer = try Transfer(
                task, to: target(of: task), in: session, version: settings.version, node: store.node,
                hasContentsBucket: settings.contents != nil, at: clock.now)
            if let other = task.progress.node, other != store.node {
                // Files from before the task moved to that node are outdated.
                try await folder.remove(folder.partial(task.id.rawValue), durably: true)
                try await store.files.discard(of: task.id, task.progress, at: clock.now)
            }
            try await cache.cookies.hold(task.session, store)
            agenda.withLock { $0.began(in: lane) }
            let arrival = outlet.arrivals.arrival(of: task.id)
            arrival.isFollowing = false
            flights[task.id] = Flight(transfer, arrival)
            await feed(.begin, to: task.id)
        } catch is BadURL {
            let error = TaskError(.badURL, failingURL: task.specification.request.url)
            batch.settlements.append(.failed(task.id, error, task.progress, of: task.specification.request))
        } catch DomainError.notFound {
            // The task ended meanwhile, or its session was deleted: nothing of this attempt is stored.
            batch.settlements.append(Settlement(task: task.id, .interrupted(task.progress)))
        } catch {
            await logger(of: task.id).error("a task could not be started", ("error", "\(error)"))
            let verdict = Settlement.Verdict.after(
                (error as? BucketFault).map(LocalFault.bucket) ?? .start(error), TaskResult(progress: task.progress),
                of: task, cache.sessions[task.session]?.configuration.retryPolicy ?? .robust,
                jitter: Double.random(in: 0..<1), at: clock.now)
            batch.settlements.append(
                Settlement(task: task.id, verdict, of: task.specification.request, leavesPartialFile: true))
        }
    }
}
