import Base
import Core
import Files
import Formats
import Store
import TransferEngine

/// What the engine reports of downloads in segments, and what follows.
extension Scheduler {
    /// False where the exchange fetches no segment.
    func noteSegmentHead(_ exchange: ExchangeID, _ head: ResponseHead, _ verdict: ResumeVerdict?) -> Bool {
        guard let id = tasksOfExchanges[exchange], var transfer = transfers[id], var segmented = transfer.segmented,
            let connection = segmented.connections[exchange]
        else { return false }
        guard case .append? = verdict else { return true }
        let isFirst = segmented.head == nil
        segmented.head = segmented.head ?? head
        segmented.plan.trust(connection.source)
        if segmented.points[connection.source] == nil {
            segmented.points[connection.source] = .met(head, url: connection.url.text)
        }
        transfer.segmented = segmented
        if isFirst {
            tellResumption(
                of: &transfer, offset: segmented.plan.record.count, total: segmented.plan.total, cause: "interrupted")
        }
        transfers[id] = transfer
        widening.insert(id)
        return true
    }

    /// Has the offset stored, and the exchange told once that is done. False where the exchange fetches no segment.
    func noteSegment(_ exchange: ExchangeID, _ offset: Int64) -> Bool {
        guard let id = tasksOfExchanges[exchange], let connection = transfers[id]?.segmented?.connections[exchange]
        else { return false }
        transfers[id]?.segmented?.plan.reach(exchange.rawValue, offset)
        transfers[id]?.segmented?.plan.praise(connection.source)
        unrecorded[exchange] = offset
        advancing.insert(id)
        return true
    }

    /// Has stored how far segments are, once for all that was told of a download, and reads on behind them.
    func storeAdvances(_ group: inout ThrowingDiscardingTaskGroup<any Error>) {
        for id in advancing {
            storeSegments(of: id)
            readBehind(id, &group)
        }
        advancing = []
    }

    func storeSegments(of id: TaskID) {
        guard var transfer = transfers[id], transfer.segmented != nil else { return }
        transfer.noteSegments()
        transfers[id] = transfer
        show(transfer)
        if let index = settlements.lastIndex(where: { $0.task == id }), case .advanced = settlements[index].verdict {
            settlements[index].verdict = .advanced(transfer.progress)
        } else {
            settlements.append(Settlement(task: id, .advanced(transfer.progress)))
        }
    }

    /// Takes the end of a connection.
    func endSegment(
        _ exchange: ExchangeID, of id: TaskID, _ result: ExchangeResult,
        _ group: inout ThrowingDiscardingTaskGroup<any Error>
    ) async {
        guard var transfer = transfers[id], var segmented = transfer.segmented,
            let connection = segmented.connections.removeValue(forKey: exchange)
        else { return }
        var result = result
        unrecorded[exchange] = nil
        count(result, of: connection, in: &transfer, &segmented)
        let verdict = result.judgement?.verdict
        var isOnDisk = false
        if case .append? = verdict, !result.isOfDisk {
            segmented.plan.reach(exchange.rawValue, result.length)
            isOnDisk = result.length >= segmented.plan.segments[exchange.rawValue]?.end ?? .max
            if !isOnDisk, result.outcome == .complete { result.outcome = .failed(.shortBody) }
        }
        let kept = segmented.plan.end(exchange.rawValue) ?? connection.bytes.lowerBound
        if case .append? = verdict { transfer.progress.noteFetchedTwice(result.length - kept) }
        segmented.last = result
        var goesOn = isOnDisk
        if !isOnDisk, transfer.stopReason == nil, segmented.ending == nil {
            goesOn = noteFailure(result, connection, &transfer, &segmented) == .again
        }
        transfer.segmented = segmented
        transfers[id] = transfer
        storeSegments(of: id)
        readBehind(id, &group)
        let isReplaced =
            goesOn && !segmented.plan.leavesPlace(connection.source)
            && connect(id, to: connection.source, inPlaceOf: exchange) == .begun
        agenda.withLock { $0.ended(connection: exchange) }
        if !isReplaced {
            widening.insert(id)
            if isLimited(transfer.task.session) { shareBandwidth(of: transfer.task.session) }
        }
        if segmented.ending != nil { for other in segmented.connections.keys { engine.stop(other) } }
        await proceed(id, &group)
    }

