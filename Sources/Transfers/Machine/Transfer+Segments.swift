import Base
import Core
import Formats
import Store
import TransferEngine

/// A content in segments while its connections are in flight.
extension Transfer {
    /// Bytes that one step reads behind the connections.
    private static let readingStep: Int64 = 8 << 20

    /// Continues a download over several connections after its first response, if it can have segments.
    mutating func considerSegments(
        _ exchange: ExchangeID, _ head: ResponseHead, _ verdict: ResumeVerdict?
    ) -> [Effect] {
        guard case .append(let offset)? = verdict, offset == attempt.resuming?.offset ?? 0,
            let point = progress.kept.point, let total = point.totalLength, offset < total,
            point.allowsSegments(head), hasPieces(of: total), stop == nil
        else { return [.setMaximumUnrecorded(exchange, ServiceSettings.maximumUnrecorded)] }
        let source = request.source
        let route = SegmentedTransfer.Route(
            url: request.url, headers: request.headers, credential: attempt.access.credential, hops: request.hops)
        var segmented = SegmentedTransfer(
            plan: segmentation(SegmentRecord(total: total)), routes: [source: route], points: [source: point])
        segmented.plan.trust(source)
        let bytes = segmented.plan.adopt(exchange.rawValue, of: source, at: offset)
        segmented.head = head
        segmented.hasOwnContent = source == 0
        segmented.connections[exchange] = SegmentedTransfer.Connection(
            source: source, bytes: bytes, url: request.url, isOwn: source == 0)
        stage = .segmented(segmented)
        hasPartialFile = true
        var effects: [Effect] = [.setMaximumUnrecorded(exchange, maximumUnrecordedOfEach)]
        if bytes.upperBound < total { effects.append(.shorten(exchange, bytes.upperBound)) }
        // Before any other connection writes: after a kill, the bytes in the file have to be counted by segments.
        return effects + [.widenLater] + noteSegments(segmented)
    }

    /// Has the progress of the segments stored.
    private mutating func noteSegments(_ segmented: SegmentedTransfer) -> [Effect] {
        segmented.store(in: &progress)
        return [.show, .advance()]
    }

    mutating func note(segmentHead head: ResponseHead, _ verdict: ResumeVerdict?, of exchange: ExchangeID) -> [Effect] {
        guard var segmented, let connection = segmented.connections[exchange], case .append? = verdict else {
            return []
        }
        let isFirst = segmented.head == nil
        segmented.head = segmented.head ?? head
        if connection.source == 0 { segmented.hasOwnContent = true }
        segmented.plan.trust(connection.source)
        if segmented.points[connection.source] == nil {
            segmented.points[connection.source] = .met(head, url: connection.url.text)
        }
        stage = .segmented(segmented)
        guard isFirst else { return [.widenLater] }
        return [
            .arrived(ArrivingContent(progress), TaskResponse(head, url: connection.url)),
            resumption(at: segmented.plan.record.count, of: segmented.plan.total, cause: "interrupted"), .widenLater,
        ]
    }

    mutating func note(segment offset: Int64, of exchange: ExchangeID) -> [Effect] {
        guard var segmented, let connection = segmented.connections[exchange] else { return [] }
        segmented.plan.reach(exchange.rawValue, offset)
        segmented.plan.praise(connection.source)
        segmented.repeats[connection.source] = nil
        stage = .segmented(segmented)
        return [.record(exchange, offset, isStored: true)] + noteSegments(segmented) + readBehind()
    }

    // MARK: Connections

