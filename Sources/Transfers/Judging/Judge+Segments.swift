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
}
