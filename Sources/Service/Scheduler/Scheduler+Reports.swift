import Base
import Buckets
import Core
import Files
import Store
import TransferEngine

/// What the engine reports, judged.
extension Scheduler {
    func take(_ report: ExchangeReport, _ group: inout ThrowingDiscardingTaskGroup<any Error>) async {
        switch report {
        case .informational(let exchange, let head): noteInformational(exchange, head)
        case .head(let exchange, let head, let judgement):
            if !noteSegmentHead(exchange, head, judgement.verdict) { noteHead(exchange, head, judgement) }
        case .durable(let exchange, let offset, let sha256):
            if !noteSegment(exchange, offset) { noteDurable(exchange, offset, sha256) }
        case .part(let exchange, let part): write(part, of: exchange, &group)
        case .ended(let exchange, let result): await end(exchange, result, &group)
        }
    }

    func noteHead(_ exchange: ExchangeID, _ head: ResponseHead, _ judgement: HeadJudgement) {
        guard let id = tasksOfExchanges[exchange], var transfer = transfers[id] else { return }
        let verdict = judgement.verdict
        switch verdict {
        case .append(let offset) where transfer.resuming != nil:
            let total = transfer.resuming?.totalLength
            tellResumption(of: &transfer, offset: offset, total: total, cause: "interrupted")
        case .append, .restartWithThisBody:
            let isRestart = verdict == .restartWithThisBody
            transfer.progress.resume = ResumePoint.make(
                from: head, method: transfer.method, url: transfer.url.text, receivedAt: clock.now)
            transfer.progress.source = transfer.progress.resume == nil ? 0 : transfer.source
            transfer.progress.multipart = nil
            transfer.progress.durableOffset = 0
            if isRestart { transfer.progress.noteFetchedTwice(transfer.resuming?.offset ?? 0) }
            if let cause = transfer.restartCause ?? (isRestart ? "resourceChanged" : nil) {
                tellResumption(of: &transfer, offset: 0, total: ContentLength.parse(head.fields).value, cause: cause)
            }
        case .notADownload where judgement.body == .keep(at: 0) && transfer.writesObject:
            // A page takes the place of what came: none of its parts may ever stand for the content's.
            transfer.progress.forgetBytes()
        default: break
        }
        transfer.restartCause = nil
        transfer.mediaType = head.fields["Content-Type"].flatMap { MediaType($0) == nil ? nil : $0 }
        transfers[id] = transfer
        if transfer.comesInParts { considerSegments(transfer, head, verdict) }
    }

    func tellResumption(of transfer: inout Transfer, offset: Int64, total: Int64?, cause: String) {
        transfer.progress.restartCause = nil
        let resumption = Resumption(fileOffset: offset, expectedTotalBytes: total, cause: cause)
        settlements.append(Settlement(task: transfer.task.id, .advanced(transfer.progress), resumption: resumption))
    }

    /// Has the offset stored, and the exchange told once that is done. What cannot be continued need not be stored.
    func noteDurable(_ exchange: ExchangeID, _ offset: Int64, _ sha256: [UInt8]?) {
        guard let id = tasksOfExchanges[exchange], transfers[id]?.progress.resume != nil else {
            return engine.recorded(exchange, upTo: offset)
        }
        transfers[id]?.progress.resume?.reach(offset, digest: sha256?.hexadecimal)
        transfers[id]?.progress.durableOffset = offset
        unrecorded[exchange] = offset
        if let progress = transfers[id]?.progress { settlements.append(Settlement(task: id, .advanced(progress))) }
    }

    func end(
        _ exchange: ExchangeID, _ result: ExchangeResult, _ group: inout ThrowingDiscardingTaskGroup<any Error>
    ) async {
        guard let id = tasksOfExchanges.removeValue(forKey: exchange), var transfer = transfers[id] else {
            return agenda.withLock { $0.ended(deletion: exchange) }
        }
        if case .file = result.received {
            transfer.hasPartialFile = true
            transfers[id] = transfer
        }
        meters.received.add(result.bytesReceived)
        meters.sent.add(result.bytesSent)
        if transfer.segmented?.connections[exchange] != nil {
            return await endSegment(exchange, of: id, result, &group)
        }
        if transfer.source > 0 { agenda.withLock { $0.ended(connection: exchange) } }
        noteCookies(of: transfer, result)
        noteSilence(of: transfer, result)
        if transfer.writesObject { return await endWriting(transfer, result, &group) }
        if let next = transfer.nextSource(after: result) { return await goOn(transfer, at: next, after: result) }
        guard transfer.comesInParts, result.outcome == .complete else { return await judge(transfer, result, &group) }
        switch result.received {
        case .file: readWhole(of: transfer, result, &group)
        case .none, .memory, .parts:
            await judge(transfer, result.digested(by: transfer.specification.digestsWanted), &group)
        }
    }

