import Base
package import Core
import TransferEngine

/// Transfers under way, for whoever watches: progress is sampled from the engine, never stored or queued.
package final class LiveTransfers: Sendable {
    private struct Entry {
        var session: SessionID
        var exchange: ExchangeID
        var isFinalizing = false
        var offset: Int64
    }

    private let entries = Locked<[TaskID: Entry]>([:])
    private let engine: TransferEngine

    init(engine: TransferEngine) { self.engine = engine }

    /// What a task is doing now.
    package struct Sample: Hashable, Sendable {
        package var phase: LivePhase
        /// Bytes of content at hand, resumed ones included.
        package var received: Int64
        package var sent: Int64
        package var expected: Int64?
    }

    package enum LivePhase: String, Sendable { case connecting, sending, receiving, finalizing }

    func began(_ task: TaskID, session: SessionID, exchange: ExchangeID, offset: Int64) {
        entries.withLock { $0[task] = Entry(session: session, exchange: exchange, offset: offset) }
    }

    func finalizing(_ task: TaskID) { entries.withLock { $0[task]?.isFinalizing = true } }

    /// Ends the samples of a task. Called before its last events are committed, so that none follows them.
    func ended(_ task: TaskID) { entries.withLock { _ = $0.removeValue(forKey: task) } }

    package func sample(_ task: TaskID) -> Sample? {
        guard let entry = entries.withLock({ $0[task] }) else { return nil }
        return sample(entry)
    }

    /// Samples of all transfers of a session.
    package func samples(of session: SessionID) -> [(task: TaskID, sample: Sample)] {
        let found = entries.withLock { entries in entries.filter { $0.value.session == session } }
        return found.map { ($0.key, sample($0.value)) }
    }

    package var count: Int { entries.withLock { $0.count } }

    private func sample(_ entry: Entry) -> Sample {
        guard let progress = engine.progress(entry.exchange) else {
            return Sample(
                phase: entry.isFinalizing ? .finalizing : .connecting, received: entry.offset, sent: 0, expected: nil)
        }
        let phase: LivePhase =
            switch progress.phase {
            case .resolving, .connecting: .connecting
            case .sending: .sending
            case .receiving: .receiving
            }
        return Sample(
            phase: entry.isFinalizing ? .finalizing : phase, received: progress.length, sent: progress.bytesSent,
            expected: progress.expectedLength)
    }
}
