import Foundation
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One request with its complete response, for one waiting Swift task.
///
/// It replaces `URLSession.data(for:)`, which has a deadlock on Linux: that method returns the response on the
/// session's queue, while a task that is cancelled at that moment waits for the queue (`URLSessionTask.cancel` of
/// swift-corelibs-foundation).
final class WholeAnswer: Sendable {
    typealias Answer = (Data, URLResponse)

    private struct State {
        var waiting: CheckedContinuation<Answer, any Error>?
        var task: URLSessionTask?
        var isOver = false
        /// Whether the URLSession has returned the response.
        var hasAnswer = false
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
            state.withLock { ($0.hasAnswer, $0.task) = (true, nil) }
            guard let data, let response else { return end(.failure(error ?? URLError(.badServerResponse))) }
            end(.success((data, response)))
        }
        task.resume()
        let isCancelled = state.withLock { state in
            if !state.hasAnswer { state.task = task }
            return state.isOver
        }
        if isCancelled { cancelTask() }
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
        cancelTask()
    }

    /// Cancels the URLSession's task, on a thread of its own, because it waits for the session's queue.
    ///
    /// On Linux a task that is cancelled while the URLSession removes it ends the process (`URLSession.behaviour(for:)`
    /// of swift-corelibs-foundation). The URLSession removes it when its completion handler returns, which waits for
    /// the lock.
    private func cancelTask() {
        DispatchQueue.global().async { [self] in state.withLock { $0.task?.cancel() } }
    }
}
