import Base
import Core
import Store
import TransferEngine

/// Statuses that are not acceptable, and their pages.
extension Judge {
    /// A final status that is not acceptable: retried if the policy allows it, otherwise the task's result.
    mutating func judgeStatus(_ head: ResponseHead) -> Judgement {
        let fault = AttemptFault.status(head.status, retryAfter: RetryAfter.parse(head.fields, now: now))
        let before = progress.attempts
        let kept = transfer.segmented?.plan.record.count ?? transfer.attempt.resuming?.offset ?? 0
        progress.attempts.record(fault, keptOffset: kept)
        guard case .retry(let at) = decide(after: fault) else {
            guard !OriginPauses.slowsDown(status: head.status), wantsWhole else { return finishWithStatus() }
            progress.attempts = before
            return requestWhole(instead: kept)
        }
        note(statusError(head))
        if let segmented = transfer.segmented {
            segmented.store(in: &progress)
        } else if transfer.attempt.resuming == nil {
            progress.kept = .none
        }
        return .retry(at: at)
    }

    /// Whether the content is requested as a whole before the status becomes the task's result: the origin has served
    /// the content in this attempt and refuses parts of it, or most of the page was dropped for the sake of kept bytes.
    private var wantsWhole: Bool {
        guard !progress.avoidsSegments else { return false }
        if let segmented = transfer.segmented {
            if segmented.isServedByOwnURL { return true }
        } else if transfer.attempt.resuming == nil {
            return false
        }
        return result.sideTruncated && specification.destinationObject == nil && !specification.failOnHTTPError
    }

    /// Gives up the kept bytes, and sends one request for the whole content, uncharged and once in the life of a task. It
    /// resumes no bytes and gets no further connections, so that its status is the result.
    private mutating func requestWhole(instead kept: Int64) -> Judgement {
        progress.noteFetchedTwice(kept)
        progress.forgetBytes()
        progress.avoidsSegments = true
        return .send(.again(cause: "refused"))
    }

    /// The status is the task's result.
    mutating func finishWithStatus() -> Judgement {
        note(nil)
        let page: Judgement.ContentSource =
            switch result.received {
            case _ where !result.isBodyKept, .none: .bytes(result.side, digest: Digest.of(result.side))
            default: contentSource()
            }
        guard specification.failOnHTTPError else { return finish(.httpError, content: page, isCounted: true) }
        let error =
            result.head.map { statusError($0) } ?? TaskError(.badServerResponse, failingURL: transfer.request.url.text)
        return finish(.failed, error: error, isCounted: true)
    }

    func statusError(_ head: ResponseHead, of url: String? = nil) -> TaskError {
        TaskError(
            .badServerResponse, result.explanation(ofStatus: head.status), failingURL: url ?? transfer.request.url.text)
    }

    /// Judges a page that is too long for a content by its head, unless it is the task's result: only the content has a
    /// maximum length.
    mutating func judgeLongPage() -> Judgement? {
        guard let head = result.head, !isDownload || verdict == .notADownload(status: head.status) else { return nil }
        var judge = self
        let judgement = judge.judgeAnswer()
        switch judgement {
        case .send, .retry, .ask:
            progress = judge.progress
            return judgement
        case .finish, .leave, .waitForDisk, .interrupted: return nil
        }
    }
}