    /// Judges how a request ended, and does what follows.
    func judge(
        _ transfer: Transfer, _ result: ExchangeResult, by judging: (inout Judge) -> Judgement = { $0.judge() },
        _ group: inout ThrowingDiscardingTaskGroup<any Error>
    ) async {
        var transfer = transfer
        let id = transfer.task.id
        let canAsk = await canAsk(transfer, result)
        var judge = Judge(
            transfer, result, at: clock.now, jitter: Double.random(in: 0..<1), canAsk: canAsk,
            largestContent: engine.room.largest)
        let judgement = judging(&judge)
        let progress = judge.progress
        let bytesReceived = transfer.segmented?.bytesReceived ?? result.bytesReceived
        func settle(_ verdict: Settlement.Verdict) {
            var settlement = Settlement(task: id, verdict)
            settlement.credentialsKnown = transfer.credentialsKnown
            settlement.bytesReceived = bytesReceived
            settlement.bytesSent = result.bytesSent
            self.settle(settlement, transfer)
        }
        if case .failed(.egressDenied) = result.outcome {
            log.of(transfer.name).warning("transfer refused by the egress policy", ("host", transfer.url.host))
        }
        switch judgement {
        case .send(let next):
            // What has to stop, or was replaced meanwhile, takes no further step.
            guard transfer.stopReason == nil, !transfer.isOutdated else { return settle(.interrupted(progress)) }
            transfer.progress = progress
            await send(next, of: transfer)
        case .finish where transfer.isOutdated: settle(.interrupted(transfer.progress))
        case .retry(let at, let waitsForConnectivity, let pause):
            if let pause { leaveAlone(transfer, for: pause) }
            outlet.live(
                .willRetry(
                    attempt: progress.attempts.attempts, error: progress.lastAttempt?.error, nextAt: at,
                    offset: progress.keptOffset),
                transfer.task)
            if waitsForConnectivity { outlet.live(.isWaitingForConnectivity, transfer.task) }
            meters.retries.add()
            log.willRetry(transfer.name, progress.lastAttempt, at: at)
            settle(.retry(at: at, waitsForConnectivity: waitsForConnectivity, progress))
        case .waitForDisk(let needed, let notBefore):
            log.of(transfer.name).info("task waits for room on the disk", ("needed", needed))
            settle(.waitsForDisk(needed: needed, notBefore: notBefore, progress))
        case .interrupted: settle(.interrupted(progress))
        case .ask(let question):
            // Another node may have stored a credential, for which the question is not asked.
            appsWithCredentials[transfer.task.app] = nil
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
    private func leaveAlone(_ transfer: Transfer, for wait: Duration) {
        leaveAlone(transfer.url.origin, of: transfer.task.app, for: wait)
    }

    func leaveAlone(_ origin: String, of app: AppID, for wait: Duration) {
        let now = clock.now
        agenda.withLock { $0.pause(origin, for: wait, app: app, at: now) }
    }

    /// Puts the content in its place, off the loop where that takes a disk, and hands in the settlement.
    func finish(
        _ transfer: Transfer, _ outcome: Outcome, _ taskResult: TaskResult, _ source: Judgement.ContentSource,
        _ result: ExchangeResult, _ group: inout ThrowingDiscardingTaskGroup<any Error>
    ) {
        let id = transfer.task.id
        if case .object(let length, let digest) = source {
            return finishObject(transfer, length, digest, outcome, taskResult, result, &group)
        }
        let finisher = ContentFinisher(
            store: store, folder: folder.of(transfer.task.app.rawValue), settings: settings)
        func settlement(_ verdict: Settlement.Verdict, leavesPartialFile: Bool) -> Settlement {
            var settlement = Settlement(task: id, verdict, leavesPartialFile: leavesPartialFile)
            settlement.bytesReceived = transfer.segmented?.bytesReceived ?? result.bytesReceived
            settlement.bytesSent = result.bytesSent
            return settlement
        }
        if let verdict = finisher.verdictWithoutDisk(transfer.specification, outcome, taskResult, source) {
            return conclude(settlement(verdict, leavesPartialFile: transfer.hasPartialFile))
        }
        connectionsAreOver(id)
        var unfinished = taskResult
        unfinished.progress = transfer.progressOfWhole(source)
        unfinished.progress.attempts = taskResult.progress.attempts
        let (now, jitter) = (clock.now, Double.random(in: 0..<1))
        group.addTask { [self, unfinished] in
            let verdict: Settlement.Verdict
            do {
                verdict = try await finisher.finish(transfer.task, outcome, taskResult, source)
            } catch let mismatch as DigestMismatch {
                var judge = Judge(transfer, result, at: now, jitter: 0, canAsk: false)
                verdict = judge.judge(mismatch)
            } catch {
                log.of(transfer.name).warning("content could not be stored", ("error", "\(error)"))
                if Store.Obstacle(error) != nil {
                    let progress = transfer.progressOfWhole(source)
                    verdict = .retry(at: now + .seconds(5), waitsForConnectivity: false, progress)
                } else {
                    verdict = self.verdict(after: LocalFault(storing: error), unfinished, of: transfer, jitter, at: now)
                }
            }
            handIn(settlement(verdict, leavesPartialFile: !verdict.hasMovedFile))
        }
    }

    /// Notes how a transfer ended, and lets go of it.
    func settle(_ settlement: Settlement, _ transfer: Transfer) {
        guard transfer.hasPartialFile, settlement.verdict.abandonsPartialFile else { return conclude(settlement) }
        connectionsAreOver(settlement.task)
        handIn(settlement)
    }

    /// Notes that a disk thread hands in the settlement of a download in segments: a stop leaves the end to it.
    private func connectionsAreOver(_ id: TaskID) { transfers[id]?.segmented = nil }

    /// Hands in how a transfer ended. A partial file that cannot be resumed is removed first, so that the next attempt
    /// finds none.
    nonisolated func handIn(_ settlement: Settlement) {
        let inbox = inbox
        guard settlement.verdict.abandonsPartialFile else { return inbox.tell(.settled(settlement)) }
        folder.remove(folder.partial(settlement.task.rawValue)) { inbox.tell(.settled(settlement)) }
    }

    /// Takes the end of a transfer whose content a disk thread put in its place, unless the task has another request by
    /// now: that one is what counts, and nothing of the old one stays.
    func settled(_ settlement: Settlement, _ group: inout ThrowingDiscardingTaskGroup<any Error>) {
        guard case .completed = settlement.verdict, let transfer = transfers[settlement.task], transfer.isOutdated
        else { return conclude(settlement) }
        var progress = transfer.progress
        progress.forgetBytes()
        var again = settlement
        again.verdict = .interrupted(progress)
        group.addTask { [self, again] in
            for file in settlement.files { try? await folder.remove(file) }
            handIn(again)
        }
    }

    /// Sends the next request of an attempt.
    private func send(_ next: Judgement.Next, of transfer: Transfer) async {
        var transfer = transfer
        switch next {
        case .follow(let hop): await follow(hop, transfer)
        case .upload(let upload): goOn(transfer, upload)
        case .authenticate:
            prepareUpload(of: &transfer)
            await startAuthorized(transfer)
        case .repeated:
            transfer.repeats += 1
            start(transfer)
        case .again(let cause):
            transfer.resuming = nil
            transfer.restartCause = cause
            (transfer.segmented, transfer.whole, transfer.wrongPiece) = (nil, nil, nil)
            guard transfer.comesInParts else {
                prepareUpload(of: &transfer)
                return start(transfer)
            }
            transfer.turn(to: 0)
            await startAuthorized(transfer)
        }
    }

    private func follow(_ hop: Judgement.Hop, _ transfer: Transfer) async {
        var transfer = transfer
        transfer.hops += 1
        transfer.headers = Redirect.fields(
            transfer.headers, dropBody: hop.dropsBody, dropHeaders: hop.dropsSecrets,
            sensitive: transfer.specification.request.sensitiveHeaders)
        transfer.url = hop.url
        transfer.method = hop.method
        if hop.dropsBody { transfer.sendsBody = false }
        prepareUpload(of: &transfer)
        if transfer.configuration.requiresSecureTransport, !hop.url.isSecure {
            return refuse(transfer, TaskError(.appTransportSecurityRequiresSecureConnection, failingURL: hop.url.text))
        }
        await startAuthorized(transfer)
    }

    /// Starts a request with the credentials of where it goes. Where they cannot be read, it is tried again later.
    func startAuthorized(_ transfer: Transfer) async {
        var transfer = transfer
        do {
            try await authorize(&transfer)
        } catch {
            log.of(transfer.name).error("credentials could not be read", ("error", "\(error)"))
            return settle((error as? BucketFault).map(LocalFault.source) ?? .credentials(error), transfer)
        }
        start(transfer)
    }

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

    /// Hands in a local fault that kept a request from being sent.
    func settle(_ fault: LocalFault, _ transfer: Transfer) {
        let verdict = verdict(
            after: fault, TaskResult(progress: transfer.progress), of: transfer, Double.random(in: 0..<1),
            at: clock.now)
        settle(
            Settlement(task: transfer.task.id, verdict, leavesPartialFile: transfer.hasPartialFile), transfer)
    }
}
