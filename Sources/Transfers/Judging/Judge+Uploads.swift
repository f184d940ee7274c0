import Core
import Store
import TransferEngine

extension Judge {
    /// Judges the response to a request of a resumable upload.
    ///
    /// - Returns: Nil if the response has its usual meaning.
    mutating func judgeUpload(_ head: ResponseHead) -> Judgement? {
        guard var upload = transfer.attempt.upload else { return nil }
        let wasAsking = upload.step == .ask
        let decision = upload.handle(
            answer: head, hasSentAll: result.bytesSent >= upload.length - transfer.uploadOffset)
        progress.note(upload, for: specification.request)
        switch decision {
        // The challenge is not the target's: nothing that the app could answer would be sent there.
        case .judge: return head.status == 401 && transfer.goesToOtherOrigin ? startAgain() : nil
        case .respond:
            if wasAsking { progress.countOfBytesSent = upload.length }
            return respond(head)
        case .proceed: return .send(.upload(upload))
        case .move(let location): return move(upload, to: location, head)
        case .wait: return wait(head, wasAsking: wasAsking)
        case .startAgain: return startAgain()
        case .fail:
            return fail(
                with: TaskError(
                    .cannotParseResponse, "The server claims to have more bytes than the upload.",
                    failingURL: transfer.requestURL.text))
        }
    }

    /// The response of the target is final: nothing is sent again.
    private mutating func respond(_ head: ResponseHead) -> Judgement {
        if let judgement = judgeUnsentBody(head) { return judgement }
        if specification.accepts(head.status) { return judgeContent(head) }
        progress.attempts.record(.status(head.status, retryAfter: nil), keptOffset: 0)
        return finishWithStatus()
    }

    private mutating func move(_ upload: ResumableUpload, to location: String, _ head: ResponseHead) -> Judgement {
        var upload = upload
        guard upload.moves < Redirect.limit, let target = transfer.uploadResource(at: location) else {
            return startAgain()
        }
        upload.move(to: target)
        progress.note(upload, for: specification.request)
        return .send(.upload(upload))
    }

    /// Another attempt queries the offset if the policy allows one. Otherwise the status is the task's result; if it
    /// concerned only the upload resource, the resource is abandoned.
    private mutating func wait(_ head: ResponseHead, wasAsking: Bool) -> Judgement {
        let isSuccess = (200...299).contains(head.status)
        let fault: AttemptFault =
            head.status == 409 || isSuccess
            ? .transport : .status(head.status, retryAfter: RetryAfter.parse(head.fields, now: now))
        progress.attempts.record(fault, keptOffset: progress.keptOffset)
        // Querying the offset repeats no effect.
        if case .retry(let at) = decide(after: fault, isRepeatable: true) {
            note(statusError(head, of: transfer.requestURL.text))
            return .retry(at: at)
        }
        if wasAsking { return startAgain() }
        guard !isSuccess else {
            // A success would pass for the end of an upload that the server has not completed.
            let error = statusError(head, of: transfer.requestURL.text)
            note(error)
            return finish(.failed, error: error, isCounted: true)
        }
        return finishWithStatus()
    }

    /// Rejects a success from an origin that has not read the whole body, because it may have stored less.
    ///
    /// - Returns: Nil if all was sent, or if the status is no success.
    mutating func judgeUnsentBody(_ head: ResponseHead) -> Judgement? {
        guard lacksBody else { return nil }
        let isSuccess = (200...299).contains(head.status) || specification.accepts(head.status)
        return isSuccess ? judgeEarlyAnswer(head) : nil
    }

    /// The origin responded before it had the whole body: the response does not count, and the request is repeated if
    /// that does no harm.
    private mutating func judgeEarlyAnswer(_ head: ResponseHead) -> Judgement {
        let error = TaskError(
            .badServerResponse, failingURL: transfer.requestURL.text,
            underlying: TaskError.Underlying(
                domain: "urlsessiond", code: "answered-early",
                message: "The origin answered \(head.status) before it had the whole body."))
        if var upload = transfer.attempt.upload {
            upload.startAgain()
            progress.note(upload, for: specification.request)
        }
        switch decide(ending: .answeredEarly, error) {
        case .retry(let at): return .retry(at: at)
        case .giveUp: return finish(.failed, error: error)
        }
    }

    /// Rejects a redirect that drops the body from an origin that does not have all of it: the next request would
    /// succeed without the body.
    mutating func judgeUnsentBody(redirected head: ResponseHead) -> Judgement? {
        lacksBody ? judgeEarlyAnswer(head) : nil
    }

    /// Whether less of the body was passed to the connection than the last request had to send.
    private var lacksBody: Bool {
        guard transfer.request.sendsBody, let body = transfer.task.body else { return false }
        switch transfer.attempt.upload?.step {
        case .ask, .abandon: return false
        case .create, .append, nil: return result.bytesSent < body.length - transfer.uploadOffset
        }
    }

    private mutating func startAgain() -> Judgement {
        guard var upload = transfer.attempt.upload else { return .interrupted }
        let error = TaskError(.badServerResponse, failingURL: transfer.requestURL.text)
        upload.startAgain()
        progress.note(upload, for: specification.request)
        switch decide(ending: .restart, error) {
        case .retry: return .send(.upload(upload))
        case .giveUp: return finish(.failed, error: error)
        }
    }
}
