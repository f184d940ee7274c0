import Base
package import Core
import TransferEngine

/// Transfers under way, for whoever watches: progress is sampled from the engine, never stored or queued.
package struct LiveTransfers: Sendable {
    private struct Entry {
        var session: SessionID
        /// `scheme://host:port` of the task's request.
        var origin: String
        var exchange: ExchangeID
        var isFinalizing = false
        var offset: Int64
        /// Bytes of an upload that the server had before this exchange.
        var sentBefore: Int64
        /// When and at which count of bytes the speed was measured last.
        var measured: (at: Int64, bytes: Int64)
        var throughput: Double?
    }

    /// Milliseconds between two measurements of a transfer's speed, however often it is asked for.
    private static let measuringPeriod: Int64 = 500

    private let entries = Locked<[TaskID: Entry]>([:])
    let engine: TransferEngine
    let clock: Clock

    func began(
        _ task: TaskID, session: SessionID, origin: String, exchange: ExchangeID, offset: Int64, sentBefore: Int64 = 0
    ) {
        let now = clock.monotonic()
        entries.withLock {
            $0[task] = Entry(
                session: session, origin: origin, exchange: exchange, offset: offset, sentBefore: sentBefore,
                measured: (now, offset))
        }
    }

    func finalizing(_ task: TaskID) { entries.withLock { $0[task]?.isFinalizing = true } }

    /// Ends the samples of a task. Called before its last events are committed, so that none follows them.
    func ended(_ task: TaskID) { entries.withLock { _ = $0.removeValue(forKey: task) } }

    package func sample(_ task: TaskID) -> LiveState.Sample? {
        guard let entry = entries.withLock({ $0[task] }) else { return nil }
        return sample(entry)
    }

    /// The speed of a transfer in bytes per second, both ways together: smoothed over the times it was asked for, at
    /// first over all since it began. Nil while nothing can be said.
    package func throughput(_ task: TaskID) -> Double? {
        guard let entry = entries.withLock({ $0[task] }), let progress = engine.progress(entry.exchange) else {
            return nil
        }
        let bytes = progress.length + progress.bytesSent
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

    private static func speed(_ bytes: Int64, _ milliseconds: Int64) -> Double {
        Double(max(0, bytes)) * 1000 / Double(milliseconds)
    }

    package func samples(of session: SessionID) -> [(task: TaskID, sample: LiveState.Sample)] {
        let found = entries.withLock { entries in entries.filter { $0.value.session == session } }
        return found.map { ($0.key, sample($0.value)) }
    }

    package var count: Int { entries.withLock { $0.count } }

    /// How many transfers an origin has, all together and of one session.
    func count(at origin: String, of session: SessionID) -> (all: Int, session: Int) {
        entries.withLock { entries in
            entries.values.reduce(into: (0, 0)) { count, entry in
                guard entry.origin == origin else { return }
                count.0 += 1
                if entry.session == session { count.1 += 1 }
            }
        }
    }

    private func sample(_ entry: Entry) -> LiveState.Sample {
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