    private func count(
        _ result: ExchangeResult, of connection: SegmentedTransfer.Connection, in transfer: inout Transfer,
        _ segmented: inout SegmentedTransfer
    ) {
        transfer.cookies = connection.cookies
        transfer.url = connection.url
        noteCookies(of: transfer, result)
        let judge = Judge(transfer, result, at: clock.now, jitter: 0, canAsk: false)
        transfer.progress.record(judge.metrics(offset: connection.bytes.lowerBound))
        transfer.progress.currentURL = connection.url.text
        transfer.progress.countOfBytesReceived += result.bytesReceived
        segmented.bytesReceived += result.bytesReceived
    }

    /// What follows for a source whose connection did not bring its bytes.
    private enum Sequel {
        /// It is asked again at once.
        case again
        case leftAlone
    }

    private func noteFailure(
        _ result: ExchangeResult, _ connection: SegmentedTransfer.Connection, _ transfer: inout Transfer,
        _ segmented: inout SegmentedTransfer
    ) -> Sequel {
        let source = connection.source
        if result.outcome != .stopped { segmented.failure = (result, source) }
        switch result.judgement?.verdict {
        case .restartWithThisBody, .askAgainFromZero:
            // A mirror that was never of use is none.
            if segmented.points[source] == nil {
                segmented.plan.drop(source)
            } else {
                segmented.ending = .restart(cause: "resourceChanged")
            }
            return .leftAlone
        default: break
        }
        if result.isClosedWhileIdle { return .again }
        switch result.outcome {
        case .stopped: break
        case .failed(.disk), .failed(.prefixMissing), .failed(.tooLarge): segmented.ending = .failed(result)
        case .failed(.egressDenied):
            log.of(transfer.name).warning("transfer refused by the egress policy", ("host", connection.url.host))
            segmented.plan.drop(source)
        case .failed: rest(source, &segmented)
        case .complete:
            guard let head = result.head else { break }
            if follow(head, connection, &transfer, &segmented) { return .again }
            let wait = head.fields["Retry-After"].flatMap { RetryAfter.parse($0, now: clock.now) }
            if OriginPauses.slowsDown(status: head.status), let wait {
                leaveAlone(connection.url.origin, of: transfer.task.app, for: wait)
            }
            rest(source, atLeast: wait ?? .zero, &segmented)
        }
        return .leftAlone
    }

    private func rest(_ source: Int, atLeast wait: Duration = .zero, _ segmented: inout SegmentedTransfer) {
        // The redirect may lead elsewhere by now.
        if source > 0 || segmented.routes[source]?.hops ?? 0 > 0 { segmented.routes[source] = nil }
        segmented.plan.rest(source, atLeast: wait, at: clock.now)
        if case .resting(let end) = segmented.plan.standings[source] { agenda.withLock { $0.hold(until: end) } }
    }

    /// Has the source's requests go where an answer leads, if it leads anywhere.
    private func follow(
        _ head: ResponseHead, _ connection: SegmentedTransfer.Connection, _ transfer: inout Transfer,
        _ segmented: inout SegmentedTransfer
    ) -> Bool {
        guard var route = segmented.routes[connection.source], let first = transfer.sourceURL(connection.source) else {
            return false
        }
        // Another connection's answer has led elsewhere meanwhile.
        guard route.url == connection.url else { return Redirect.isRedirect(head.status) }
        let target = head.fields["Location"].flatMap { try? ParsedURL(location: $0, from: route.url) }
        let decision = Redirect.decide(
            head: head, method: transfer.method, hops: route.hops, task: first, current: route.url, target: target)
        guard case .follow("GET", false, let dropsSecrets) = decision, let target,
            target.isSecure || !transfer.configuration.requiresSecureTransport
        else { return false }
        route.headers = Redirect.fields(
            route.headers, dropBody: false, dropHeaders: dropsSecrets,
            sensitive: transfer.specification.request.sensitiveHeaders)
        route.credential = transfer.credential(for: target)
        route.url = target
        route.hops += 1
        segmented.routes[connection.source] = route
        if transfer.progress.redirects.count < Redirect.limit {
            transfer.progress.redirects.append(RedirectRecord(statusCode: head.status, url: target.text))
        }
        return true
    }

