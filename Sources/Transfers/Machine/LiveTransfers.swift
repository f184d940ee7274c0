package import Base
package import Core
package import TransferEngine

/// Transfers in flight and their progress, which is sampled from the engine for each reader and never stored.
package struct LiveTransfers: Sendable {
    private struct Entry {
        var session: SessionID
        let startedAt: Timestamp
        var exchange: ExchangeID
        let arrival: Arrival
        var isFinalizing = false
        var offset: Int64
        /// Bytes of an upload that the server had received before this exchange.
        var sentBefore: Int64
        /// The time and byte count of the last measurement of the speed.
        var measured: (at: Int64, bytes: Int64)
        var throughput: Double?
        /// The byte count at the last check for progress, and the session's stall interval.
        var seen: Int64?
        var stallInterval: Duration?
        /// The parts and the length of a content in segments.
        var parts: [Part] = []
        var total: Int64?
    }

    /// Consecutive bytes of a content.
    struct Part {
        /// As of the start of its connection.
        var segment: LiveState.Segment
        /// The exchange that fetches the rest.
        var exchange: ExchangeID?
    }

    /// Minimum milliseconds between two measurements of a transfer's speed.
    private static let measuringPeriod: Int64 = 500

    private let entries = Locked<[TaskID: Entry]>([:])
    let engine: TransferEngine
    let clock: Clock

    package init(engine: TransferEngine, clock: Clock) {
        self.engine = engine
        self.clock = clock
    }

    func began(
        _ task: TaskID, session: SessionID, exchange: ExchangeID, arrival: Arrival, offset: Int64,
        sentBefore: Int64 = 0, stallInterval: Duration?
    ) {
        let (now, start) = (clock.monotonic(), clock.now)
        entries.withLock {
            $0[task] = Entry(
                session: session, startedAt: $0[task]?.startedAt ?? start, exchange: exchange, arrival: arrival,
                offset: offset, sentBefore: sentBefore, measured: (now, offset), stallInterval: stallInterval)
        }
    }

    /// Sets the parts of a content in segments.
    func consists(_ task: TaskID, of parts: [Part], total: Int64) {
        entries.withLock { entries in
            entries[task]?.parts = parts
            entries[task]?.total = total
        }
    }

    /// The progress of the segments of a content; nil if the content has none.
    package func segments(_ task: TaskID) -> [LiveState.Segment]? {
        guard let entry = entries.withLock({ $0[task] }), entry.total != nil else { return nil }
        return segments(entry)
    }

    private func segments(_ entry: Entry) -> [LiveState.Segment] {
        entry.parts.map { part in
            var segment = part.segment
            if let length = part.exchange.flatMap({ engine.progress($0) })?.length {
                segment.received = min(segment.length, max(segment.received, length - segment.offset))
            }
            return segment
        }
    }

    /// The attempt in flight of a task.
    package func attempt(_ task: TaskID) -> LiveState.CurrentAttempt? {
        guard let entry = entries.withLock({ $0[task] }) else { return nil }
        return LiveState.CurrentAttempt(
            startedAt: entry.startedAt, offset: entry.offset, sentBefore: entry.sentBefore, sample: sample(entry),
            response: entry.arrival.response)
    }

    func finalizing(_ task: TaskID) { entries.withLock { $0[task]?.isFinalizing = true } }

    /// Ends the samples of a task. Called before its last events are committed, so that none follows them.
    func ended(_ task: TaskID) { entries.withLock { _ = $0.removeValue(forKey: task) } }

    package func sample(_ task: TaskID) -> LiveState.Sample? {
        guard let entry = entries.withLock({ $0[task] }) else { return nil }
        return sample(entry)
    }

    /// The throughput of a transfer in bytes per second, sent and received bytes together: smoothed over the
    /// measurements, at first over the whole duration. Nil until the first measurement.
    package func throughput(_ task: TaskID) -> Double? {
        guard let entry = entries.withLock({ $0[task] }), let bytes = bytes(entry) else { return nil }
        let now = clock.monotonic()
        return entries.withLock { entries in
            guard let entry = entries[task] else { return nil }
            let elapsed = now - entry.measured.at
            guard elapsed >= Self.measuringPeriod else {
                return entry.throughput ?? (elapsed > 0 ? Self.speed(bytes - entry.measured.bytes, elapsed) : nil)
            }
            let current = Self.speed(bytes - entry.measured.bytes, elapsed)
            let smoothed = entry.throughput.map { ($0 + current) / 2 } ?? current
            entries[task]?.measured = (now, bytes)
            entries[task]?.throughput = smoothed
            return smoothed
        }
    }

    /// Received and sent bytes together.
    private func bytes(_ entry: Entry) -> Int64? {
        if entry.total != nil { return segments(entry).reduce(0) { $0 + $1.received } }
        return engine.progress(entry.exchange).map { $0.length + $0.bytesSent }
    }

    private static func speed(_ bytes: Int64, _ milliseconds: Int64) -> Double {
        Double(max(0, bytes)) * 1000 / Double(milliseconds)
    }

    /// The sessions whose transfers moved bytes since the last call, and the shortest stall interval of all sessions
    /// with transfers.
    package func progress() -> (sessions: Set<SessionID>, shortestInterval: Duration?) {
        var moved: Set<SessionID> = []
        var shortest: Duration?
        for (task, entry) in entries.withLock({ $0 }) {
            guard let interval = entry.stallInterval else { continue }
            shortest = min(shortest ?? interval, interval)
            guard let bytes = bytes(entry), bytes != entry.seen else { continue }
            // The first count is only the starting point of the transfer.
            if entry.seen != nil { moved.insert(entry.session) }
            entries.withLock { entries in
                if entries[task]?.exchange == entry.exchange { entries[task]?.seen = bytes }
            }
        }
        return (moved, shortest)
    }

    package func samples(of session: SessionID) -> [TaskID: LiveState.Sample] {
        entries.withLock { entries in entries.filter { $0.value.session == session } }.mapValues { sample($0) }
    }

    package var count: Int { entries.withLock { $0.count } }

    private func sample(_ entry: Entry) -> LiveState.Sample {
        if let total = entry.total {
            return LiveState.Sample(
                phase: entry.isFinalizing ? .finalizing : .receiving,
                received: segments(entry).reduce(0) { $0 + $1.received }, sent: 0, expected: total)
        }
        guard let progress = engine.progress(entry.exchange) else {
            return LiveState.Sample(
                phase: entry.isFinalizing ? .finalizing : .connecting, received: entry.offset,
                sent: entry.sentBefore, expected: nil)
        }
        let phase: LiveState.Phase =
            switch progress.phase {
            case .resolving, .connecting: .connecting
            case .sending: .sending
            case .receiving: .receiving
            }
        return LiveState.Sample(
            phase: entry.isFinalizing ? .finalizing : phase, received: progress.length,
            sent: entry.sentBefore + progress.bytesSent,
            expected: progress.expectedLength)
    }
}
