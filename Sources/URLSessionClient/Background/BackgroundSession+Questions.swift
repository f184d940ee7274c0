import Foundation
import Synchronization
import Wire

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension BackgroundSession {
    func taskWaiting(forQuestion questionId: String) -> BackgroundSessionTask? {
        facts.withLock { $0.asked[questionId] }
    }

    /// Asks the questions that were open before a relaunch: their events may have been acknowledged, and the answers
    /// lost.
    func askAgain() async throws {
        try await Client.each { cursor in
            try await insist { try await $0.questions(in: $1, states: [.open], cursor: cursor) }
        } use: { question in
            let number = question.taskIdentifier
            guard let shown = try? await insist({ try await $0.task(number, in: $1) }) else { return }
            await ask(await task(as: shown), question)
        }
    }

    private func ask(_ task: BackgroundSessionTask, _ question: Question) async {
        if let space = question.protectionSpace {
            let challenge = AuthenticationChallenge {
                $0.questionId = question.questionId
                $0.protectionSpace = space
                $0.taskCount = question.taskCount
                $0.previousFailureCount = question.previousFailureCount ?? 0
                $0.proposedCredential = question.proposedCredential
                $0.failureResponse = question.failureResponse
                $0.deadline = question.deadline
            }
            await ask(task, about: challenge)
        } else if let request = question.request {
            let delayed = DelayedRequest {
                $0.questionId = question.questionId
                $0.request = request
                $0.deadline = question.deadline
            }
            await ask(task, about: delayed)
        }
    }

    /// Whether the delegate has the method for delayed requests.
    static func asksBeforeDelayedRequests(_ delegate: (any BackgroundSessionDelegate)?) -> Bool {
        guard let delegate = delegate as? any BackgroundSessionTaskDelegate else { return false }
        return delegate.hasMethodForDelayedRequests
    }

    /// Calls a completion handler with the result of an `async` method.
    ///
    /// - Parameters:
    ///   - completionHandler: Called once.
    ///   - standard: The disposition for a result that is no pair of disposition and value, such as ``NotImplemented``.
    ///   - method: Calls the method of the delegate.
    static func decide<Disposition: Sendable, Value: Sendable>(
        _ completionHandler: @escaping @Sendable (Disposition, Value?) -> Void, else standard: Disposition,
        _ method: @escaping @Sendable () async -> any Sendable
    ) {
        Task {
            guard let (disposition, value) = await method() as? (Disposition, Value?) else {
                return completionHandler(standard, nil)
            }
            completionHandler(disposition, value)
        }
    }

    /// Asks about a challenge. Server keys and client certificates go to the session's method, other challenges to the
    /// task's.
    func ask(_ task: BackgroundSessionTask, about challenge: AuthenticationChallenge) async {
        guard begin(challenge.questionId, task) else { return }
        let answer = answering(challenge.questionId) {
            (disposition: AuthChallengeDisposition, credential: Credential?) in
            Answer(disposition, credential)
        }
        let isOfSession = [.serverTrust, .clientCertificate].contains(challenge.protectionSpace.authenticationMethod)
        await call { delegate in
            let decide: ServiceChallenge.Answer = { self.answer($0, $1, to: challenge, with: answer) }
            let asked = ServiceChallenge(challenge, answer: decide)
            if isOfSession {
                delegate.urlSession(self, didReceive: asked, completionHandler: decide)
            } else if let delegate = delegate as? any BackgroundSessionTaskDelegate {
                delegate.urlSession(self, task: task, didReceive: asked, completionHandler: decide)
            } else {
                answer(.performDefaultHandling, nil)
            }
        }
    }

    /// Asks whether a delayed request may start.
    func ask(_ task: BackgroundSessionTask, about delayed: DelayedRequest) async {
        guard begin(delayed.questionId, task) else { return }
        let answer = answering(delayed.questionId) { (disposition: DelayedRequestDisposition, request: URLRequest?) in
            Answer(disposition, request)
        }
        guard let request = URLRequest(delayed.request) else { return answer(.continueLoading, nil) }
        await call { delegate in
            if let delegate = delegate as? any BackgroundSessionTaskDelegate {
                _ = delegate.urlSession(self, task: task, willBeginDelayedRequest: request, completionHandler: answer)
            } else {
                answer(.continueLoading, nil)
            }
        }
    }

    /// - Returns: False if the delegate has already received the question.
    private func begin(_ questionId: String, _ task: BackgroundSessionTask) -> Bool {
        facts.withLock { $0.asked.updateValue(task, forKey: questionId) == nil }
    }

    /// A completion handler that answers a question. The service refuses a second or late answer, which is ignored.
    private func answering<Disposition: Sendable, Value: Sendable>(
        _ questionId: String, _ answer: @escaping @Sendable (Disposition, Value?) -> Answer
    ) -> @Sendable (Disposition, Value?) -> Void {
        { disposition, value in
            let answer = answer(disposition, value)
            Task { _ = try? await self.insist { client, _ in try await client.answer(answer, to: questionId) } }
        }
    }
}

extension BackgroundSessionTaskDelegate {
    /// Whether the delegate has the method for delayed requests in one of its forms.
    ///
    /// The defaults return another type, so that the compiler infers other associated types for them.
    fileprivate var hasMethodForDelayedRequests: Bool {
        DelayedRequestReply.self != BackgroundSession.NotImplemented.self
            || DelayedRequestDecision.self != BackgroundSession.NotImplemented.self
    }

    /// Lets the `async` method decide about a challenge of the session.
    ///
    /// - Returns: False if the delegate does not have the method.
    func decides(
        about challenge: ServiceChallenge, _ session: BackgroundSession,
        _ completionHandler: @escaping ServiceChallenge.Answer
    ) -> Bool {
        guard SessionChallengeDecision.self != BackgroundSession.NotImplemented.self else { return false }
        BackgroundSession.decide(completionHandler, else: .performDefaultHandling) {
            await self.urlSession(session, didReceive: challenge) as SessionChallengeDecision
        }
        return true
    }
}