    /// Begins a connection to a source. Returns no effects if no range is left for it.
    mutating func connect(
        to source: Int, isOwn: Bool, _ positions: [UInt64: Int64], _ world: Surroundings
    ) -> [Effect] {
        guard var segmented, let route = routeToConnect(source),
            let assignment = segmented.plan.assign(world.exchange.rawValue, to: source, positions: positions)
        else { return [] }
        segmented.connections[world.exchange] = SegmentedTransfer.Connection(
            source: source, bytes: assignment.bytes, url: route.url, isOwn: isOwn)
        segmented.routes[source] = route
        stage = .segmented(segmented)
        hasPartialFile = true
        let shortened = assignment.shortened.map {
            Effect.shorten(ExchangeID(rawValue: $0), assignment.bytes.lowerBound)
        }
        return (shortened.map { [$0] } ?? []) + [.start(world.exchange), .show]
    }

    /// The route of a new connection to a source; nil if none may begin.
    func routeToConnect(_ source: Int) -> SegmentedTransfer.Route? {
        guard let segmented, segmented.ending == nil, stop == nil else { return nil }
        return segmented.routes[source] ?? route(to: source)
    }

    /// Fetches the byte that a reader waits for before others, and lets it be read.
    mutating func want(_ offset: Int64?, _ positions: [UInt64: Int64]) -> [Effect] {
        if becomesContent, isReadable {
            guard exchange != nil, stop == nil, let response = attempt.response else { return [] }
            return [.expose(response)]
        }
        guard let offset, var segmented, segmented.ending == nil, stop == nil else { return [] }
        let shortened = segmented.plan.want(offset, positions: positions)
        stage = .segmented(segmented)
        let effects = shortened.map { Effect.shorten(ExchangeID(rawValue: $0.connection), $0.end) }
        return effects + (effects.isEmpty ? [] : [.show]) + [.widenLater]
    }

    /// Handles the end of a connection.
    mutating func end(segment exchange: ExchangeID, _ result: ExchangeResult, _ world: Surroundings) -> [Effect] {
        guard var segmented, let connection = segmented.connections.removeValue(forKey: exchange) else { return [] }
        var (result, effects): (_, [Effect]) = (result, [])
        count(result, of: connection, in: &segmented, world)
        var isOnDisk = false
        if case .append? = result.judgement?.verdict, !result.isOfDisk {
            segmented.plan.reach(exchange.rawValue, result.length)
            isOnDisk = result.length >= segmented.plan.segments[exchange.rawValue]?.end ?? .max
            if !isOnDisk, result.outcome == .complete { result.outcome = .failed(.shortBody) }
        }
        let kept = segmented.plan.end(exchange.rawValue) ?? connection.bytes.lowerBound
        if case .append? = result.judgement?.verdict { progress.noteFetchedTwice(result.length - kept) }
        if kept > connection.bytes.lowerBound { segmented.repeats[connection.source] = nil }
        segmented.last = result
        var goesOn = isOnDisk
        if !isOnDisk, stop == nil, segmented.ending == nil {
            goesOn = noteFailure(result, connection, &segmented, &effects, world)
        }
        stage = .segmented(segmented)
        effects += noteSegments(segmented) + readBehind()
        effects.append(.widenLater)
        if goesOn, !segmented.plan.leavesPlace(connection.source) {
            // The last effect: it may end the transfer.
            effects.append(.replace(exchange, source: connection.source))
        }
        if segmented.ending != nil { effects += segmented.connections.keys.map(Effect.stop) }
        // The connection that replaces this one counts as in flight.
        return effects + (effects.contains { $0.isReplacement } ? [] : proceed(world))
    }

    private mutating func count(
        _ result: ExchangeResult, of connection: SegmentedTransfer.Connection, in segmented: inout SegmentedTransfer,
        _ world: Surroundings
    ) {
        request.url = connection.url
        let judge = Judge(self, result, at: world.now, jitter: 0, canAsk: false)
        progress.record(judge.metrics(offset: connection.bytes.lowerBound))
        progress.currentURL = connection.url.text
        progress.countOfBytesReceived += result.bytesReceived
        segmented.bytesReceived += result.bytesReceived
    }