    // MARK: When no connection is left

    /// Goes on with a download that has no connection: ends it, judges why, or begins another one.
    func proceed(_ id: TaskID, _ group: inout ThrowingDiscardingTaskGroup<any Error>) async {
        guard var transfer = transfers[id], var segmented = transfer.segmented, segmented.connections.isEmpty,
            !segmented.isReading, let last = segmented.last
        else { return }
        if transfer.stopReason != nil || transfer.isOutdated {
            return await judge(transfer, last.failing(.stopped), &group)
        }
        switch segmented.ending {
        case .restart(let cause): return await judge(transfer, last, by: { $0.judgeChange(cause: cause) }, &group)
        case .failed(let result): return await judge(transfer, result, &group)
        case .disk(let error):
            return await judge(transfer, last.failing(.failed(.disk(errno: error.errno))), &group)
        case nil: break
        }
        if segmented.plan.isComplete {
            guard segmented.reader.position == segmented.plan.total else { return readBehind(id, &group) }
            return await judge(transfer, segmented.wholeResult(last), &group)
        }
        widen(id)
        // A source may be available that has no place yet.
        guard transfers[id]?.segmented?.connections.isEmpty ?? false, segmented.plan.sources(at: clock.now).isEmpty
        else { return }
        guard let failure = segmented.failure else {
            if segmented.plan.isForsaken { await judge(transfer, last, by: { $0.judgeLies() }, &group) }
            return
        }
        segmented.plan.endRests()
        transfer.segmented = segmented
        if let route = segmented.routes[failure.source] ?? transfer.route(to: failure.source) {
            (transfer.url, transfer.hops) = (route.url, route.hops)
        }
        await judge(transfer, failure.result, &group)
    }

    /// Asks the next source of a download, in the same attempt: nothing had come of the last one.
    func goOn(_ transfer: Transfer, at source: Int, after result: ExchangeResult) async {
        var transfer = transfer
        let judge = Judge(transfer, result, at: clock.now, jitter: 0, canAsk: false)
        transfer.progress = judge.progress
        transfer.progress.record(judge.metrics())
        transfer.progress.forgetBytes()
        transfer.turn(to: source)
        await startAuthorized(transfer)
    }
}

extension SegmentedTransfer {
    /// The end of the last connection as that of one request for the whole, which has been read.
    fileprivate func wholeResult(_ last: ExchangeResult) -> ExchangeResult {
        var result = last
        result.outcome = .complete
        result.head = head
        result.received = .file(path: "", length: plan.total)
        result.length = plan.total
        result.digests = reader.finish()
        result.judgement = HeadJudgement(.keep(at: 0), .append(at: 0))
        return result
    }
}

extension ExchangeResult {
    /// With the digests of what is in memory.
    func digested(by algorithms: Set<DigestAlgorithm>) -> ExchangeResult {
        guard isBodyKept, case .memory(let bytes) = received else { return self }
        var result = self
        for algorithm in algorithms { result.digests[algorithm] = Digest.of(bytes, algorithm) }
        return result
    }

    /// The same with another outcome.
    fileprivate func failing(_ outcome: ExchangeOutcome) -> ExchangeResult {
        var result = self
        result.outcome = outcome
        return result
    }

    /// Whether a kept connection was closed just as it was reused, which says nothing about who closed it.
    fileprivate var isClosedWhileIdle: Bool {
        guard metrics.isReusedConnection, head == nil, case .failed(let fault) = outcome else { return false }
        return [.reset, .emptyReply, .http2Refused, .http2Stream].contains(fault)
    }

    /// Whether it failed for this machine's disk, so that what it counts may not be there.
    fileprivate var isOfDisk: Bool {
        if case .failed(.disk) = outcome { return true }
        return false
    }
}
