import Base
import Core
import Files
import Store
import TransferEngine

/// Downloads that come over several connections, or from several sources: how they begin, and get more connections.
extension Scheduler {
    /// Has a download go on where segments of it were interrupted, unless the file is not what it should be.
    func restoreSegments(of transfer: inout Transfer) async throws {
        guard let record = transfer.progress.segments else { return }
        guard let segmented = transfer.restoredSegments(folder) else {
            // The bytes up to the first gap can be gone on with in one request.
            transfer.progress.segments = nil
            return
        }
        let file = folder.partial(transfer.task.id.rawValue)
        let size = try await folder.size(file)
        if record.held.isEmpty {
            try await folder.remove(file)
            transfer.progress.forgetBytes()
            transfer.turn(to: 0)
        } else if let size, size >= record.end {
            // What a kill left besides is not there for the next one to find.
            try await folder.keep(record.ranges, of: file)
            transfer.segmented = segmented
        } else {
            transfer.progress.forgetBytes()
            (transfer.resuming, transfer.restartCause) = (nil, "partialFileMissing")
            transfer.turn(to: 0)
        }
    }

    /// Has a download whose first answer came go on over several connections, where it can.
    func considerSegments(_ transfer: Transfer, _ head: ResponseHead, _ verdict: ResumeVerdict?) {
        var transfer = transfer
        let exchange = transfer.exchange
        guard case .append(let offset)? = verdict, offset == transfer.resuming?.offset ?? 0,
            let point = transfer.progress.resume, let total = point.totalLength, offset < total,
            point.allowsSegments(head), transfer.hasPieces(of: total), transfer.stopReason == nil
        else { return engine.setMaximumUnrecorded(exchange, Transfer.maximumUnrecorded) }
        let route = SegmentedTransfer.Route(
            url: transfer.url, headers: transfer.headers, credential: transfer.credential, hops: transfer.hops)
        var segmented = SegmentedTransfer(
            plan: transfer.segmentation(SegmentRecord(total: total)), routes: [transfer.source: route],
            points: [transfer.source: point], reader: transfer.contentReader(folder, total: total))
        segmented.plan.trust(transfer.source)
        let bytes = segmented.plan.adopt(exchange.rawValue, of: transfer.source, at: offset)
        segmented.head = head
        segmented.connections[exchange] = SegmentedTransfer.Connection(
            source: transfer.source, bytes: bytes, url: transfer.url, cookies: transfer.cookies,
            isOwn: agenda.withLock { $0.connections[exchange] == nil })
        transfer.segmented = segmented
        transfer.hasPartialFile = true
        transfers[transfer.task.id] = transfer
        engine.setMaximumUnrecorded(exchange, transfer.maximumUnrecordedOfEach)
        if bytes.upperBound < total { engine.shorten(exchange, to: bytes.upperBound) }
        widening.insert(transfer.task.id)
        // Before any other connection writes: what a kill finds in the file has to be counted by segments.
        storeSegments(of: transfer.task.id)
    }

    /// Begins an attempt of a download that came in segments before.
    func startSegments(_ transfer: Transfer) {
        var transfer = transfer
        let id = transfer.task.id
        transfer.attemptStartedAt = clock.now
        // Perhaps there is a credential now for where one of them leads.
        transfer.segmented?.routes = [:]
        transfers[id] = transfer
        live.began(
            id, session: transfer.task.session, exchange: transfer.exchange, offset: transfer.progress.keptOffset,
            stallInterval: transfer.configuration.stallInterval.map { .seconds($0) })
        outlet.transferBegan(in: transfer.task.session)
        show(transfer)
        widening.insert(id)
        widen(id)
    }

    /// Gives connections to those that may have more, when the tasks that could begin have begun.
    func widenAll() {
        for id in widening { widen(id) }
        agenda.withLock { $0.places?.drop() }
    }

    func widen(_ id: TaskID) {
        let now = clock.now
        while let sources = transfers[id]?.segmented?.plan.sources(at: now), !sources.isEmpty {
            var isStuck = true
            for source in sources {
                switch connect(id, to: source) {
                case .begun: isStuck = false
                case .noPlace: continue
                case .nothingToDo:
                    widening.remove(id)
                    return
                }
                break
            }
            if isStuck { return }
        }
        if transfers[id]?.segmented == nil { widening.remove(id) }
    }