    /// Notes why a connection did not receive its bytes.
    ///
    /// - Returns: Whether the source is requested again at once.
    private mutating func noteFailure(
        _ result: ExchangeResult, _ connection: SegmentedTransfer.Connection, _ segmented: inout SegmentedTransfer,
        _ effects: inout [Effect], _ world: Surroundings
    ) -> Bool {
        let source = connection.source
        if result.outcome != .stopped {
            segmented.failure = SegmentedTransfer.Failure(
                result: result, url: connection.url, hops: segmented.routes[source]?.hops ?? 0)
        }
        switch result.judgement?.verdict {
        case .restartWithThisBody, .askAgainFromZero:
            // A mirror whose content never matched is dropped.
            if segmented.points[source] == nil {
                segmented.plan.drop(source)
            } else {
                segmented.ending = .restart(cause: "resourceChanged")
            }
            return false
        default: break
        }
        if case .failed(let fault) = result.outcome, result.isClosedWhileIdle(fault),
            segmented.repeats[source, default: 0] < Judge.maximumRepeats
        {
            segmented.repeats[source, default: 0] += 1
            return true
        }
        switch result.outcome {
        case .stopped: break
        case .failed(.disk), .failed(.prefixMissing), .failed(.tooLarge): segmented.ending = .failed(result)
        case .failed(.egressDenied):
            effects.append(.note(.egressDenied(host: connection.url.host)))
            segmented.plan.drop(source)
        case .failed: rest(source, &segmented, &effects, world)
        case .complete:
            guard let head = result.head else { break }
            if follow(head, connection, &segmented) { return true }
            effects += pause(after: result, world)
            let wait = RetryAfter.parse(head.fields, now: world.now)
            rest(source, atLeast: wait ?? .zero, &segmented, &effects, world)
        }
        return false
    }

    private func rest(
        _ source: Int, atLeast wait: Duration = .zero, _ segmented: inout SegmentedTransfer,
        _ effects: inout [Effect], _ world: Surroundings
    ) {
        // The redirect may have another target by now.
        if source > 0 || segmented.routes[source]?.hops ?? 0 > 0 { segmented.routes[source] = nil }
        segmented.plan.rest(source, atLeast: wait, at: world.now)
        if case .resting(let end) = segmented.plan.standings[source] { effects.append(.hold(until: end)) }
    }

    /// Redirects the source's requests to the target of a response, if it has one.
    private mutating func follow(
        _ head: ResponseHead, _ connection: SegmentedTransfer.Connection, _ segmented: inout SegmentedTransfer
    ) -> Bool {
        guard var route = segmented.routes[connection.source] else { return false }
        // Another connection's response has changed the route meanwhile.
        guard route.url == connection.url else { return Redirect.isRedirect(head.status) }
        let target = head.fields["Location"].flatMap { try? ParsedURL(location: $0, from: route.url) }
        let decision = Redirect.decide(
            head: head, method: request.method, hops: route.hops, task: taskURL, current: route.url, target: target)
        guard case .follow("GET", false, let dropsSecrets) = decision, let target,
            target.isSecure || !configuration.requiresSecureTransport
        else { return false }
        route.headers = Redirect.fields(
            route.headers, dropBody: false, dropHeaders: dropsSecrets,
            sensitive: specification.request.sensitiveHeaders)
        route.credential = credential(for: target)
        route.url = target
        route.hops += 1
        segmented.routes[connection.source] = route
        if progress.redirects.count < Redirect.limit {
            progress.redirects.append(RedirectRecord(statusCode: head.status, url: target.text))
        }
        return true
    }

    // MARK: Reading

    /// Reads the content that has been received without a gap.
    private mutating func readBehind() -> [Effect] {
        guard var segmented, !segmented.isReading, segmented.ending == nil else { return [] }
        let (end, isComplete) = (segmented.plan.record.contiguous, segmented.plan.isComplete)
        let unread = end - segmented.read.position
        guard unread >= Self.readingStep || isComplete && unread > 0 else { return [] }
        segmented.isReading = true
        stage = .segmented(segmented)
        return [.read(to: end, isLast: isComplete)]
    }

