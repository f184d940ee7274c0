import Core

/// Verdicts on content in segments that concern more than one request.
extension Judge {
    /// Judges that the segments are useless because the resource has changed.
    mutating func judgeChange(cause: String) -> Judgement {
        restart(cause: cause, fault: .restart, error: TaskError(.badServerResponse))
    }

    /// Judges that no source is left whose content has the expected digests.
    mutating func judgeLies() -> Judgement {
        restart(after: DigestMismatch(message: "no source has all pieces with the expected digests"))
    }

    /// A redirect that no connection of the segments has followed. Following it now would begin them again without a
    /// limit, so that the sources are requested again in another attempt.
    mutating func judgeUnfollowed(_ head: ResponseHead) -> Judgement {
        transfer.segmented?.store(in: &progress)
        let error = statusError(head)
        progress.attempts.record(.transport, keptOffset: progress.keptOffset)
        note(error)
        switch decide(after: .transport) {
        case .retry(let at): return .retry(at: at)
        case .giveUp: return finish(.failed, error: error, isCounted: true)
        }
    }
}