    enum Connecting { case begun, noPlace, nothingToDo }

    /// Begins a connection to a source, in the place of one that ended or in a new one.
    func connect(_ id: TaskID, to source: Int, inPlaceOf last: ExchangeID? = nil) -> Connecting {
        guard var transfer = transfers[id], var segmented = transfer.segmented, segmented.ending == nil,
            transfer.stopReason == nil, !transfer.isOutdated,
            let route = segmented.routes[source] ?? transfer.route(to: source)
        else { return .nothingToDo }
        let exchange = nextExchangeID()
        let isOwn = route.url.origin == laneHost(of: transfer) && !segmented.connections.values.contains(where: \.isOwn)
        guard isOwn || hasPlace(for: exchange, of: transfer, at: route.url.origin, inPlaceOf: last) else {
            return .noPlace
        }
        guard let assignment = segmented.plan.assign(exchange.rawValue, to: source, positions: positions(segmented))
        else {
            agenda.withLock { $0.ended(connection: exchange) }
            return .nothingToDo
        }
        if let shortened = assignment.shortened {
            engine.shorten(ExchangeID(rawValue: shortened), to: assignment.bytes.lowerBound)
        }
        let connection = SegmentedTransfer.Connection(
            source: source, bytes: assignment.bytes, url: route.url,
            cookies: cookiesToSend(with: transfer, to: route.url), isOwn: isOwn)
        segmented.connections[exchange] = connection
        segmented.routes[source] = route
        transfer.segmented = segmented
        transfer.hasPartialFile = true
        transfers[id] = transfer
        tasksOfExchanges[exchange] = id
        let isLimited = isLimited(transfer.task.session)
        engine.start(
            transfer.request(
                exchange, for: connection, by: route, segmented, folder: folder, settings: settings,
                bandwidthLimit: isLimited ? bandwidthShare(of: transfer) : nil))
        if isLimited { shareBandwidth(of: transfer.task.session) }
        show(transfer)
        return .begun
    }

    private func hasPlace(
        for exchange: ExchangeID, of transfer: Transfer, at origin: String, inPlaceOf last: ExchangeID?
    ) -> Bool {
        let (room, now) = (room, clock.now)
        let lane = lane(of: transfer, at: origin)
        let missing = transfer.segmented.map { $0.plan.limit - $0.plan.segments.count } ?? 1
        return agenda.withLock { agenda in
            if let last, agenda.pass(connection: last, to: exchange, at: now) { return true }
            return agenda.begin(connection: exchange, lane, wanting: max(1, missing), room, at: now)
        }
    }

    func lane(of transfer: Transfer, at origin: String) -> FairShare.Lane {
        FairShare.Lane(
            app: transfer.task.app.rawValue, session: transfer.task.session.rawValue, host: origin, priority: 0,
            ready: 0, running: 1, limit: transfer.configuration.httpMaximumConnectionsPerHost)
    }

    private func laneHost(of transfer: Transfer) -> String {
        agenda.withLock { $0.lanes[transfer.task.lane]?.host } ?? transfer.taskURL.origin
    }

    /// How far the connections are.
    private func positions(_ segmented: SegmentedTransfer) -> [UInt64: Int64] {
        segmented.connections.keys.reduce(into: [:]) { $0[$1.rawValue] = engine.progress($1)?.length }
    }

    /// Publishes the segments of the content to the readers of progress.
    func show(_ transfer: Transfer) {
        guard let plan = transfer.segmented?.plan else { return }
        let held = plan.onDisk.held.map { range in
            LiveTransfers.Part(
                segment: LiveState.Segment(
                    offset: range.offset, length: range.end - range.offset, received: range.end - range.offset,
                    source: range.source ?? (transfer.specification.mirrors.isEmpty ? 0 : nil)))
        }
        let coming = plan.segments.map { number, segment in
            LiveTransfers.Part(
                segment: LiveState.Segment(
                    offset: segment.offset, length: segment.end - segment.offset,
                    received: segment.reached - segment.offset, source: segment.source),
                exchange: ExchangeID(rawValue: number))
        }
        live.consists(
            transfer.task.id, of: (held + coming).sorted { $0.segment.offset < $1.segment.offset }, total: plan.total)
    }
}
