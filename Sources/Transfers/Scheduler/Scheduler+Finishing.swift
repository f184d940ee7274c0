import Base
import Core
import Files
import Store
import TransferEngine

/// The end of transfers.
extension Scheduler {
    /// Puts a content in its place, outside the loop if that needs a disk, and submits the settlement.
    func place(_ finish: Transfer.Finish, _ flight: Flight) async {
        if case .object(let length, let digest) = finish.source {
            return await makeObject(finish, length, digest, flight.transfer)
        }
        let finisher = ContentFinisher(
            store: store, folder: folder.of(flight.transfer.task.app.rawValue), settings: settings,
            log: log.of(flight.transfer.name))
        let (outcome, taskResult, source) = (finish.outcome, finish.taskResult, finish.source)
        var settlement = finish.settlement(of: flight.transfer.id)
        if finish.verdict != nil { return leave(finish, finisher, flight.transfer) }
        if let verdict = finisher.verdictWithoutDisk(flight.transfer.specification, outcome, taskResult, source) {
            settlement.verdict = verdict
            settlement.landing = finish.sharing?.landing(of: verdict)
            settlement.leavesPartialFile = flight.transfer.hasPartialFile
            return conclude(settlement)
        }
        let transfer = flight.transfer
        let (now, jitter) = (clock.now, Double.random(in: 0..<1))
        turn.errands.append { [self, settlement] in
            var settlement = settlement
            var shared: NewContent?
            do {
                if finish.sharing != nil {
                    shared = try await finisher.contentForOthers(
                        transfer.task, outcome, source, isOnlyForOthers: false)
                }
                settlement.verdict = try await finisher.finish(transfer.task, outcome, taskResult, source)
                settlement.landing = finish.sharing?.landing(of: settlement.verdict, shared)
            } catch is DigestMismatch where source.isStored {
                // The stored content has another digest than expected, which is no fault of the origin.
                settlement.verdict = .retry(
                    at: now, waitsForConnectivity: false, transfer.progress.avoidingCache)
            } catch let mismatch as DigestMismatch {
                guard let result = finish.result else { return }
                var judge = Judge(transfer, result, at: now, jitter: 0, canAsk: false)
                settlement.verdict = judge.judge(mismatch)
            } catch {
                log.of(transfer.name).warning("a content could not be stored", ("error", "\(error)"))
                var unfinished = taskResult
                unfinished.progress = transfer.progressOfWhole(source)
                settlement.verdict = .retry(at: now + .seconds(5), waitsForConnectivity: false, unfinished.progress)
                if Store.Obstacle(error) == nil {
                    unfinished.progress.attempts = taskResult.progress.attempts
                    settlement.verdict = verdict(
                        after: LocalFault(storing: error), unfinished, of: transfer, jitter, at: now)
                }
            }
            // Stored bytes are copied into the partial file only for a destination.
            let isUnused = source.isStored && transfer.specification.destination == nil
            settlement.leavesPartialFile = isUnused ? transfer.hasPartialFile : !settlement.verdict.hasMovedFile
            if settlement.landing == nil, let shared { await discard(shared, finisher, transfer.name) }
            handIn(settlement)
        }
    }

    private nonisolated func discard(_ content: NewContent, _ finisher: ContentFinisher, _ name: TaskName) async {
        do {
            try await finisher.discard(contentForOthers: content)
        } catch {
            // The next start removes the file.
            log.of(name).warning("a content for other tasks could not be removed", ("error", "\(error)"))
        }
    }

    /// Completes the moves to destinations that a crash has interrupted, before any task is claimed.
    package func finishInterruptedMoves() async throws {
        let finisher = ContentFinisher(store: store, folder: folder, settings: settings, log: log)
        outlet.handle(try await finisher.finishInterruptedMoves(at: clock.now))
    }

    /// The verdict on a fault of this machine that an errand reported.
    nonisolated func verdict(
        after fault: LocalFault, _ result: TaskResult, of transfer: Transfer, _ jitter: Double, at now: Timestamp
    ) -> Settlement.Verdict {
        let verdict = Settlement.Verdict.after(
            fault, result, of: transfer.task, transfer.configuration.retryPolicy, jitter: jitter, at: now)
        if case .contents(let fault) = fault { settings.contents?.access.note(fault) }
        if case .retry(let at, _, let progress) = verdict {
            meters.retries.add()
            log.willRetry(transfer.name, progress.lastAttempt, at: at)
        }
        return verdict
    }

    /// Notes the settlement of a transfer, and releases the transfer.
    func settle(_ settlement: Settlement) {
        guard let flight = flights[settlement.task], flight.transfer.hasPartialFile,
            settlement.verdict.abandonsPartialFile
        else { return conclude(settlement) }
        flight.transfer.stage = .finishing
        handIn(settlement)
    }

    /// Submits the settlement of a transfer. A partial file from which no attempt can resume is removed first, so that
    /// the next attempt finds none.
    nonisolated func handIn(_ settlement: Settlement) {
        let inbox = inbox
        guard settlement.verdict.abandonsPartialFile else { return inbox.tell(.settled(settlement)) }
        folder.remove(folder.partial(settlement.task.rawValue), durably: true) { inbox.tell(.settled(settlement)) }
    }

    /// Handles the settlement of a transfer whose content a disk thread put in its place. If the task has another
    /// request by now, the settlement does not count, and nothing of the old content stays.
    func settled(_ settlement: Settlement) {
        guard case .completed = settlement.verdict, let transfer = flights[settlement.task]?.transfer,
            transfer.stop == .outdated
        else { return conclude(settlement) }
        var progress = transfer.progress
        progress.forgetBytes()
        var again = settlement
        again.verdict = .interrupted(progress)
        again.landing = nil
        turn.errands.append { [self, again] in
            for file in settlement.files {
                do {
                    try await folder.remove(file)
                } catch {
                    log.of(transfer.name).warning(
                        "a content of an outdated request could not be removed", ("error", "\(error)"))
                }
            }
            handIn(again)
        }
    }

    /// Has a settlement stored, and releases the transfer.
    func conclude(_ settlement: Settlement) {
        var settlement = settlement
        let transfer = flights[settlement.task]?.transfer
        (settlement.request, settlement.url) = (transfer?.task.specification.request, transfer?.taskURL.text)
        batch.settlements.append(settlement)
        release(settlement.task)
    }

    /// Removes a transfer that ended and frees its slot.
    func release(_ id: TaskID) {
        live.ended(id)
        turn.widening.remove(id)
        guard let task = flights.removeValue(forKey: id)?.transfer.task else { return }
        let session = task.session
        batch.sessions.insert(session)
        if isLimited(session) { shareBandwidth(of: session) }
        cache.cookies.letGo(session)
        let now = clock.now
        agenda.withLock { $0.ended(id, in: task.lane, at: now) }
        if uploads.abandoned.remove(id) != nil { inbox.tell(.abandonUpload(id)) }
    }

    /// Clears the suspicion of a task that has run alone long enough.
    func clear(_ id: TaskID) {
        guard let transfer = flights[id]?.transfer else { return }
        var settlement = Settlement(task: id, .advanced(transfer.progress))
        settlement.endsSuspicion = true
        batch.settlements.append(settlement)
        log.of(transfer.name).info("the task has run alone without a crash: other tasks start again")
    }
}

extension Transfer.Finish {
    /// A settlement with the byte counts of the exchange.
    func settlement(of task: TaskID) -> Settlement {
        var settlement = Settlement(task: task, .interrupted(taskResult.progress))
        settlement.bytesReceived = bytesReceived
        settlement.bytesSent = result?.bytesSent ?? 0
        return settlement
    }
}
