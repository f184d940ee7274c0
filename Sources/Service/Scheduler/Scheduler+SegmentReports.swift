import Base
import Core
import Files
import Notation
import Store
import TransferEngine

/// What the engine reports of downloads in segments, and what follows.
extension Scheduler {
    /// Bytes that are read at once behind the connections.
    private static let readingStep: Int64 = 8 << 20

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
    func noteSegment(
        _ exchange: ExchangeID, _ offset: Int64, _ group: inout ThrowingDiscardingTaskGroup<any Error>
    ) -> Bool {
        guard let id = tasksOfExchanges[exchange], let connection = transfers[id]?.segmented?.connections[exchange]
        else { return false }
        transfers[id]?.segmented?.plan.reach(exchange.rawValue, offset)
        transfers[id]?.segmented?.plan.praise(connection.source)
        unrecorded[exchange] = offset
        storeSegments(of: id)
        readBehind(id, &group)
        return true
    }

    private func storeSegments(of id: TaskID) {
        guard var transfer = transfers[id], let segmented = transfer.segmented else { return }
        segmented.store(in: &transfer.progress)
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
        segmented.plan.end(exchange.rawValue)
        segmented.last = result
        var goesOn = isOnDisk
        if !isOnDisk, transfer.stopReason == nil, segmented.ending == nil {
            goesOn = noteFailure(result, connection, transfer, &segmented) == .again
        }
        transfer.segmented = segmented
        transfers[id] = transfer
        storeSegments(of: id)
        readBehind(id, &group)
        let isReplaced = goesOn && connect(id, to: connection.source, inPlaceOf: exchange) == .begun
        agenda.withLock { $0.ended(connection: exchange) }
        if !isReplaced { widening.insert(id) }
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
        _ result: ExchangeResult, _ connection: SegmentedTransfer.Connection, _ transfer: Transfer,
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
            if follow(head, connection, transfer, &segmented) { return .again }
            let wait = head.fields["Retry-After"].flatMap { RetryAfter.parse($0, now: clock.now) }
            if OriginPauses.slowsDown(status: head.status), let wait {
                leaveAlone(connection.url.origin, of: transfer.task.app, for: wait)
            }
            rest(source, atLeast: wait ?? .zero, &segmented)
        }
        return .leftAlone
    }

    private func rest(_ source: Int, atLeast wait: Duration = .zero, _ segmented: inout SegmentedTransfer) {
        // Whoever redirected here may lead elsewhere by now.
        if source > 0 || segmented.routes[source]?.hops ?? 0 > 0 { segmented.routes[source] = nil }
        segmented.plan.rest(source, atLeast: wait, at: clock.now)
        if case .resting(let end) = segmented.plan.standings[source] { agenda.withLock { $0.hold(until: end) } }
    }

    /// Has the source's requests go where an answer leads, if it leads anywhere.
    private func follow(
        _ head: ResponseHead, _ connection: SegmentedTransfer.Connection, _ transfer: Transfer,
        _ segmented: inout SegmentedTransfer
    ) -> Bool {
        guard var route = segmented.routes[connection.source], route.url == connection.url,
            let first = transfer.sourceURL(connection.source)
        else { return false }
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
        // Somebody may be asked who has no place yet.
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

    // MARK: Reading in order

    /// Reads on in what has come without a gap.
    private func readBehind(_ id: TaskID, _ group: inout ThrowingDiscardingTaskGroup<any Error>) {
        guard let segmented = transfers[id]?.segmented, !segmented.isReading, segmented.ending == nil else { return }
        let (reader, end, isComplete) = (segmented.reader, segmented.plan.record.contiguous, segmented.plan.isComplete)
        let unread = end - reader.position
        guard unread >= Self.readingStep || isComplete && unread > 0 else { return }
        transfers[id]?.segmented?.isReading = true
        let inbox = inbox
        group.addTask {
            let result: Result<Range<Int64>?, SystemError>
            do throws(SystemError) {
                let wrong = try await reader.read(to: end)
                if isComplete, wrong == nil { try await reader.truncate() }
                result = .success(wrong)
            } catch { result = .failure(error) }
            inbox.tell(.read(id, reader, result))
        }
    }

    /// Reads content once that came in one request.
    func readWhole(
        of transfer: Transfer, _ result: ExchangeResult, _ group: inout ThrowingDiscardingTaskGroup<any Error>
    ) {
        let id = transfer.task.id
        let isContent = result.head.map { head in
            transfer.specification.acceptableStatusCodes.contains { $0.contains(head.status) }
        }
        let reader = transfer.contentReader(folder, total: result.length, checksPieces: isContent ?? false)
        transfers[id]?.whole = (result, reader)
        live.finalizing(id)
        let inbox = inbox
        group.addTask {
            let read: Result<Range<Int64>?, SystemError>
            do throws(SystemError) {
                try await reader.truncate()
                read = .success(try await reader.read(to: result.length))
            } catch { read = .failure(error) }
            inbox.tell(.read(id, reader, read))
        }
    }

    /// Takes what came of reading.
    func read(
        _ id: TaskID, _ reader: ContentReader, _ result: Result<Range<Int64>?, SystemError>,
        _ group: inout ThrowingDiscardingTaskGroup<any Error>
    ) async {
        guard var transfer = transfers[id] else { return }
        if let whole = transfer.whole, whole.reader === reader {
            transfer.whole = nil
            transfers[id] = transfer
            return await end(transfer, whole.result, read: reader, result, &group)
        }
        guard var segmented = transfer.segmented, segmented.reader === reader else { return }
        segmented.isReading = false
        var unwanted: [ExchangeID] = []
        switch result {
        case .success(nil): segmented.plan.verify(upTo: reader.position)
        case .success(let piece?):
            transfer.progress.noteFetchedTwice(Int64(piece.count))
            unwanted = segmented.plan.reject(piece).map(ExchangeID.init)
            segmented.failure = nil
            log.of(transfer.name).warning("a piece is not what it should be", ("offset", piece.lowerBound))
        case .failure(let error):
            segmented.ending = .disk(error)
            unwanted = Array(segmented.connections.keys)
        }
        transfer.segmented = segmented
        transfers[id] = transfer
        for exchange in unwanted { engine.stop(exchange) }
        widening.insert(id)
        readBehind(id, &group)
        await proceed(id, &group)
    }

    private func end(
        _ transfer: Transfer, _ result: ExchangeResult, read reader: ContentReader,
        _ read: Result<Range<Int64>?, SystemError>, _ group: inout ThrowingDiscardingTaskGroup<any Error>
    ) async {
        var (transfer, result) = (transfer, result)
        switch read {
        case .success(let piece):
            transfer.wrongPiece = piece
            result.digests = reader.finish()
            if transfer.stopReason != nil { result.outcome = .stopped }
            await judge(transfer, result, &group)
        case .failure(let error):
            result.outcome = .failed(.disk(errno: error.errno))
            await judge(transfer, result, &group)
        }
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
