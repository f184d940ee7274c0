import Base
import Core
import Store
import TransferEngine

/// Statuses that are not acceptable, and their pages.
extension Judge {
    /// A final status that is not acceptable: retried if the policy allows it, otherwise the task's result.
    mutating func judgeStatus(_ head: ResponseHead) -> Judgement {
        let fault = AttemptFault.status(head.status, retryAfter: RetryAfter.parse(head.fields, now: now))
        progress.attempts.record(
            fault, keptOffset: transfer.segmented?.plan.record.count ?? transfer.attempt.resuming?.offset ?? 0)
        guard case .retry(let at) = decide(after: fault) else { return finishWithStatus() }
        note(statusError(head))
        if let segmented = transfer.segmented {
            segmented.store(in: &progress)
        } else if transfer.attempt.resuming == nil {
            progress.kept = .none
        }
        return .retry(at: at)
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