    /// Handles the result of reading.
    mutating func take(_ reading: Reading, _ world: Surroundings) -> [Effect] {
        if case .verifying(let result) = stage { return take(reading, of: result, world) }
        guard var segmented else { return [] }
        segmented.isReading = false
        segmented.read = reading
        var effects: [Effect] = []
        switch reading.result {
        case .success(nil): segmented.plan.verify(upTo: reading.position)
        case .success(let piece?):
            progress.noteFetchedTwice(Int64(piece.count))
            effects += segmented.plan.reject(piece).map { .stop(ExchangeID(rawValue: $0)) }
            segmented.failure = nil
            effects.append(.note(.wrongPiece(at: piece.lowerBound)))
        case .failure(let error):
            segmented.ending = .disk(error)
            effects += segmented.connections.keys.map(Effect.stop)
        }
        stage = .segmented(segmented)
        return effects + [.widenLater] + readBehind() + proceed(world)
    }

    // MARK: When no connection is left

    /// Continues a download that has no connection: ends it, judges the failure, or begins another connection.
    mutating func proceed(afterWidening: Bool = false, _ world: Surroundings) -> [Effect] {
        guard var segmented, segmented.connections.isEmpty, !segmented.isReading, let last = segmented.last else {
            return []
        }
        if stop != nil { return judge(last.failing(.stopped), world) }
        switch segmented.ending {
        case .restart(let cause): return judge(last, world) { $0.restart(cause: cause) }
        case .failed(let result): return judge(result, world)
        case .disk(let error): return judge(last.failing(.failed(.disk(errno: error.errno))), world)
        case nil: break
        }
        if segmented.plan.isComplete {
            guard segmented.read.position == segmented.plan.total else { return readBehind() }
            return judge(segmented.result(ofWhole: last), world)
        }
        if !afterWidening { return [.widen(proceeds: true)] }
        // A source may be available that has no slot yet.
        guard segmented.plan.sources(at: world.now).isEmpty else { return [] }
        guard let failure = segmented.failure else {
            guard segmented.plan.isForsaken else { return [] }
            let mismatch = DigestMismatch(message: "no source has all pieces with the expected digests")
            return judge(last, world) { $0.restart(after: mismatch) }
        }
        // Without a digest no other source may complete the segments of a mirror.
        if !specification.provesContent, isMirrorUseless(after: failure.result) {
            if let next = nextSource(world) { return leaveMirror(of: segmented.plan.record.count, for: next) }
            if let end = pauseOfSources(world) {
                return judge(failure.result, world) { judge in
                    segmented.store(in: &judge.progress)
                    return .retry(at: end)
                }
            }
        }
        segmented.plan.endRests()
        (request.url, request.hops) = (failure.url, failure.hops)
        let access = attempt.accesses[failure.url.origin]
        // The credentials that were read for another source say nothing about this one.
        if failure.result.mayAsk, access == nil { segmented.failure = nil }
        stage = .segmented(segmented)
        guard failure.result.mayAsk else { return judge(failure.result, world) }
        guard let access else { return [.authorize] }
        attempt.access = access
        return judge(failure.result, world)
    }
}

extension Transfer.Effect {
    fileprivate var isReplacement: Bool { if case .replace = self { true } else { false } }
}

extension ExchangeResult {
    /// The same with another outcome.
    fileprivate func failing(_ outcome: ExchangeOutcome) -> ExchangeResult {
        var result = self
        result.outcome = outcome
        return result
    }

    /// Whether a kept connection was closed just as it was reused, which does not count against the request or source.
    func isClosedWhileIdle(_ fault: TransferFault) -> Bool {
        metrics.isReusedConnection && head == nil
            && [.reset, .emptyReply, .http2Refused, .http2Stream].contains(fault)
    }

    /// Whether it failed on this machine's disk, so that the bytes that it counts may not be stored.
    fileprivate var isOfDisk: Bool {
        if case .failed(.disk) = outcome { return true }
        return false
    }
}
