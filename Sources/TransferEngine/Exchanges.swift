package import Base
import Synchronization

/// Performs exchanges on an engine of its own, each for one waiting caller.
package final class Exchanges: Sendable {
    private final class Waiting: Sendable {
        let continuations = Locked<[ExchangeID: CheckedContinuation<ExchangeResult, Never>]>([:])

        func take(_ report: ExchangeReport) {
            guard case .ended(let id, let result) = report else { return }
            continuations.withLock { $0.removeValue(forKey: id) }?.resume(returning: result)
        }
    }

    private let engine: TransferEngine
    private let waiting: Waiting
    private let lastID = Atomic<UInt64>(0)

    /// - Parameter threads: The number of event loops.
    package init(threads: Int = 1, log: Log) throws {
        let waiting = Waiting()
        self.waiting = waiting
        engine = try TransferEngine(
            threads: threads, diskThreads: 1, lookUps: LookUpLimits(total: 64, perPool: 4), log: log
        ) { waiting.take($0) }
    }

    package func nextID() -> ExchangeID { ExchangeID(rawValue: lastID.add(1, ordering: .relaxed).newValue) }

    /// Performs a request. Cancelling the Swift task ends the exchange as ``ExchangeOutcome/stopped``.
    package func perform(_ request: ExchangeRequest) async -> ExchangeResult {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiting.continuations.withLock { $0[request.id] = continuation }
                engine.start(request)
                // A cancellation before the start found no exchange to stop.
                if Task.isCancelled { engine.stop(request.id) }
            }
        } onCancel: {
            engine.stop(request.id)
        }
    }

    /// Ends an exchange as ``ExchangeOutcome/stopped``.
    package func stop(_ id: ExchangeID) { engine.stop(id) }

    package func shutdown() async { await engine.shutdown(within: .seconds(2)) }
}
