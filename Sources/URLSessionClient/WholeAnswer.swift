import Foundation
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One request, whose whole answer one task waits for.
///
/// What `URLSession.data(for:)` does, without its deadlock on Linux: that hands the answer over on the session's queue,
/// where a task that is cancelled at that moment waits for the queue in turn (`URLSessionTask.cancel` of
/// swift-corelibs-foundation).
final class WholeAnswer: Sendable {
    typealias Answer = (Data, URLResponse)

    private struct State {
        var waiting: CheckedContinuation<Answer, any Error>?
        var task: URLSessionTask?
        var isOver = false
    }

    private let state = Mutex(State())

    private init() {}

    /// Sends a request.
    ///
    /// - Throws: `URLError`, with `cancelled` as soon as the task is cancelled.
    static func of(_ request: URLRequest, in session: URLSession) async throws -> Answer {
        let answer = WholeAnswer()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { answer.begin(request, session, $0) }
        } onCancel: {
            answer.cancel()
        }
    }

    private func begin(_ request: URLRequest, _ session: URLSession, _ waiting: CheckedContinuation<Answer, any Error>)
    {
        let isOver = state.withLock { state in
            if !state.isOver { state.waiting = waiting }
            return state.isOver
        }
        guard !isOver else { return waiting.resume(throwing: URLError(.cancelled)) }
        let task = session.dataTask(with: request) { [self] data, response, error in
            guard let data, let response else { return end(.failure(error ?? URLError(.badServerResponse))) }
            end(.success((data, response)))
        }
        task.resume()
        let isCancelled = state.withLock { state in
            state.task = task
            return state.isOver
        }
        if isCancelled { Self.cancel(task) }
    }

    private func end(_ result: sending Result<Answer, any Error>) {
        let waiting = state.withLock { state in
            state.isOver = true
            return state.waiting.take()
        }
        waiting?.resume(with: result)
    }

    private func cancel() {
        end(.failure(URLError(.cancelled)))
        if let task = state.withLock({ $0.task }) { Self.cancel(task) }
    }

    /// On a thread of its own, since it waits for the session's queue.
    private static func cancel(_ task: URLSessionTask) { DispatchQueue.global().async { task.cancel() } }
}
