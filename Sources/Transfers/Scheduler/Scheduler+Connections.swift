import Base
import Core
import Files
import Store
import TransferEngine

/// Connections of downloads in segments, and their slots.
extension Scheduler {
    /// Begins more connections for downloads that may have them, after the claimed tasks have begun.
    func widenAll() async {
        for id in turn.widening { await widen(id) }
        agenda.withLock { $0.places?.drop() }
    }

    func widen(_ id: TaskID) async {
        let now = clock.now
        while let sources = flights[id]?.transfer.segmented?.plan.sources(at: now), !sources.isEmpty {
            var isStuck = true
            for source in sources {
                switch await connect(id, to: source) {
                case .begun: isStuck = false
                case .noPlace: continue
                case .nothingToDo:
                    turn.widening.remove(id)
                    return
                }
                break
            }
            if isStuck {
                await useOwnSlot(id, for: sources)
                return
            }
        }
        if flights[id]?.transfer.segmented == nil { turn.widening.remove(id) }
    }

    /// Uses a task's own slot for another source than its own if it has no connection. Otherwise two tasks could wait for
    /// each other's slots for ever, and one for its own.
    private func useOwnSlot(_ id: TaskID, for sources: [Int]) async {
        guard let transfer = flights[id]?.transfer, let segmented = transfer.segmented, segmented.connections.isEmpty
        else { return }
        let (exchange, room, now) = (exchanges.next, room, clock.now)
        for source in sources {
            guard let route = transfer.routeToConnect(source) else { return }
            let lane = lane(of: transfer, at: route.url.origin)
            guard agenda.withLock({ $0.beginInOwnSlot(connection: exchange, lane, room, at: now) }) else { continue }
            return await begin(exchange, of: id, to: source, isOwn: true)
        }
    }

    private func begin(_ exchange: ExchangeID, of id: TaskID, to source: Int, isOwn: Bool) async {
        guard let segmented = flights[id]?.transfer.segmented else { return }
        await feed(.connect(source: source, isOwn: isOwn, positions: positions(segmented)), to: id)
        if flights[id]?.transfer.segmented?.connections[exchange] != nil { return }
        agenda.withLock { $0.ended(connection: exchange) }
    }

    enum Connecting { case begun, noPlace, nothingToDo }

    /// Begins a connection to a source, in the slot of one that ended or in a new one.
    func connect(_ id: TaskID, to source: Int, inPlaceOf last: ExchangeID? = nil) async -> Connecting {
        guard let transfer = flights[id]?.transfer, let segmented = transfer.segmented,
            let route = transfer.routeToConnect(source)
        else { return .nothingToDo }
        let exchange = exchanges.next
        let isOwn = route.url.origin == laneHost(of: transfer) && !segmented.connections.values.contains(where: \.isOwn)
        guard isOwn || hasPlace(for: exchange, of: transfer, at: route.url.origin, inPlaceOf: last) else {
            return .noPlace
        }
        await begin(exchange, of: id, to: source, isOwn: isOwn)
        return flights[id]?.transfer.segmented?.connections[exchange] == nil ? .nothingToDo : .begun
    }

    /// Begins a connection in the slot of one that ended, or others if that is impossible.
    func replace(_ last: ExchangeID, of id: TaskID, by source: Int) async {
        guard await connect(id, to: source, inPlaceOf: last) != .begun else { return }
        await widen(id)
        await feed(.widened, to: id)
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

    /// The offsets that the connections have reached.
    func positions(_ segmented: SegmentedTransfer) -> [UInt64: Int64] {
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
            transfer.id, of: (held + coming).sorted { $0.segment.offset < $1.segment.offset }, total: plan.total)
    }
}
