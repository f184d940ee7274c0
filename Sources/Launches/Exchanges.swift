import Base
import Synchronization
import TransferEngine

/// Performs exchanges on an engine of its own, each for a caller that waits for it.
final class Exchanges: Sendable {
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

    init(log: Log) throws {
        let waiting = Waiting()
        self.waiting = waiting
        // One thread: webhooks are small, and transfers have threads of their own.
        engine = try TransferEngine(
            threads: 1, diskThreads: 1, lookUps: LookUpLimits(total: 64, perPool: 4), log: log
        ) { waiting.take($0) }
    }

    func nextID() -> ExchangeID { ExchangeID(rawValue: lastID.add(1, ordering: .relaxed).newValue) }

    /// Performs a request; cancelling the task ends it as ``ExchangeOutcome/stopped``.
    func perform(_ request: ExchangeRequest) async -> ExchangeResult {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiting.continuations.withLock { $0[request.id] = continuation }
                engine.start(request)
                // A cancellation before the start found nothing to stop.
                if Task.isCancelled { engine.stop(request.id) }
            }
        } onCancel: {
            engine.stop(request.id)
        }
    }

    func shutdown() async { await engine.shutdown(within: .seconds(2)) }
}
