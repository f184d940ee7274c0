import Base
import Core
import Store
import TransferEngine

/// What the engine reports, judged.
extension Scheduler {
    func take(_ report: ExchangeReport, _ group: inout ThrowingDiscardingTaskGroup<any Error>) async {
        switch report {
        case .informational(let exchange, let head): noteInformational(exchange, head)
        case .head(let exchange, let head): noteHead(exchange, head)
        case .durable(let exchange, let offset, let sha256): noteDurable(exchange, offset, sha256)
        case .ended(let exchange, let result): await end(exchange, result, &group)
        }
    }

    func noteHead(_ exchange: ExchangeID, _ head: ResponseHead) {
        guard let id = tasksOfExchanges[exchange], var transfer = transfers[id] else { return }
        let verdict = transfer.verdict.withLock { $0 }
        switch verdict {
        case .append(let offset) where transfer.resuming != nil:
            let total = transfer.resuming?.totalLength
            tellResumption(of: &transfer, offset: offset, total: total, cause: "interrupted")
        case .append, .restartWithThisBody:
            let isRestart = verdict == .restartWithThisBody
            transfer.progress.resume = ResumePoint.make(
                from: head, method: transfer.method, url: transfer.url.url, receivedAt: clock.now)
            transfer.progress.durableOffset = 0
            if isRestart { transfer.progress.noteFetchedTwice(transfer.resuming?.offset ?? 0) }
            if let cause = transfer.restartCause ?? (isRestart ? "resourceChanged" : nil) {
                tellResumption(of: &transfer, offset: 0, total: ContentLength.parse(head.fields).value, cause: cause)
            }
        default: break
        }
        transfer.restartCause = nil
        transfers[id] = transfer
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
        guard let id = tasksOfExchanges.removeValue(forKey: exchange), let transfer = transfers[id] else { return }
        noteCookies(of: transfer, result)
        noteSilence(of: transfer, result)
        let canAsk = await canAsk(transfer, result)
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
                ("host", transfer.url.host))
        }
        // What has to stop, or was replaced meanwhile, takes no further step.
        let isOver = transfer.stopReason != nil || transfer.isOutdated
        switch judgement {
        case .follow where isOver: settle(.interrupted(judge.progress))
        case .follow(let hop): await follow(hop, transfer, judge.progress)
        case .authenticate(let progress) where isOver: settle(.interrupted(progress))
        case .authenticate(let progress): await authenticate(transfer, progress)
        case .sendAgain(let progress) where isOver: settle(.interrupted(progress))
        case .sendAgain(let progress): sendAgain(transfer, progress)
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
    func hold(_ transfer: Transfer, for wait: Duration) {
        let now = clock.now
        pauses.note(transfer.url.origin(), app: transfer.task.app.rawValue, retryAfter: wait, at: now)
        pauseEnds += [now + wait, now + min(wait, OriginPauses.longestForOthers)]
    }

    /// Puts the content in its place, beside the loop where that takes a disk, and hands in the settlement.
    func finish(
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

    func follow(_ hop: Judgement.Hop, _ transfer: Transfer, _ progress: TaskProgress) async {
        var transfer = transfer
        transfer.progress = progress
        transfer.hops += 1
        transfer.headers = Redirect.fields(
            transfer.headers, dropBody: hop.dropsBody, dropHeaders: hop.dropsSecrets,
            sensitive: transfer.specification.request.sensitiveHeaders)
        transfer.url = hop.url
        transfer.method = hop.method
        if hop.dropsBody { transfer.sendsBody = false }
        prepareUpload(of: &transfer)
        if transfer.configuration.requiresSecureTransport, !hop.url.isSecure {
            return refuse(transfer, TaskError(.appTransportSecurityRequiresSecureConnection, failingURL: hop.url.url))
        }
        await startAuthorized(transfer)
    }

    /// Asks the same again, with the stored credential that the challenge is for.
    func authenticate(_ transfer: Transfer, _ progress: TaskProgress) async {
        var transfer = transfer
        transfer.progress = progress
        prepareUpload(of: &transfer)
        await startAuthorized(transfer)
    }

    func sendAgain(_ transfer: Transfer, _ progress: TaskProgress) {
        var transfer = transfer
        transfer.progress = progress
        transfer.repeats += 1
        start(transfer)
    }

    /// Starts a request with the credentials of where it goes. Where they cannot be read, it is tried again later.
    private func startAuthorized(_ transfer: Transfer) async {
        var transfer = transfer
        do {
            try await authorize(&transfer)
        } catch {
            log.error("credentials could not be read", ("task", transfer.task.number), ("error", "\(error)"))
            settlements.append(
                Settlement(
                    task: transfer.task.id,
                    .retry(at: clock.now + .seconds(5), waitsForConnectivity: false, transfer.progress)))
            return release(transfer.task.id)
        }
        start(transfer)
    }

    func again(_ transfer: Transfer, _ progress: TaskProgress, cause: String) {
        var transfer = transfer
        transfer.progress = progress
        transfer.resuming = nil
        transfer.restartCause = cause
        prepareUpload(of: &transfer)
        start(transfer)
    }
}
